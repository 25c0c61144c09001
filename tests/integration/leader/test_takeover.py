"""The rules of the take-over, L3-L8 and L12, on a real broker; where it cannot be brought to it, through a wrapped port."""

from __future__ import annotations

import threading
from time import monotonic, time

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from dueline.scheduler.core.ports import (
    Aborted,
    Assignment,
    Delivered,
    Doubtful,
    GroupReader,
    Kafka,
    Partition,
    Refused,
)
from dueline.scheduler.kafka.clock import SystemClock
from dueline.scheduler.kafka.topics import init_topics
from dueline.scheduler.leader.fold import Fold
from dueline.scheduler.leader.settings import SchedulerSettings
from dueline.scheduler.leader.takeover import Lead, take_over
from dueline.schemas.topics import catalogue
from tests.broker import TestBroker
from tests.integration.leader.rig import RealWrite, Rig, Watch, WritersWrapped
from tests.integration.leader.wrapped import Lagging, LossyKafka, WithoutKey

DEADLINE_S = 20.0
SESSION_S = 10.0
"""Where generations are counted: a busy machine lets a session of one second lapse, and a member joins again."""


def test_l3_t22_a_refused_barrier_leaves_no_leader_and_no_barrier(rig: Rig) -> None:
    """Given a captured assignment whose generation is over, when it takes over, then nothing is visible and nothing leads."""
    first = rig.cluster.group_reader(rig.namespace.scheduler_group, rig.namespace.control, session_timeout_s=1.0)
    stale = _assigned(first, rig)
    second = rig.cluster.group_reader(rig.namespace.scheduler_group, rig.namespace.control, session_timeout_s=1.0)
    _join_until(second, first, stale.serial)
    fold = Fold(rig.cluster.log_reader("fold"), rig.namespace, SystemClock())
    try:
        with pytest.raises(Refused):
            _take_over(rig, stale, fold, rig.cluster)
        ledger = rig.ledger()
        ledger.settle(_ends(rig))
        assert ledger.barriers() == []
    finally:
        fold.close()
        first.close()
        second.close()


def test_l3_leads_only_after_everything_committed_before_the_barrier_was_folded(rig: Rig) -> None:
    """Given a fold that lags behind, when the barrier is committed, then the state to lead from has what stood before it."""
    with rig.scheduler():
        rig.publish("yearly", "0 0 1 1 *")
        ledger = rig.ledger()
        ledger.until(lambda seen: seen.versions("yearly"), "a version")
    election = rig.cluster.group_reader(rig.namespace.scheduler_group, rig.namespace.control, session_timeout_s=1.0)
    fold = Fold(Lagging(rig.cluster.log_reader("fold"), monotonic() + 3.0), rig.namespace, SystemClock())
    try:
        lead = _take_over(rig, _assigned(election, rig), fold, rig.cluster)
        lead.writer.close()
        assert lead.state.jobs.get("yearly") is not None
    finally:
        fold.close()
        election.close()


def test_l4_t9_the_term_grows_though_the_generation_restarts(rig: Rig, broker: TestBroker) -> None:
    """Given a group that was deleted between two leaders, then generations restart and terms do not."""
    ledger = rig.ledger()
    for round_ in (1, 2, 3):
        with rig.scheduler(session_timeout_s=SESSION_S):
            _wait_for_term(ledger, round_)
        _delete_group(broker, rig.namespace.scheduler_group)
    generations = [barrier.generation for barrier in ledger.barriers()]
    terms = list(dict.fromkeys(ledger.terms()))
    assert set(generations) == {1}
    assert len(terms) == 3
    assert terms == sorted(terms)


def test_l4_t10_the_term_grows_though_the_group_changed_its_protocol(rig: Rig, broker: TestBroker) -> None:
    """Given a group that a member of the other protocol used between two leaders, then generations restart and terms do not."""
    ledger = rig.ledger()
    for round_ in (1, 2):
        with rig.scheduler(session_timeout_s=SESSION_S):
            _wait_for_term(ledger, round_)
        _visit_by_the_other_protocol(rig, broker)
    with rig.scheduler(session_timeout_s=SESSION_S):
        _wait_for_term(ledger, 3)
    terms = list(dict.fromkeys(ledger.terms()))
    assert len(terms) == 3
    assert terms == sorted(terms)
    assert {barrier.generation for barrier in ledger.barriers()} == {1}, "a group that was only empty goes on counting"


