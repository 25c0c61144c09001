"""What a leader reads in a round: heartbeats are heard however many events wait."""

from __future__ import annotations

from typing import Any

from dueline.scheduler.core.state import State
from dueline.scheduler.leader.intake import Intake
from dueline.scheduler.leader.jobs_reader import JobsReader
from dueline.scheduler.leader.queues import Queues
from dueline.scheduler.leader.roster import Roster
from dueline.scheduler.leader.unusable import Unusable
from dueline.schemas.base import NONE
from dueline.schemas.codec import encode
from dueline.schemas.topics import Namespace
from dueline.schemas.work import AttemptEvent, EventKind, Heartbeat, WorkerState
from tests.unit.leader.logs import ScriptedAdmin, ScriptedElection, ScriptedFencer, ScriptedKafka, ScriptedReader
from tests.unit.leader.manual import ManualClock, ManualContact

NAMESPACE = Namespace("t")
LIMIT = 10


def intake(admin: ScriptedAdmin | None = None, jobs: ScriptedReader | None = None, **readers: Any) -> Intake:
    """One that reads through these readers."""
    clock, admin = ManualClock(), admin or ScriptedAdmin()
    kafka: Any = ScriptedKafka(admin)
    fencer: Any = ScriptedFencer()
    return Intake(
        kafka,
        NAMESPACE,
        election=ScriptedElection(),
        jobs=JobsReader(jobs or ScriptedReader(), (NAMESPACE.jobs, 0)),
        roster=Roster(clock, ManualContact(clock), NAMESPACE, timeout_s=10, fresh_s=3),
        fencer=fencer,
        queues=Queues(admin, NAMESPACE, clock, Unusable(clock)),
        state=State(),
        **readers,
    )


def test_a_backlog_of_events_hides_no_heartbeat() -> None:
    """Given more events than many rounds read, and a heartbeat behind them; then the first round hears it."""
    event = AttemptEvent(
        kind=EventKind.CLAIMED, run="a@1", attempt=1, claim=1, incarnation="w.1", worker="w", queue="default", home=0,
        dispatch_term=0, dispatch_seq=1,
    )  # fmt: skip
    beat = Heartbeat(
        incarnation="w.1", worker="w", queue="default", home=0, state=WorkerState.RUNNING, seq=1, slots=4, partitions=[0]
    )
    events, beats = ScriptedReader(), ScriptedReader()
    for _ in range(LIMIT * 5):
        events.put(NAMESPACE.attempts, encode(event))
    for reader in (events, beats):
        reader.put(NAMESPACE.workers, encode(beat))
    reading = intake(reader=events, beats=beats)
    assert (NAMESPACE.workers, 0) not in events.assigned
    inputs = reading.read(0.0, LIMIT, lambda: 0, State())
    assert len(inputs.events) == LIMIT
    assert [each.incarnation for each in inputs.heartbeats] == ["w.1"]
    assert list(inputs.fleet.workers) == ["w.1"]


def test_jobs_counts_as_read_when_what_stood_there_at_an_earlier_question_is_read() -> None:
    """Given a topic that never rests, whose end is always ahead of the reader."""
    admin, jobs, partition = ScriptedAdmin(), ScriptedReader(), (NAMESPACE.jobs, 0)
    reading = intake(admin, jobs, reader=ScriptedReader(), beats=ScriptedReader())
    for now, end, read_to, expected in ((10, 5, 4, NONE), (20, 9, 6, 10), (30, 14, 9, 20), (40, 14, 14, 40), (50, 99, 13, NONE)):
        admin.ends[partition], jobs.at = end, read_to
        assert reading.read_jobs_ms(now) == expected
