"""What the honest leader and its workers say beside the ledger: offers, grants, and that a worker is there."""

from __future__ import annotations

from dueline.schemas.run import Run
from dueline.schemas.work import Dispatch, Heartbeat, Signal
from tests.unit.proof.checker.log import PREFIX, Writing

DISPATCH, SIGNALS, WORKERS = f"{PREFIX}.dispatch.default", f"{PREFIX}.signals", f"{PREFIX}.workers"


def whisper(writing: Writing, run: Run) -> None:
    """What follows from this record: the offer, or the grant."""
    if run.state == "dispatched":
        offer = Dispatch(
            job=run.job, run=run.key, due_ms=run.due_ms, trigger=run.trigger, attempt=run.attempt, term=run.dispatch_term,
            seq=run.dispatch_seq, ahead=run.ahead, earlier=run.earlier, leader_ms=run.leader_ms,
        )  # fmt: skip
        writing.append(DISPATCH, offer, key=run.key.encode(), partition=run.partition)
    elif run.state == "running":
        signal = Signal(
            kind="grant", incarnation=run.incarnation, run=run.key, attempt=run.attempt, claim=run.claim,
            deadline_ms=run.deadline_ms,
        )  # fmt: skip
        writing.append(SIGNALS, signal, key=run.key.encode(), partition=run.home)


def beat(writing: Writing, worker: str, incarnation: str, home: int, handlers: list[str]) -> None:
    """A worker's first sign of life."""
    record = Heartbeat(
        incarnation=incarnation, worker=worker, queue="default", home=home, state="running", seq=1, slots=9, handlers=handlers
    )
    writing.append(WORKERS, record, key=incarnation.encode())
