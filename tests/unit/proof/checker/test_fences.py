"""Who may be fenced: an incarnation that said that it stopped, or whose process ended after its last word; no other in peace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dueline.schemas.codec import encode
from dueline.schemas.ledger import Fence
from dueline.schemas.topics import Namespace
from dueline.schemas.work import Heartbeat, HeldClaim
from proof.checker.check import check
from proof.history.acts import Fault, Life, Role
from proof.history.entry import Entry
from proof.history.history import History
from proof.history.verdict import Kind
from tests.unit.proof.checker.histories import calm
from tests.unit.proof.checker.world import START_MS

NAMES = Namespace("proof")
INCARNATION = "w9.0001"


def unexplained(*, heard_s: float, state: str, ended_s: float, reason: str = "no heartbeat") -> bool:
    """Whether it is asked why this worker was fenced, which was heard last and whose process ended so long after the beginning.
    The leader fences it at the end of nine seconds without a fault, which is longer than anything here times out."""
    ended_ms = after(ended_s) if ended_s >= 0 else -1
    history = fenced((after(heard_s), state), ended_ms=ended_ms, reason=reason)
    return any(found.kind is Kind.UNEXPLAINED and found.subject == INCARNATION for found in check(history).violations)


def after(seconds: float) -> int:
    return START_MS + round(seconds * 1000)


def heard(state: str, *, claims: bool = False) -> Heartbeat:
    held = [HeldClaim(run="daily@2027-01-15T08:00:00Z", attempt=1, claim=1, state="running")] if claims else []
    return Heartbeat(incarnation=INCARNATION, worker="w9", queue="default", home=0, state=state, seq=1, slots=1, claims=held)


def fenced(*beats: tuple[int, str], ended_ms: int, reason: str, claims: bool = False) -> History:
    """`beats`: when it was heard, and its state."""
    history = calm(0)
    at_ms = history.judged_ms
    records: list[tuple[str, Heartbeat | Fence, int]] = [(NAMES.workers, heard(state, claims=claims), ms) for ms, state in beats]
    fence = Fence(
        incarnation=INCARNATION, worker="w9", queue="default", home=0, phase="intent", reason=reason,
        term=1, generation=1, leader_ms=at_ms,
    )  # fmt: skip
    log = dict(history.log)
    for topic, record, stamp in (*records, (NAMES.runs, fence, at_ms)):
        entries = list(log.get((topic, 0), ()))
        offset = entries[-1].offset + 1 if entries else 0
        log[topic, 0] = (*entries, Entry(topic=topic, partition=0, offset=offset, append_ms=stamp, key=b"", value=encode(record)))
    life = Life(process="w9", role=Role.WORKER, pid=9, began_ms=START_MS, ended_ms=ended_ms, how="")
    noted = replace(history.noted, lives=(*history.noted.lives, life))
    return replace(history, log=log, noted=noted)


@pytest.mark.parametrize(
    ("heard_s", "state", "ended_s", "asked"),
    [
        (1, "running", -1, True),  # nothing had happened to it
        (1, "stopped", -1, True),  # it holds nothing, and may be silent
        (1, "draining", -1, True),
        (1, "running", 1.2, False),  # a dead process, which the leader noticed late: from the last heartbeat on it counts
        (3, "running", 1.2, True),  # that was another life of the process: it was heard after
    ],
)
def test_a_fence_is_explained_by_the_workers_last_word_or_by_an_end_after_it(
    heard_s: float, state: str, ended_s: float, asked: bool
) -> None:
    assert unexplained(heard_s=heard_s, state=state, ended_s=ended_s) is asked


@pytest.mark.parametrize(("state", "asked"), [("stopped", False), ("running", True)])
def test_only_of_one_that_stopped_it_is_true_that_it_stopped(state: str, asked: bool) -> None:
    assert unexplained(heard_s=1, state=state, ended_s=-1, reason="it stopped and held runs") is asked


@pytest.mark.parametrize(
    ("said_s", "state", "call_s", "claims", "reason", "asked"),
    [
        (8.5, "lost", 4.0, False, "it gave up", False),  # an answer did not come from 2 s on, and so it took no more work at 7 s
        (8.5, "lost", 1.0, False, "it gave up", True),  # that was long over
        (8.5, "draining", 4.0, False, "it gave up", True),  # it gave nothing up
        (8.5, "lost", 4.0, True, "it gave up", True),  # it holds a run: what it missed it missed now
        (8.5, "lost", 4.0, False, "no heartbeat", True),  # it was not asked
        (9.2, "lost", 4.0, False, "it gave up", True),  # only when it had been fenced
    ],
)
def test_one_that_gave_up_had_waited_for_an_answer_before(
    said_s: float, state: str, call_s: float, claims: bool, reason: str, asked: bool
) -> None:
    history = fenced((after(7), "draining"), (after(said_s), state), ended_ms=-1, reason=reason, claims=claims)
    fault = Fault(kind="endtxn-answer-lost", target="w9", began_ms=after(1), ended_ms=after(2))
    lives = (replace(life, call_ms=round(call_s * 1000)) if life.process == "w9" else life for life in history.noted.lives)
    noted = replace(history.noted, faults=(*history.noted.faults, fault), lives=tuple(lives))
    found = check(replace(history, noted=noted)).violations
    assert any(each.kind is Kind.UNEXPLAINED and each.subject == INCARNATION for each in found) is asked


@pytest.mark.parametrize(("target", "ended_s", "asked"), [("b1", 2, False), ("b1", 0.9, True), ("w9", 2, True)])
def test_one_that_read_back_in_vain_gave_up_long_after_a_broker_had_failed(target: str, ended_s: float, asked: bool) -> None:
    """It took no more work at 7 s and said at 8.9 s that it was lost, with a run in its hands; its calls last 4 s."""
    history = fenced((after(7), "draining"), (after(8.9), "lost"), ended_ms=-1, reason="it gave up", claims=True)
    fault = Fault(kind="kill-broker", target=target, began_ms=after(0.5), ended_ms=after(ended_s))
    broker = Life(process="b1", role=Role.BROKER, pid=99, began_ms=START_MS, ended_ms=-1, how="")
    lives = (replace(life, call_ms=4_000) if life.process == "w9" else life for life in (*history.noted.lives, broker))
    noted = replace(history.noted, faults=(*history.noted.faults, fault), lives=tuple(lives))
    found = check(replace(history, noted=noted)).violations
    assert any(each.kind is Kind.UNEXPLAINED and each.subject == INCARNATION for each in found) is asked


@pytest.mark.parametrize(
    ("drained_s", "ended_s", "claims", "asked"),
    [
        (-600, -595, True, True),  # it began to drain ten minutes ago, when a broker had failed; since then there was peace
        (-600, -87, True, True),
        (-600, -86, True, False),  # reading back in vain lasts a minute and a half, and a call and a time-out came before
        (-60, -66, True, True),
        (-60, -65, True, False),  # it drained for less long
        (-60, -66, False, True),
        (-60, -65, False, False),  # it held nothing: it missed the answer when it took no more work
    ],
)
def test_one_that_read_back_in_vain_did_so_for_no_longer_than_that_lasts(
    drained_s: float, ended_s: float, claims: bool, asked: bool
) -> None:
    """It said at 8.9 s that it was lost; its calls last 4 s."""
    history = fenced((after(drained_s), "draining"), (after(8.9), "lost"), ended_ms=-1, reason="it gave up", claims=claims)
    fault = Fault(kind="kill-broker", target="b1", began_ms=after(-700), ended_ms=after(ended_s))
    lives = (replace(life, call_ms=4_000) if life.process == "w9" else life for life in history.noted.lives)
    noted = replace(history.noted, faults=(*history.noted.faults, fault), lives=tuple(lives))
    found = check(replace(history, noted=noted)).violations
    assert any(each.kind is Kind.UNEXPLAINED and each.subject == INCARNATION for each in found) is asked


@pytest.mark.parametrize(("target", "ended_s", "asked"), [("w9>b1", -85, False), ("w9>b1", -87, True), ("w8>b1", -85, True)])
def test_a_fault_on_its_process_let_it_read_back_for_longer(target: str, ended_s: float, asked: bool) -> None:
    """A broker had failed when it began to drain, ten minutes ago; a link was cut later, and it was lost at 8.9 s."""
    history = fenced((after(-600), "draining"), (after(8.9), "lost"), ended_ms=-1, reason="it gave up", claims=True)
    failed = Fault(kind="kill-broker", target="b1", began_ms=after(-605), ended_ms=after(-600))
    cut = Fault(kind="cut", target=target, began_ms=after(-500), ended_ms=after(ended_s))
    lives = [replace(life, call_ms=4_000) if life.process == "w9" else life for life in history.noted.lives]
    lives.append(Life(process="w8", role=Role.WORKER, pid=8, began_ms=START_MS, ended_ms=-1, how=""))
    noted = replace(history.noted, faults=(*history.noted.faults, failed, cut), lives=tuple(lives))
    found = check(replace(history, noted=noted)).violations
    assert any(each.kind is Kind.UNEXPLAINED and each.subject == INCARNATION for each in found) is asked