def test_l6_positions_come_from_the_ledger_not_from_the_group(rig: Rig, broker: TestBroker) -> None:
    """Given commands that were applied and a group whose offsets are gone, when another leads, none is applied again."""
    ledger = rig.ledger()
    with rig.scheduler():
        rig.publish("yearly", "0 0 1 1 *")
        ledger.until(lambda seen: seen.versions("yearly"), "a version")
        rig.command("pause", job="yearly")
        ledger.until(lambda seen: len(seen.versions("yearly")) == 2, "paused")
    _delete_group(broker, rig.namespace.scheduler_group)
    with rig.scheduler():
        rig.command("resume", job="yearly")
        ledger.until(lambda seen: len(seen.versions("yearly")) >= 3, "resumed")
        letters = rig.watch(rig.namespace.rejected)
        letters.poll(0.5)
        assert [letter.error for letter in letters.rejected()] == []
    assert [version.change for version in ledger.versions("yearly")] == ["defined", "paused", "resumed"]


def test_l6_another_topic_of_the_same_name_is_an_alarm_until_a_person_accepts_it(
    rig: Rig, broker: TestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Given `jobs` deleted and made anew, then it is not read and no job is deleted, until somebody accepts it."""
    ledger = rig.ledger()
    with rig.scheduler():
        rig.publish("yearly", "0 0 1 1 *")
        ledger.until(lambda seen: seen.versions("yearly"), "a version")
    _make_anew(rig, broker, rig.namespace.jobs)
    rig.publish("other", "0 0 1 1 *")
    with rig.scheduler():
        ledger.until(lambda seen: len(set(seen.terms())) == 2, "the second term")
        rig.command("pause", job="yearly")
        ledger.until(lambda seen: len(seen.versions("yearly")) == 2, "commands are still served")
        assert ledger.versions("other") == []
        assert f"dueline accept-positions {rig.namespace.jobs}" in caplog.text
        rig.command("accept-positions", topic=rig.namespace.jobs)
        ledger.until(lambda seen: seen.versions("other"), "the new topic is read")
    assert [version.change for version in ledger.versions("yearly")] == ["defined", "paused"]


@pytest.mark.parametrize("happened", [True, False], ids=["it-committed", "it-did-not"])
def test_l7_a_doubtful_commit_is_decided_by_what_is_read_back(rig: Rig, happened: bool) -> None:
    """T12. Given a commit of which nobody knows whether it happened, then it takes over anew; nothing is lost or doubled."""
    doubted = threading.Event()

    def around(write: RealWrite) -> list[Delivered]:
        if "Run" not in write.types() or doubted.is_set():
            return write.commit()
        doubted.set()
        if happened:
            write.commit()
        else:
            with pytest.raises(Aborted):
                write.commit(before_commit=lambda _: "the test keeps it back")
        raise Doubtful("the test says so")

    wrapped = WritersWrapped(rig.cluster, around)
    _run_jobs_and_check(rig, wrapped)  # type: ignore[arg-type]
    assert doubted.is_set()
    assert wrapped.opened >= 2, "after doubt: new producers"


def test_l7_what_does_not_come_back_ends_the_term(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Given a fold reader that loses one committed record, then the leader notices, says so and takes over anew."""
    lossy = LossyKafka(rig.cluster)
    _run_jobs_and_check(rig, lossy)  # type: ignore[arg-type]
    assert lossy.lost, "the reader lost nothing: the test proves nothing"
    assert "was expected" in caplog.text


def test_l5_a_transaction_is_written_versions_ledger_derived_with_positions_last(rig: Rig) -> None:
    """Given any transaction of a leader, then its groups come in the order of L5."""
    seen: list[list[str]] = []

    def around(write: RealWrite) -> list[Delivered]:
        seen.append([",".join(dict.fromkeys(dict(r.headers)["type"].decode() for r in group)) for group in write.groups])
        return write.commit()

    wrapped = WritersWrapped(rig.cluster, around)
    with rig.scheduler(kafka=wrapped):  # type: ignore[arg-type]
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        rig.publish("bad", "99 * * * *")
        ledger = rig.ledger()
        ledger.until(lambda watch: len(watch.due_times("tick")) >= 2, "due times")
    order = {"JobVersion": 0, "Run": 1, "Summary": 1, "Fence": 1, "Positions": 1}
    assert any(len(groups) >= 2 for groups in seen)
    for groups in seen[1:]:
        ranks = [max(order.get(kind, 2) for kind in group.split(",")) for group in groups]
        assert ranks == sorted(ranks), groups
        ledger_group = [group for group, rank in zip(groups, ranks, strict=True) if rank == 1]
        assert all(group.split(",")[-1] == "Positions" for group in ledger_group)


def test_l8_t6_fenced_by_a_stale_owner_the_leader_comes_back_and_nothing_is_doubled(rig: Rig) -> None:
    """Given somebody who initialises the leader's ids late, then the true leader re-checks, re-initialises and goes on."""
    with rig.scheduler():
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        ledger = rig.ledger()
        ledger.until(lambda seen: seen.due_times("tick"), "a due time")
        terms = len(set(ledger.terms()))
        intruder = rig.cluster.writers().open(rig.namespace.leader_ids)
        ledger.until(lambda seen: len(set(seen.terms())) > terms, "another term of the same leader")
        count = len(ledger.due_times("tick"))
        ledger.until(lambda seen: len(seen.due_times("tick")) >= count + 2, "it goes on")
        intruder.close()
    _check_chain(ledger, "tick")


def test_l8_t8_a_standby_joins_while_the_leader_writes(rig: Rig) -> None:
    """Given a leader and a standby that joins, then the group has a new generation, the leader leads on, nothing is doubled."""
    with rig.scheduler():
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        ledger = rig.ledger()
        ledger.until(lambda seen: seen.due_times("tick"), "a due time")
        with rig.scheduler():
            ledger.until(lambda seen: len({b.generation for b in seen.barriers()}) >= 2, "a new generation")
            count = len(ledger.due_times("tick"))
            ledger.until(lambda seen: len(seen.due_times("tick")) >= count + 2, "runs go on")
    _check_chain(ledger, "tick")


def test_a_stopped_leader_hands_over_at_once(rig: Rig) -> None:
    """Given a standby, when the leader is stopped in an orderly way, then the next one leads without waiting for the session."""
    leader = rig.start(session_timeout_s=10.0)
    ledger = rig.ledger()
    rig.publish("tick", {"every": "1s"}, overlap="allow")
    ledger.until(lambda seen: seen.due_times("tick"), "a due time")
    with rig.scheduler(session_timeout_s=10.0):
        ledger.until(lambda seen: len(set(seen.terms())) >= 2, "the standby joined")
        terms = len(set(ledger.terms()))
        stopped = monotonic()
        leader.stop()
        ledger.until(lambda seen: len(set(seen.terms())) > terms, "the standby leads", deadline_s=8.0)
        assert monotonic() - stopped < 8.0  # less than the session
    _check_chain(ledger, "tick")


def test_time_a_run_that_would_be_early_is_not_committed(rig: Rig) -> None:
    """Given a clock of `runs` that went back, when a run would stand before its due time, then the transaction is aborted and
    the run comes later, once."""
    refused = threading.Event()

    def around(write: RealWrite) -> list[Delivered]:
        if "Run" not in write.types() or refused.is_set():
            return write.commit()
        refused.set()
        check = write.before_commit
        assert check is not None

        def back(delivered: object) -> str | None:
            assert isinstance(delivered, list)
            earlier = [
                Delivered(topic=d.topic, partition=d.partition, offset=d.offset, append_ms=d.append_ms - 60_000)
                for d in delivered
            ]
            return check(earlier)

        return write.commit(before_commit=back)

    _run_jobs_and_check(rig, WritersWrapped(rig.cluster, around))  # type: ignore[arg-type]
    assert refused.is_set()


def test_l12_a_job_that_is_gone_when_jobs_is_read_whole_was_deleted(rig: Rig) -> None:
    """Given a position older than half the tombstone retention and a job whose records are gone, then it is deleted, and the
    jobs that are there stay."""
    ledger = rig.ledger()
    with rig.scheduler():
        rig.publish("stays", "0 0 1 1 *")
        rig.publish("goes", "0 0 1 1 *")
        ledger.until(lambda seen: seen.versions("goes") and seen.versions("stays"), "both versions")
        ledger.until(lambda seen: seen.jobs_read(), "`jobs` was read to its end")
    without = WithoutKey(rig.cluster, rig.namespace.jobs, b"goes")
    with rig.scheduler(kafka=without, tombstone_retention_s=0.0):  # type: ignore[arg-type]
        ledger.until(lambda seen: len(seen.versions("goes")) == 2, "the deletion")
    deletion = ledger.versions("goes")[1]
    assert deletion.change == "deleted"
    assert deletion.effective_ms <= time() * 1000
    assert len(ledger.versions("stays")) == 1


# -- helpers -----------------------------------------------------------------------------------------------------------


def _run_jobs_and_check(rig: Rig, kafka: Kafka) -> None:
    with rig.scheduler(kafka=kafka, echo_timeout_s=3.0):
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        ledger = rig.ledger()
        ledger.until(lambda seen: len({barrier.id for barrier in seen.barriers()}) >= 2, "a second take-over")
        count = len(ledger.due_times("tick"))
        ledger.until(lambda seen: len(seen.due_times("tick")) >= count + 2, "runs go on")
    _check_chain(ledger, "tick")


def _wait_for_term(ledger: Watch, number: int) -> None:
    ledger.until(lambda seen: len(set(seen.terms())) >= number, f"term number {number}")


def _check_chain(ledger: Watch, job: str) -> None:
    """Each due time once, none left out, whichever term wrote it."""
    due_times = ledger.due_times(job)
    assert due_times == list(range(due_times[0], due_times[-1] + 1, 1000))
    firsts = [run for run in ledger.all_of(job) if run.attempt == 0 and run.state == "waiting"]
    assert len(firsts) == len({run.key for run in firsts}), "a due time was decided twice"


def _assigned(election: GroupReader, rig: Rig) -> Assignment:
    end = monotonic() + DEADLINE_S
    while monotonic() < end:
        assignment, _ = election.poll(0.1, 1)
        if assignment is not None and (rig.namespace.control, 0) in assignment.partitions:
            return assignment
    raise AssertionError("never assigned")


def _join_until(joining: GroupReader, holder: GroupReader, serial: int) -> None:
    end = monotonic() + DEADLINE_S
    while _serial(holder) == serial:
        assert monotonic() < end, "no rebalance came"
        joining.poll(0.05, 1)
        holder.poll(0.05, 1)


def _serial(reader: GroupReader) -> int:
    assignment = reader.assignment()
    return assignment.serial if assignment is not None else -1


def _take_over(rig: Rig, assignment: Assignment, fold: Fold, kafka: Kafka) -> Lead:
    return take_over(
        kafka,
        rig.namespace,
        assignment=assignment,
        fold=fold,
        clock=SystemClock(),
        settings=SchedulerSettings(process="test"),
        doubt_bound_s=20.0,
        barrier_id="the-test's-own",
        keep_assigned=lambda: True,
    )


def _ends(rig: Rig) -> dict[Partition, int]:
    admin = rig.cluster.admin()
    return {(topic, 0): admin.end_offset((topic, 0)) for topic in (rig.namespace.runs, rig.namespace.job_versions)}


def _delete_group(broker: TestBroker, group: str) -> None:
    """Once its members have left; the broker needs a moment to see that."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    end = monotonic() + DEADLINE_S
    while True:
        error = admin.delete_consumer_groups([group])[group].exception()
        if error is None:
            return
        assert monotonic() < end, error


def _visit_by_the_other_protocol(rig: Rig, broker: TestBroker) -> None:
    """A member that speaks KIP-848 joins the election group, once it is empty, and leaves it."""
    visitor = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers, "group.id": rig.namespace.scheduler_group,
            "group.protocol": "consumer", "enable.auto.commit": False, "log_level": 0,
        }
    )  # fmt: skip
    try:
        visitor.subscribe([rig.namespace.control])
        end = monotonic() + DEADLINE_S
        while not visitor.assignment():
            assert monotonic() < end, "the visitor got nothing"
            visitor.poll(0.1)
    finally:
        visitor.close()


def _make_anew(rig: Rig, broker: TestBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    admin.delete_topics([topic])[topic].result(10)
    end = monotonic() + DEADLINE_S
    while rig.cluster.admin().partitions(topic):
        assert monotonic() < end, "the topic is still there"
    specs = catalogue(rig.namespace, ["default"], partitions=4, replication_factor=1, min_insync_replicas=1, development=True)
    init_topics(rig.cluster.kafka_admin(), rig.namespace, specs)
