"""One leader on a real broker: definitions, due times, commands, refusals."""

from __future__ import annotations

import itertools
import time

import pytest
from confluent_kafka.admin import AdminClient

from dueline.schemas.run import RunState
from dueline.schemas.work import Heartbeat
from tests.broker import TestBroker
from tests.integration.leader.rig import Rig, Watch


def test_a_published_job_gets_a_version_and_a_run_for_each_due_time(rig: Rig) -> None:
    with rig.scheduler():
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        ledger = rig.ledger()
        ledger.until(lambda seen: len(seen.due_times("tick")) >= 3, "three due times")
    [version] = ledger.versions("tick")
    due_times = ledger.due_times("tick")
    assert version.version == 1
    assert due_times[0] >= version.effective_ms
    assert due_times == list(range(due_times[0], due_times[-1] + 1, 1000))
    runs = ledger.runs("tick")
    assert {run.previous_due_ms for run in runs.values()} == {-1, *due_times[:-1]}


def test_no_run_record_stands_before_its_due_time_by_the_clock_of_runs(rig: Rig) -> None:
    with rig.scheduler():
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        ledger = rig.ledger()
        ledger.until(lambda seen: len(seen.due_times("tick")) >= 3, "three due times")
    appended = {(r.key or b"").decode(): r.append_ms for r in ledger.received}
    for key, run in ledger.runs("tick").items():
        assert appended[key] >= run.due_ms


def test_bad_input_is_refused_with_coordinates_and_others_keep_their_times(rig: Rig) -> None:
    namespace = rig.namespace
    with rig.scheduler():
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        placed = {
            "undecodable": rig.send(namespace.jobs, b"garbage", b"\xc3\x01 not avro"),
            "invalid-job": rig.send(namespace.jobs, b"odd", b'{"id":"odd","schedule":"* * * * *","handler":"h","colour":1}'),
            "invalid-schedule": rig.send(namespace.jobs, b"bad", b'{"id":"bad","schedule":"99 * * * *","handler":"h"}'),
            "unknown-queue": rig.send(
                namespace.jobs, b"lost", b'{"id":"lost","schedule":"* * * * *","handler":"h","queue":"nowhere"}'
            ),
            "key-mismatch": rig.send(namespace.jobs, b"other", b'{"id":"one","schedule":"* * * * *","handler":"h"}'),
        }
        commands = {
            "undecodable": rig.send(namespace.control, None, b"\xc3\x01 not avro"),
            "invalid-command": rig.send(namespace.control, None, b'{"id":"x","kind":"explode","job":"tick"}'),
            "unknown-job": rig.send(namespace.control, None, b'{"id":"y","kind":"trigger","job":"none"}'),
            "not-active": rig.send(namespace.control, None, b'{"id":"z","kind":"cancel","run":"tick@none"}'),
        }
        letters = rig.watch(namespace.rejected)
        letters.until(lambda seen: len(seen.rejected()) >= len(placed) + len(commands), "all refusals")
        ledger = rig.ledger()
        ledger.until(lambda seen: len(seen.due_times("tick")) >= 2, "tick goes on")
    refused = {(letter.topic, letter.error): letter for letter in letters.rejected()}
    for error, place in placed.items():
        letter = refused[namespace.jobs, error]
        assert (letter.partition, letter.offset) == (place.partition, place.offset)
        assert letter.detail
    for error, place in commands.items():
        letter = refused[namespace.control, error]
        assert (letter.partition, letter.offset) == (place.partition, place.offset)
    assert "nowhere" in refused[namespace.jobs, "unknown-queue"].detail
    assert "dueline init --queue nowhere" in refused[namespace.jobs, "unknown-queue"].detail


