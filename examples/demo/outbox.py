"""The outbox: a folder with one file for each run, in it one line of JSON for each mail that was delivered.

The same file serves the handler, which appends, and whoever checks, who reads: a stranger needs `sort | uniq -c` and
no trust in dueline. A real mail server would drop a mail whose idempotency key it has seen; this one keeps both, so
that a repetition shows.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

FOLDER_ENVIRONMENT: Final = "DUELINE_DEMO_OUTBOX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One delivery. `sent_ms`: wall clock of the process `pid` that delivered it, in attempt `attempt` of the run."""

    key: str
    to: str
    subject: str
    attempt: int
    pid: int
    sent_ms: int


def deliver(due: datetime, job: str, attempt: int, *, key: str, to: str, subject: str) -> None:
    """Append the mail to the run's file: one write, whole or not at all."""
    now_ms = time.time_ns() // 1_000_000
    mail = Mail(key=key, to=to, subject=subject, attempt=attempt, pid=os.getpid(), sent_ms=now_ms)
    with open(file_of(Path(os.environ[FOLDER_ENVIRONMENT]), job, due), "ab", buffering=0) as file:
        file.write(json.dumps(asdict(mail)).encode() + b"\n")


def file_of(folder: Path, job: str, due: datetime) -> Path:
    """`menu.20261130T055800Z.jsonl`."""
    return folder / f"{job}.{due.astimezone(UTC):%Y%m%dT%H%M%SZ}.jsonl"


class OutboxFile:
    """The mails of one run, read as they come."""

    def __init__(self, folder: Path, job: str, due_ms: int) -> None:
        self.path = file_of(folder, job, datetime.fromtimestamp(due_ms / 1000, UTC))
        self.mails: list[Mail] = []
        self._read = 0

    def look(self) -> list[Mail]:
        """All mails so far."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return self.mails
        if size > self._read:
            with open(self.path, "rb") as file:
                file.seek(self._read)
                whole, _, _ = file.read().rpartition(b"\n")
            self._read += len(whole) + 1 if whole else 0
            self.mails += [Mail(**json.loads(line)) for line in whole.splitlines()]
        return self.mails


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a stranger counts in a run's file."""

    delivered: int
    subscribers: int
    repeated: int  # deliveries whose key had been delivered before
    keys_per_subscriber: int  # 1 where every repetition had the same key


def count(mails: Sequence[Mail]) -> Tally:
    """Count them."""
    keys = Counter(mail.key for mail in mails)
    of_subscriber: dict[str, set[str]] = {}
    for mail in mails:
        of_subscriber.setdefault(mail.to, set()).add(mail.key)
    return Tally(
        delivered=len(mails),
        subscribers=len(of_subscriber),
        repeated=sum(times - 1 for times in keys.values()),
        keys_per_subscriber=max((len(own) for own in of_subscriber.values()), default=0),
    )
