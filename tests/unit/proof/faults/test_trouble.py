"""What is wrong beside a history: ends that no fault explains, bugs in logs, a broken fence, nothing judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dueline.schemas.codec import encode
from dueline.schemas.ledger import Barrier
from proof.faults.trouble import LATE, Ended, bugs, nothing_judged, troubles
from proof.history.acts import Bounds, Fault, Life, Noted, Role
from proof.history.entry import Entry
from proof.history.history import History
from proof.history.verdict import Verdict

AT_MS = 100_000


def told(*faults: Fault, how: str = "runs", barriers: tuple[tuple[int, str], ...] = ()) -> History:
    lives = [
        Life(process=name, role=role, pid=1, began_ms=0, ended_ms=-1 if how == "runs" else AT_MS, how=how)
        for name, role, how in (("s1", Role.SCHEDULER, how), ("w1", Role.WORKER, "runs"), ("b1", Role.BROKER, "runs"))
    ]
    entries = [
        Entry(topic="p.runs", partition=0, offset=offset, append_ms=offset, key=barrier.key.encode(), value=encode(barrier))
        for offset, (generation, process) in enumerate(barriers)
        for barrier in (Barrier(id=str(offset), process=process, generation=generation),)
    ]
    return History(
        title="", seed=0, prefix="p", began_ms=0, judged_ms=0, log={("p.runs", 0): entries},
        noted=Noted(faults=faults, lives=tuple(lives)),
        bounds=Bounds(lateness_ms=0, skew_ms=0, worker_timeout_ms=0, session_ms=0),
    )  # fmt: skip


def ended(how: str, process: str = "s1", words: str = "goodbye") -> Ended:
    return Ended(process=process, at_ms=AT_MS, how=how, last_words=words)


def fault(kind: str, target: str, *, before_ms: int = 5_000, struck: bool = True) -> Fault:
    return Fault(kind=kind, target=target, began_ms=AT_MS - before_ms, ended_ms=AT_MS - before_ms, struck=struck)


@pytest.mark.parametrize(
    ("one", "faults", "explained"),
    [
        (ended("exit 1"), (), False),
        (ended("exit 1"), (fault("stop-broker", "b1"),), False),
        (ended("SIGSEGV"), (fault("stop-broker", "b1"),), False),
        (ended("SIGABRT"), (), False),
        (ended("SIGABRT", words="python: rdkafka_admin.c:960: parse: Assertion `x' failed."), (), True),
        (ended("exit 1", words="python: rdkafka_admin.c:960: parse: Assertion `x' failed."), (), False),
        (ended("exit 70"), (), False),
        (ended("exit 70"), (fault("stop-broker", "b1"),), True),
        (ended("exit 70"), (fault("block-leader", "s1"),), True),
        (ended("exit 70"), (fault("link-loss", "s1>b1"),), True),
        (ended("exit 70"), (fault("kill-worker", "w1"),), False),
        (ended("exit 70"), (fault("block-leader", "s1", struck=False),), False),
        (ended("exit 70"), (fault("block-leader", "s1", before_ms=70_000),), False),
        (ended(LATE), (fault("stop-broker", "b1"),), True),
        (ended(LATE), (fault("term-leader", "s1"),), False),
        (ended("halted", "b1"), (fault("disk-full", "b1"),), True),
        (ended("halted", "b1"), (fault("stop-broker", "b1"),), False),
    ],
)
def test_an_end_is_a_trouble_unless_a_fault_explains_it(one: Ended, faults: tuple[Fault, ...], explained: bool) -> None:
    bad, notes = troubles(told(*faults), [one], ())
    assert (bad, notes) == (([], [str(one)]) if explained else ([str(one)], []))


def test_a_crash_that_came_before_a_kill_is_found_in_the_lives() -> None:
    bad, _ = troubles(told(fault("kill-leader", "s1"), how="exit 1"), [], ())
    assert bad == ["s1: exit 1"]
    assert troubles(told(fault("kill-leader", "s1"), how="SIGKILL"), [], ()) == ([], [])


@pytest.mark.parametrize(("lived_ms", "trouble"), [(900, False), (9_000, True)])
def test_one_that_is_told_to_end_as_soon_as_it_is_born_may_end_by_the_signal(lived_ms: int, trouble: bool) -> None:
    history = told(how="SIGTERM")
    lives = tuple(replace(life, began_ms=AT_MS - lived_ms) for life in history.noted.lives)
    bad, _ = troubles(replace(history, noted=replace(history.noted, lives=lives)), [], ())
    assert bool(bad) == trouble


def test_bugs_that_a_log_tells_of_are_troubles(tmp_path: Path) -> None:
    log = tmp_path / "w1.log"
    assert list(bugs(log)) == [], "no log at all"
    log.write_text("INFO leading\nWARNING the group moved on\n")
    assert list(bugs(log)) == []
    lines = ["INFO leading", "ERROR a bug: job x cannot be decided and is set aside", "Traceback (most recent call last):"]
    log.write_text("\n".join(lines + 3 * ["Traceback (most recent call last):"]))
    found = list(bugs(log))
    assert found[0] == f"w1.log, line 2: {lines[1]}"
    assert found[-1] == "w1.log: 2 more lines like these"
    bad, _ = troubles(told(), [], [log])
    assert bad == found


def test_leaders_out_of_order_are_a_trouble() -> None:
    assert troubles(told(barriers=((1, "h:1"), (2, "h:2"))), [], ()) == ([], [])
    bad, _ = troubles(told(barriers=((2, "h:1"), (1, "h:2"))), [], ())
    assert ["unfenced" in line for line in bad] == [True]


def test_a_run_without_a_due_time_shows_nothing() -> None:
    assert nothing_judged(Verdict(violations=(), due_times=1, runs=1)) == []
    assert len(nothing_judged(Verdict(violations=(), due_times=0, runs=0))) == 1
