"""The fencer tells a trouble that lasts once, and goes on trying."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from dueline.scheduler.core.ports import FenceResult, Unavailable
from dueline.scheduler.kafka import fencer
from dueline.scheduler.kafka.errors import NotAuthorized
from dueline.scheduler.kafka.fencer import KafkaFencer

DONE = FenceResult(incarnation="w.1", attempts_end=1, steps_end=1)
RIGHT = NotAuthorized("transactional id 'w.1.a'", "WRITE")


@pytest.mark.parametrize(
    ("troubles", "said"),
    [
        ([RIGHT] * 5, [("fence.error", False)]),
        ([KeyError("a bug")] * 5, [("fence.error", True)]),
        ([Unavailable("x")] * 3 + [RIGHT] * 3, [("fence.retry", False), ("fence.error", False)]),
    ],
    ids=["right", "bug", "two troubles"],
)
def test_a_trouble_that_lasts_is_told_once_and_tried_against(
    troubles: list[Exception], said: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given several tries that fail alike; then one line, with a traceback for a bug only; and in the end it is fenced."""
    left = list(troubles)

    def fence(self: KafkaFencer, *_: Any) -> FenceResult:
        if left:
            raise left.pop(0)
        return DONE

    monkeypatch.setattr(KafkaFencer, "_fence", fence)
    monkeypatch.setattr(fencer, "FIRST_WAIT_S", 0.001)
    unused: Any = None
    tried = KafkaFencer(unused, attempts="a", steps="s", admin=unused, watchdog=unused)
    try:
        tried.start("w.1", ["w.1.a"], 0, "workers")
        results: list[FenceResult] = []
        deadline = time.monotonic() + 20
        while not results and time.monotonic() < deadline:
            results = tried.results()
            time.sleep(0.005)  # awaited: the fence's result
    finally:
        tried.close()
    assert results == [DONE]
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [(getattr(record, "action", ""), bool(record.exc_info)) for record in told] == said
