"""The daily menu: build it, send it to a thousand subscribers, mark the day done. The job of the demo.

    dueline worker --queue menu --handler menu=examples.menu:send_menu

Mails go to an outbox that anyone can check: with MENU_OUTBOX=FOLDER, one line of JSON a delivered mail in
FOLDER/outbox.jsonl, and one line a finished day in FOLDER/days.jsonl; without it, nowhere. A real mail server would be given
the idempotency key in a header and drop a repetition; a line is never dropped here, so that repetitions can be counted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from dueline import Context

SUBSCRIBERS = 1000
DISHES = ("lentil soup", "risotto", "dumplings", "ratatouille", "goulash", "gnocchi", "roast")

Deliver = Callable[[str, dict[str, object]], None]
"""Takes the name of a list ("outbox", "days") and an entry for it."""


def send_menu(ctx: Context) -> dict[str, object]:
    """The handler. Payload, all optional: `subscribers` (how many), `pace_s` (seconds a mail takes)."""
    payload = ctx.payload or {}
    subscribers, pace_s = int(payload.get("subscribers", SUBSCRIBERS)), float(payload.get("pace_s", 0.0))
    deliver = outbox()
    menu = ctx.step("build", build_menu, ctx.due.date().toordinal())
    day = ctx.due.isoformat()

    def send(subscriber: int) -> None:
        time.sleep(pace_s)
        mail = {
            "to": f"subscriber-{subscriber}@example.org",
            "day": day,
            "menu": menu,
            "key": ctx.idempotency_key(subscriber),
            "attempt": ctx.attempt,
            "sent": time.time(),
        }
        deliver("outbox", mail)

    ctx.each("send", range(1, subscribers + 1), send)
    ctx.step("close", deliver, "days", {"day": day, "subscribers": subscribers, "key": ctx.idempotency_key("close")})
    ctx.log.info("the menu of %s went to %d subscribers", day, subscribers)
    return {"menu": menu, "sent": subscribers}


def build_menu(day_number: int) -> list[str]:
    """Three dishes; the same ones whenever they are asked for the same day."""
    return [DISHES[(day_number * step + step) % len(DISHES)] for step in (1, 2, 3)]


def outbox() -> Deliver:
    """Where mails go, as MENU_OUTBOX says."""
    folder = os.environ.get("MENU_OUTBOX")
    if not folder:
        return lambda _name, _entry: None
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return lambda name, entry: append_line(path / f"{name}.jsonl", entry)


def append_line(path: Path, entry: dict[str, object]) -> None:
    """One write to the end of the file: lines of several workers do not mix, and a kill leaves a whole line or none."""
    line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        written = os.write(descriptor, line)
    finally:
        os.close(descriptor)
    if written != len(line):
        raise OSError(f"{path}: only {written} of {len(line)} bytes could be written; is the disk full?")