def test_commands_act_once_each(rig: Rig) -> None:
    with rig.scheduler():
        rig.publish("yearly", "0 0 1 1 *")
        ledger = rig.ledger()
        ledger.until(lambda seen: seen.versions("yearly"), "the first version")
        command = rig.command("trigger", job="yearly", payload='{"extra":1}')
        key = f"yearly@!{command}"
        ledger.until(lambda seen: key in seen.runs(), "the manual run")
        assert ledger.runs()[key].job.payload == '{"extra":1}'
        rig.command("cancel", run=key, reason="no longer needed")
        ledger.until(lambda seen: seen.runs()[key].state == RunState.CANCELLED, "cancelled")
        assert ledger.runs()[key].reason == "no longer needed"
        rig.command("pause", job="yearly")
        ledger.until(lambda seen: len(seen.versions("yearly")) == 2, "paused")
        rig.command("resume", job="yearly")
        ledger.until(lambda seen: len(seen.versions("yearly")) == 3, "resumed")
        rig.command("delete", job="yearly", version=2)
        letters = rig.watch(rig.namespace.rejected)
        letters.until(lambda seen: any(r.error == "version-changed" for r in seen.rejected()), "the stale delete is refused")
        rig.command("delete", job="yearly", version=3)
        ledger.until(lambda seen: len(seen.versions("yearly")) == 4, "deleted")
    assert [version.change for version in ledger.versions("yearly")] == ["defined", "paused", "resumed", "deleted"]
    assert [version.paused for version in ledger.versions("yearly")][:3] == [False, True, False]


def test_a_restart_decides_what_fell_due_meanwhile_by_the_version_that_held(rig: Rig) -> None:
    """T17e: the new version was published while nobody led; due times before it are still the old version's."""
    policy = {"overlap": "allow", "misfire": "all", "misfire_grace": "1s"}
    with rig.scheduler():
        rig.publish("tick", {"every": "1s"}, **policy)
        ledger = rig.ledger()
        ledger.until(lambda seen: seen.due_times("tick"), "a first due time")
    settled = ledger.due_times("tick")[-1]
    _wait_until_ms(settled + 2_500)
    rig.publish("tick", {"every": "10m"}, **policy)
    with rig.scheduler():
        ledger.until(lambda seen: len(seen.versions("tick")) == 2, "the second version")
        first, second = ledger.versions("tick")
        wanted = list(range(settled, second.effective_ms, 1000))
        ledger.until(lambda seen: set(wanted) <= set(seen.due_times("tick")), f"due times {wanted}")
    for run in ledger.runs("tick").values():
        assert run.job.version == (first.version if run.due_ms < second.effective_ms else second.version)


def test_a_queue_whose_topic_vanished_does_not_hold_up_the_others(
    broker: TestBroker, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a queue whose dispatch topic is deleted under a leader that offers to it, then the other queue's runs are offered."""
    rig = Rig(broker.bootstrap_servers, namespace, queues=["default", "doomed"])
    try:
        with rig.scheduler():
            rig.publish("tick", {"every": "1s"}, overlap="allow", dispatch_ahead="0s")
            rig.publish("lost", {"every": "1s"}, overlap="allow", dispatch_ahead="0s", queue="doomed")
            ledger = rig.ledger()
            ledger.until(lambda seen: seen.due_times("lost") and seen.due_times("tick"), "both jobs")
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
            topic = rig.namespace.dispatch("doomed")
            admin.delete_topics([topic])[topic].result(10)
            sequence = itertools.count()

            def offered(seen: Watch) -> bool:
                for queue in ("default", "doomed"):  # workers with room for everything, who never answer
                    rig.write(rig.namespace.workers, _idle_worker(queue, next(sequence)), key=queue)
                return any(run.state == RunState.DISPATCHED for run in seen.runs("tick").values())

            ledger.until(offered, "an offer of the other queue")
            ledger.until(lambda _: f"{topic} is left alone" in caplog.text, "a word about it")
    finally:
        rig.close()


def _idle_worker(queue: str, sequence: int) -> Heartbeat:
    return Heartbeat(
        incarnation=f"{queue}.1",
        worker=queue,
        queue=queue,
        home=0,
        state="running",
        seq=sequence,
        slots=1_000,
        handlers=["hello"],
        partitions=[0, 1, 2, 3],
    )


def _wait_until_ms(instant_ms: int) -> None:
    """Real due times have to pass while no scheduler runs."""

    time.sleep(max(0.0, instant_ms / 1000 - time.time()))  # awaited: wall time passing the instant


def test_watch_sees_what_stands_before_it(rig: Rig) -> None:
    """The rig itself: a watch that starts late misses nothing."""
    with rig.scheduler():
        rig.publish("tick", {"every": "1s"}, overlap="allow")
        early = rig.ledger()
        early.until(lambda seen: len(seen.due_times("tick")) >= 2, "two due times")
        late: Watch = rig.ledger()
        late.until(lambda seen: len(seen.due_times("tick")) >= 2, "the same two")
    assert late.due_times("tick")[:2] == early.due_times("tick")[:2]
