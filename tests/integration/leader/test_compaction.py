"""T20 and T21: what compaction really takes from `jobs` and the ledger, on a broker that cleans within seconds, and what a
scheduler makes of the rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from time import monotonic

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from dueline.scheduler.core.ports import Assignment, Partition, Received
from dueline.scheduler.core.state import NUMBERS, State
from dueline.scheduler.kafka.broker import EmbeddedBroker
from dueline.scheduler.kafka.clock import SystemClock
from dueline.scheduler.leader.fold import Fold
from dueline.scheduler.leader.intake import Intake
from dueline.scheduler.leader.settings import SchedulerSettings
from dueline.scheduler.leader.takeover import Overtaken, take_over
from dueline.schemas.base import NONE
from dueline.schemas.codec import decode
from dueline.schemas.ledger import Barrier
from tests.broker import BrokerKind
from tests.fault.raw import opened
from tests.integration.leader.rig import Rig
from tests.integration.leader.wrapped import Lagging

DEADLINE_S = 40.0
EAGER = {"log.cleaner.backoff.ms": "100"}
"""A broker looks for something to clean that often."""
AT_ONCE = {
    "segment.ms": "50",  # only closed segments are cleaned
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",  # of tombstones and transaction markers, from their first cleaning on
}
FILLER = b"filler"
MINE = "the-test's-own"


@pytest.fixture(scope="module")
def cleaning(broker_kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that cleans at once what a topic lets it clean."""
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip("needs a broker that cleans its logs within seconds: use --broker embedded")
    with EmbeddedBroker(tmp_path_factory.mktemp("cleaning"), overrides=EAGER) as started:
        yield started


@pytest.fixture
def rig(cleaning: EmbeddedBroker, namespace: str) -> Iterator[Rig]:
    """On that broker."""
    made = Rig(cleaning.bootstrap_servers, namespace)
    try:
        yield made
    finally:
        made.close()


def test_t20_a_job_whose_tombstone_expired_before_it_was_read_is_not_brought_back(rig: Rig) -> None:
    """Given a job that its user deletes while nobody reads `jobs`, and a compaction that has taken the record and then its
    tombstone, when a scheduler leads that was away for longer than half of the retention, then the job is deleted and the
    other one stays. Negative control: one that believes in the retention goes on with the deleted job."""
    ledger, jobs = rig.ledger(), rig.namespace.jobs
    with rig.scheduler():
        for job in ("stays", "goes"):
            rig.publish(job, {"every": "1s"}, overlap="allow", dispatch_ahead="0s")
        ledger.until(lambda seen: seen.due_times("goes") and seen.due_times("stays"), "due times of both")
        ledger.until(lambda seen: seen.jobs_read(), "`jobs` was read to its end")
    rig.send(jobs, b"goes", None)
    compacted(rig, jobs, lambda log: all(record.key != b"goes" for record in log))

    with rig.scheduler():
        count = len(ledger.due_times("goes"))
        ledger.until(lambda seen: len(seen.due_times("goes")) > count + 2, "control: it is there again")
        assert [version.change for version in ledger.versions("goes")] == ["defined"]
    with rig.scheduler(tombstone_retention_s=0.0):
        ledger.until(lambda seen: len(seen.versions("goes")) == 2, "the deletion")
        count = len(ledger.due_times("stays"))
        ledger.until(lambda seen: len(seen.due_times("stays")) > count + 2, "the other one goes on")
    deletion = ledger.versions("goes")[1]
    assert deletion.change == "deleted"
    beyond = [due for due in ledger.due_times("goes") if due >= deletion.effective_ms]
    assert set(beyond) <= set(deletion.taken)  # granted before the whole read found it gone
    assert [version.change for version in ledger.versions("stays")] == ["defined"]
    # And the ledger itself needs no tombstone, so a fold of it cannot miss one however slow it is.
    assert [record.key for record in ledger.received if record.value is None] == []


