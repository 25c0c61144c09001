"""Mutations of a worker's last word: it said that it stopped while it went on, or while it held claims."""

from __future__ import annotations

from dataclasses import replace

from dueline.schemas.codec import encode
from dueline.schemas.work import AttemptEvent, Heartbeat, HeldClaim
from proof.history.entry import Entry
from proof.history.history import History
from tests.unit.proof.checker.crew import ATTEMPTS
from tests.unit.proof.checker.edit import Broken, chains, changed, of_topic, record_of, with_entries
from tests.unit.proof.checker.whispers import WORKERS
from tests.unit.proof.checker.world import BOUNDS

HELD = HeldClaim(run="a@2026-11-30T00:53:22Z", attempt=1, claim=1, state="running")


def saying(history: History, incarnation: str, at_ms: int, *, state: str = "stopped", claims: bool = False) -> History:
    """This incarnation says so then, as the last record of `workers`."""
    heard = [beat for entry in history.log[WORKERS, 0] if isinstance(beat := record_of(entry), Heartbeat)]
    own = next(beat for beat in heard if beat.incarnation == incarnation)
    word = replace(own, state=state, seq=own.seq + 1, claims=[HELD] if claims else [])
    entries = history.log[WORKERS, 0]
    entry = Entry(
        topic=WORKERS, partition=0, offset=entries[-1].offset + 1, append_ms=at_ms, key=incarnation.encode(), value=encode(word)
    )
    return with_entries(history, (WORKERS, 0), [*entries, entry])


def stop_too_early(history: History) -> Broken:
    """It was granted a run, which ended after that word."""
    granted = {
        (run.incarnation, run.claim): history.log["proof.runs", 0][place].append_ms
        for chain in chains(history).values()
        for place, run in chain
        if run.state == "running"
    }
    for partition, place in of_topic(history, ATTEMPTS):
        event = record_of(history.log[partition][place])
        assert isinstance(event, AttemptEvent)
        begun, told = granted.get((event.incarnation, event.claim)), history.log[partition][place].append_ms
        if event.outcome and begun is not None and begun + 2 * BOUNDS.skew_ms < told:
            yield f"{event.run} {event.attempt}", saying(history, event.incarnation, told - BOUNDS.skew_ms - 1)


def stop_at_first(history: History) -> Broken:
    """The first word of one that wrote something was its last."""
    wrote = {event.incarnation for event in _events(history)}
    for partition, place in of_topic(history, WORKERS):
        beat = record_of(history.log[partition][place])
        assert isinstance(beat, Heartbeat)
        if beat.incarnation in wrote:
            yield beat.incarnation, changed(history, partition, place, replace(beat, state="stopped", claims=[]))


def stop_with_claims(history: History) -> Broken:
    """It had written all that it had."""
    for incarnation in sorted({event.incarnation for event in _events(history)}):
        end_ms = max(entry.append_ms for entries in history.log.values() for entry in entries)
        yield incarnation, saying(history, incarnation, end_ms + BOUNDS.skew_ms, claims=True)


def _events(history: History) -> list[AttemptEvent]:
    found = (record_of(history.log[partition][place]) for partition, place in of_topic(history, ATTEMPTS))
    return [event for event in found if isinstance(event, AttemptEvent)]
