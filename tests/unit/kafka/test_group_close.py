"""A client that hangs while it leaves the group: the watchdog ends the process, and only then."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dueline.scheduler.kafka import group
from dueline.scheduler.kafka.group import KafkaGroupReader
from dueline.scheduler.kafka.watchdog import Watchdog

DEADLINE_S = 20.0


class Stuck:
    """Of a consumer only how it closes."""

    def __init__(self, released: threading.Event) -> None:
        self._released = released

    def close(self) -> None:
        assert self._released.wait(DEADLINE_S), "nobody ended the process"


def member(consumer: Any, watchdog: Watchdog) -> KafkaGroupReader:
    """One that holds a partition, and no client behind it."""
    made = KafkaGroupReader.__new__(KafkaGroupReader)
    made._consumer, made._watchdog, made._group = consumer, watchdog, "g"
    made._held, made._assignment = frozenset({("control", 0)}), None
    return made


def test_a_close_that_hangs_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "CLOSE_S", 0.02)
    died = threading.Event()
    watchdog = Watchdog(died.set, tick_s=0.005)
    member(Stuck(died), watchdog).close()
    watchdog.close()


def test_one_that_returns_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "CLOSE_S", 0.02)
    died, released = threading.Event(), threading.Event()
    released.set()
    watchdog = Watchdog(died.set, tick_s=0.005)
    member(Stuck(released), watchdog).close()
    assert not died.wait(0.1)
    watchdog.close()
