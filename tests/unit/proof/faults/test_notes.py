"""What the notebook makes of what it is told."""

from __future__ import annotations

from proof.faults.notes import Notebook
from proof.history.acts import STARVED, Fault, Life, Role


def test_a_fault_lasts_until_it_is_ended_once() -> None:
    told: list[Fault] = []
    notes = Notebook(told.append)
    fault = notes.fault("stop-broker", "b1", detail="2 s")
    assert notes.faults[0].ended_ms >= notes.faults[0].began_ms, "one that lasts counts as ending now"
    fault.end("woken")
    ended = notes.faults[0]
    fault.end("woken again")
    assert notes.faults == (ended,)
    assert ended.detail == "2 s; woken"
    assert [each.ended_ms == -1 for each in told] == [True, False]


def test_a_kill_takes_no_time_and_a_starved_machine_is_no_fault_of_ours() -> None:
    notes = Notebook()
    notes.instant("kill-worker", "w1")
    notes.starved(10, 20)
    assert notes.faults[0].began_ms == notes.faults[0].ended_ms
    assert (notes.faults[1].kind, notes.faults[1].ended_ms) == (STARVED, 20)
    assert notes.injected == 1


def test_a_life_ends_under_its_own_process_id() -> None:
    notes = Notebook()
    for pid in (1, 2):
        notes.began(Life(process="s1", role=Role.SCHEDULER, pid=pid, began_ms=0, ended_ms=-1, how="runs"))
    notes.ended("s1", 1, "SIGKILL")
    assert [(life.pid, life.how) for life in notes.lives] == [(1, "SIGKILL"), (2, "runs")]


def test_what_took_no_effect_is_told_and_does_not_count() -> None:
    told: list[Fault] = []
    notes = Notebook(told.append)
    notes.fault("endtxn-repeated", "s1").end("error code 47", struck=False)
    notes.missed("kill-leader-in-transaction", "s1", 10, "not reached")
    notes.instant("kill-leader", "s1")
    assert [fault.struck for fault in notes.faults] == [False, False, True]
    assert (notes.injected, notes.tried) == (1, 3)
    assert [fault.struck for fault in told] == [True, False, False, True, True]
    assert (notes.faults[1].began_ms, notes.faults[1].detail) == (10, "not reached")


def test_what_was_done_on_the_way_to_a_fault_that_did_not_strike_is_a_fault_of_its_own() -> None:
    notes = Notebook()
    notes.fault("group-deleted", "s1,s2").end_instead("schedulers-stopped", "it was not empty")
    done, missed = notes.faults
    assert (done.kind, done.target, done.struck, done.detail) == ("schedulers-stopped", "s1,s2", True, "it was not empty")
    assert (missed.kind, missed.struck, missed.began_ms) == ("group-deleted", False, done.began_ms)
    assert (notes.injected, notes.tried) == (1, 2)
