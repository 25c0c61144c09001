"""W8 and the worker's clock, pure."""

from __future__ import annotations

import pytest

from dueline.workers.lease import Lease
from dueline.workers.logclock import WINDOW_S, LogClock


def test_a_lease_counts_from_when_the_acknowledged_heartbeat_was_sent() -> None:
    lease = Lease(7.0)
    assert not lease.holds(0.0)
    lease.acknowledged(100.0)  # the answer itself may come at 106.9
    assert lease.holds(106.9)
    assert not lease.holds(107.0)
    assert lease.ends_s == 107.0


def test_a_late_answer_to_an_old_heartbeat_gives_nothing() -> None:
    lease = Lease(7.0)
    lease.acknowledged(100.0)
    lease.acknowledged(90.0)
    assert lease.ends_s == 107.0


def test_a_revoked_lease_stays_so() -> None:
    lease = Lease(7.0)
    lease.acknowledged(100.0)
    lease.revoke()
    lease.acknowledged(101.0)
    assert not lease.holds(101.0)


def test_log_time_is_never_ahead_of_the_broker_and_the_tightest_sample_counts() -> None:
    clock = LogClock()
    with pytest.raises(LookupError):
        clock.now_ms(0.0)
    clock.observe(50_000, 10.020)  # acknowledged 20 ms after the append
    clock.observe(51_000, 11.001)
    clock.observe(52_000, 12.030)
    assert clock.now_ms(12.030) == 52_029
    assert clock.offset_s == pytest.approx(39.999)


def test_log_time_follows_a_broker_clock_that_was_set_back() -> None:
    clock = LogClock()
    clock.observe(50_000, 10.0)
    clock.observe(50_000, 11.0)
    assert clock.now_ms(11.0) == 51_000
    clock.observe(60_000, 12.0 + WINDOW_S)
    assert clock.now_ms(12.0 + WINDOW_S) == 60_000


def test_log_time_at_a_due_time_is_not_the_millisecond_before_it() -> None:
    clock = LogClock()
    for receipt in (0.1, 12.3456789, 98_765.4321):
        clock = LogClock()
        clock.observe(1_800_000_000_123, receipt)
        offset = clock.offset_s
        assert offset is not None
        for due_ms in range(1_800_000_001_000, 1_800_000_001_200):
            assert clock.now_ms(due_ms / 1000 - offset) == due_ms


def test_a_lease_has_lapsed_when_it_held_before_and_ended() -> None:
    lease = Lease(7.0)
    assert not lease.lapsed(1000.0)  # nothing was held under it
    lease.acknowledged(100.0)
    assert not lease.lapsed(106.9)
    assert lease.lapsed(107.0)
    lease.acknowledged(107.0)
    assert not lease.lapsed(107.0)
