"""Ctrl-C, once."""

from __future__ import annotations

import signal

import pytest

from proof import interruption


def test_a_second_interruption_does_not_stop_the_end_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: dict[int, object] = {}
    monkeypatch.setattr(f"{interruption.__name__}.signal.signal", handlers.__setitem__)
    interruption.heed_interruptions()
    assert handlers == {signal.SIGINT: interruption.interrupted, signal.SIGTERM: interruption.interrupted}
    with pytest.raises(KeyboardInterrupt):
        interruption.interrupted()
    assert handlers == {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: signal.SIG_IGN}
