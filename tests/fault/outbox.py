"""Side effects as lines of a file: what happened outside Kafka, and can't be taken back by an aborted transaction."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = "FAULT_OUTBOX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect: by which process, of which step of which attempt, under which idempotency key, and when."""

    run: str
    attempt: int
    step: str
    key: str
    pid: int
    at_ms: int


def happen(run: str, attempt: int, step: str, key: str) -> None:
    """Append one line, in one write: a killed process leaves a whole line or none."""
    effect = Effect(run=run, attempt=attempt, step=step, key=key, pid=os.getpid(), at_ms=time.time_ns() // 1_000_000)
    line = json.dumps(asdict(effect)) + "\n"
    file = os.open(os.environ[ENVIRONMENT], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


class Outbox:
    """Reads the file on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.effects: list[Effect] = []

    def look(self) -> list[Effect]:
        """All effects so far, in the order they happened."""
        if self._path.exists():
            with open(self._path, "rb") as file:
                file.seek(self._read)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read += len(whole)
            self.effects += [Effect(**json.loads(line)) for line in whole.splitlines()]
        return self.effects