def test_t20_a_leader_that_never_recorded_how_far_it_read_is_not_believed_either(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a leader that ended before it recorded that it had read `jobs`, and a deletion of which compaction left nothing, then
    the next one reads `jobs` whole and deletes the job as of now, however long tombstones are kept. Negative control: one that
    takes "never" for "just now" goes on with it."""
    ledger = rig.ledger()
    rig.publish("goes", {"every": "1s"}, overlap="allow", misfire="all", dispatch_ahead="0s")
    with monkeypatch.context() as patch:
        patch.setattr(Intake, "read_jobs_ms", lambda *_: NONE)
        with rig.scheduler():
            ledger.until(lambda seen: seen.due_times("goes"), "a due time")
    assert not ledger.jobs_read(), "it was recorded: the test proves nothing"
    rig.send(rig.namespace.jobs, b"goes", None)
    compacted(rig, rig.namespace.jobs, lambda log: all(record.key != b"goes" for record in log))
    with rig.scheduler():
        ledger.until(lambda seen: len(seen.versions("goes")) == 2, "the deletion")
        deletion = ledger.versions("goes")[1]
        ledger.until(lambda seen: seen.due_times("goes")[-1] + 1_000 >= deletion.effective_ms, "all that was due before")
    assert deletion.change == "deleted"
    dues = ledger.due_times("goes")
    assert dues == list(range(dues[0], dues[-1] + 1, 1_000)), "a due time before the deletion was left out"


def test_l12_a_deletion_that_still_stands_unread_is_read_in_its_turn(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a ledger in which it was never recorded that `jobs` was read, and a tombstone that nobody has read yet, then it
    counts with its own time. Negative control: one that looks only at what lives would delete the job as of its own beginning."""
    ledger = rig.ledger()
    rig.publish("goes", {"every": "1s"}, overlap="allow", dispatch_ahead="0s")
    with monkeypatch.context() as patch:
        patch.setattr(Intake, "read_jobs_ms", lambda *_: NONE)
        with rig.scheduler():
            ledger.until(lambda seen: seen.due_times("goes"), "a due time")
    tombstone = rig.send(rig.namespace.jobs, b"goes", None)
    with rig.scheduler():
        ledger.until(lambda seen: len(seen.versions("goes")) == 2, "the deletion")
    deletion = ledger.versions("goes")[1]
    assert (deletion.change, deletion.by, deletion.source_offset) == ("deleted", "", tombstone.offset)
    assert deletion.effective_ms == tombstone.append_ms


def test_t21_a_fold_of_a_compacted_ledger_ends_and_knows_what_it_knew(rig: Rig, cleaning: EmbeddedBroker) -> None:
    """Given a ledger of which compaction took records and transaction markers, with an aborted transaction at its end, then a
    fold from its beginning reaches the end and has the state of a fold that read it whole. Negative control: the last
    record's offset + 1 never reaches the end."""
    runs = (rig.namespace.runs, 0)
    for _ in range(2):
        with rig.scheduler():
            rig.publish("tick", {"every": "1s"}, overlap="allow", misfire="all")
            ledger = rig.ledger()
            count = len(ledger.terms())
            ledger.until(lambda seen, count=count: len(seen.terms()) >= count + 4, "some transactions")  # type: ignore[misc]
    before = folded(rig)
    whole = committed(rig, runs[0])
    for topic in (rig.namespace.runs, rig.namespace.job_versions):
        compacted(rig, topic, lambda log: len([one for one in log if one.key == b"!barrier"]) == 1)
    with opened(cleaning.bootstrap_servers, runs[0], 0, 60_000) as torn:
        torn.abort_transaction(10)

    log, end = committed(rig, runs[0]), rig.cluster.admin().end_offset(runs)
    assert len([one for one in log if one.value is not None]) < len(whole), "nothing was compacted away: the test proves nothing"
    offsets = [one.offset for one in log]
    assert len(offsets) < offsets[-1] - offsets[0], "no gap: the test proves nothing"
    assert offsets[-1] + 1 < end, "negative control: by its last record a fold would wait for ever"
    assert differences(before, folded(rig)) == []


def test_t21_a_take_over_whose_barrier_was_compacted_away_ends(rig: Rig) -> None:
    """Given a take-over that is slow to read its barrier, while others led and compaction took that barrier, then it ends without
    leading, by the later barrier that it reads. Negative control: one that looks for its own barrier alone would go on."""
    ledger = rig.ledger()
    election = rig.cluster.group_reader(rig.namespace.scheduler_group, rig.namespace.control, session_timeout_s=1.0)
    assignment = assigned(election.poll)
    patient = Held(rig)
    ended: list[BaseException] = []
    slow = threading.Thread(target=lead, args=(rig, assignment, Fold(patient, rig.namespace, SystemClock()), ended))
    slow.start()
    try:
        ledger.until(lambda seen: any(barrier.id == MINE for barrier in seen.barriers()), "its barrier is committed")
        election.close()
        with rig.scheduler():
            ledger.until(lambda seen: seen.terms(), "another one leads")
        compacted(rig, rig.namespace.runs, lambda log: not any(is_mine(record) for record in log))
        assert ended == [], "it ended before it had read anything"
    finally:
        patient.go.set()
        slow.join(DEADLINE_S)
    assert not slow.is_alive()
    assert [type(error) for error in ended] == [Overtaken]
    assert "a later barrier stands in the ledger" in str(ended[0])

    fold = Fold(rig.cluster.log_reader("fold"), rig.namespace, SystemClock())
    try:
        reach(rig, fold)
        assert fold.saw_barrier(MINE) is None, "control: all is read, and a wait for that barrier alone would go on"
        assert fold.overtaken(MINE, 0)
    finally:
        fold.close()


# --- steps ------------------------------------------------------------------------------------------------------------


class Held(Lagging):
    """The fold's reader, which brings nothing until it may go."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.cluster.log_reader("fold"), 0.0)
        self.go = threading.Event()

    def poll(self, timeout_s: float, limit: int) -> list[Received]:
        return super().poll(timeout_s, limit) if self.go.wait(timeout_s) else []


def lead(rig: Rig, assignment: Assignment, fold: Fold, ended: list[BaseException]) -> None:
    """Take over; what ended it, if it did not lead. One that nothing ends loses its assignment in the end, and says so."""
    until_s = monotonic() + DEADLINE_S
    try:
        take_over(
            rig.cluster, rig.namespace, assignment=assignment, fold=fold, clock=SystemClock(),
            settings=SchedulerSettings(process="slow"), doubt_bound_s=20.0, barrier_id=MINE,
            keep_assigned=lambda: monotonic() < until_s,
        ).writer.close()  # fmt: skip
    except Overtaken as error:
        ended.append(error)
    finally:
        fold.close()


def is_mine(record: Received) -> bool:
    """Whether it is the slow take-over's barrier."""
    found = decode(record.value) if record.value is not None else None
    return isinstance(found, Barrier) and found.id == MINE


def assigned(poll: Callable[[float, int], tuple[Assignment | None, list[Received]]]) -> Assignment:
    """Once the control partition is there."""
    end_s = monotonic() + DEADLINE_S
    while monotonic() < end_s:
        assignment, _ = poll(0.1, 1)
        if assignment is not None and assignment.partitions:
            return assignment
    raise AssertionError("never assigned")


def compacted(rig: Rig, topic: str, done: Callable[[list[Received]], bool]) -> None:
    """Let the broker clean the topic, until that is so. A filler (a tombstone of nobody's key) closes one segment after another;
    then the topic is as it was."""
    configure(rig, topic, AT_ONCE)
    end_s = monotonic() + DEADLINE_S
    while True:
        rig.send(topic, FILLER, None, partition=0)
        log = committed(rig, topic)
        if done(log):
            break
        assert monotonic() < end_s, f"{topic} still has {[(one.offset, one.key) for one in log]}"
        time.sleep(0.1)  # awaited: the broker's cleaner, which works every 0.1 s
    configure(rig, topic, {"segment.ms": "86400000", "delete.retention.ms": "86400000"})


def configure(rig: Rig, topic: str, settings: dict[str, str]) -> None:
    """Change these settings of the topic."""
    changes = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    rig.cluster.kafka_admin().client.incremental_alter_configs([resource])[resource].result(10)


def committed(rig: Rig, topic: str) -> list[Received]:
    """Every committed record that stands in the topic now."""
    partition: Partition = (topic, 0)
    admin = rig.cluster.admin()
    start, end = admin.start_offset(partition), admin.end_offset(partition)
    return list(admin.read_range(partition, start, end, timeout_s=DEADLINE_S))


def folded(rig: Rig) -> State:
    """The state of a new fold that read all there is."""
    fold = Fold(rig.cluster.log_reader("fold"), rig.namespace, SystemClock())
    try:
        return reach(rig, fold)
    finally:
        fold.close()


def reach(rig: Rig, fold: Fold) -> State:
    """Fold until the ends; the state."""
    ends = {topic: rig.cluster.admin().end_offset((topic, 0)) for topic in (rig.namespace.runs, rig.namespace.job_versions)}
    end_s = monotonic() + DEADLINE_S
    while not fold.passed(ends):
        assert monotonic() < end_s, f"the fold does not reach {ends}"
        fold.poll(0.1)
    return fold.state


def differences(one: State, other: State) -> list[str]:
    """What two states differ in, of what decides anything later."""
    tables = ("jobs", "runs", "manual", "engaged", "fences", "positions", "dues", "last_due")
    found = [name for name in tables if dict(getattr(one, name).items()) != dict(getattr(other, name).items())]
    return found + [name for name in NUMBERS if getattr(one, name) != getattr(other, name)]
