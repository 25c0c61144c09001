"""Sends records to the topics that users write, and waits until the broker has them."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.core.ports import Delivered, Kafka, Outgoing, PlainWriter


class Sender:
    """One record at a time, each acknowledged within `timeout_s`."""

    def __init__(self, kafka: Kafka, timeout_s: float) -> None:
        self._writer: PlainWriter = kafka.plain_writer("command")
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.close()

    def send(self, record: Outgoing) -> Delivered:
        """Where it stands now. Raises CommandError when the broker refused it or did not answer."""
        done = threading.Event()
        outcome: list[tuple[Delivered | None, str]] = []

        def delivered(at: Delivered | None, error: str) -> None:
            outcome.append((at, error))
            done.set()

        self._writer.send(record, delivered)
        self._writer.flush(self._timeout_s)
        if not done.wait(0.0):
            raise CommandError(
                f"no broker took the record for {record.topic} within {self._timeout_s:g} s; it may still arrive",
                todo="look whether it did (`dueline jobs list`, `dueline runs JOB`) before you send it again",
                code=ExitCode.UNREACHABLE,
            )
        at, error = outcome[0]
        if at is None:
            raise CommandError(f"the broker refused the record for {record.topic}: {error}")
        return at
