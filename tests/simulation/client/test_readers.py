"""dueline's own readers, plain writers and questions on simulated clients, while brokers go and come."""

from __future__ import annotations

import logging

import pytest

from dueline.scheduler.core.ports import EARLIEST, LATEST, Aborted, Delivered, Expired, Unavailable
from dueline.scheduler.kafka.client import REQUEST_MS
from dueline.scheduler.kafka.errors import ConfigError
from dueline.schemas.topics import Cleanup, TopicSpec
from proof.simulation.client.fetcher import HELD_S
from tests.simulation.client.stage import RUNS, record, staged


def test_a_position_passes_markers_and_aborted_records() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            reader = stage.kafka().log_reader("r")
            reader.assign({RUNS: EARLIEST})
            assert stage.position(reader, RUNS, 0) == 0
            writers = stage.kafka().writers()
            with pytest.raises(Exception, match="not this one"):
                writers.open(["x.a"]).write([[record(b"x")]], before_commit=lambda _: "not this one")
            assert stage.position(reader, RUNS, 2) == 2
            writers.open(["x.b"]).write([[record(b"1"), record(b"2")]])
            assert [one.offset for one in stage.take(reader, 2)] == [2, 3]
            assert stage.position(reader, RUNS, 5) == 5

        stage.run(work)


def test_an_open_transaction_holds_readers_back_but_not_the_end() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            reader = stage.kafka().log_reader("r")
            reader.assign({RUNS: 0})
            admin = stage.kafka().admin()

            def look(delivered: object) -> None:
                assert delivered
                stage.kafka().writers().open(["x.b"]).write([[record(b"behind")]])
                assert admin.end_offset(RUNS) >= 2
                assert reader.poll(1.0, 10) == []

            stage.kafka().writers().open(["x.a"]).write([[record(b"first")]], before_commit=look)
            assert [one.value for one in stage.take(reader, 2)] == [b"first", b"behind"]

        stage.run(work)


def test_a_reader_of_what_is_not_committed_is_held_back_by_nobody() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            reader = stage.kafka().log_reader("r", uncommitted=True)
            reader.assign({RUNS: 0})

            def look(delivered: object) -> str:
                assert delivered
                stage.kafka().plain_writer("beat").send(record(b"behind"))
                assert [one.value for one in stage.take(reader, 2)] == [b"first", b"behind"]
                assert stage.position(reader, RUNS, 2) == stage.kafka().admin().end_offset(RUNS)
                return "seen"

            with pytest.raises(Aborted, match="seen"):
                stage.kafka().writers().open(["x.a"]).write([[record(b"first")]], before_commit=look)

        stage.run(work)


def test_a_reader_whose_fetch_was_lost_reads_on_after_its_request_time_out() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            reader = stage.kafka().log_reader("r")
            reader.assign({RUNS: 0})
            assert stage.position(reader, RUNS, 0) == 0
            link = stage.network.link(stage.host("a"), 1)
            link.lose_requests = True
            stage.sleep(HELD_S + 0.5)  # the fetch that waits there is answered, and the next one lost
            link.lose_requests = False
            lost_s = stage.kernel.now_s
            stage.kafka().writers().open(["x.a"]).write([[record(b"1")]])
            assert [one.value for one in stage.take(reader, 1)] == [b"1"]
            assert 5.0 < stage.kernel.now_s - lost_s < REQUEST_MS / 1000 + HELD_S

        stage.run(work)


def test_an_offset_that_the_log_does_not_have_is_an_alarm() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            reader = stage.kafka().log_reader("r")
            reader.assign({RUNS: 5})
            with pytest.raises(Expired):
                stage.take(reader, 1)
            reader.assign({RUNS: LATEST})
            assert stage.position(reader, RUNS, 0) == 0

        stage.run(work)


def test_everything_waits_for_a_broker_that_is_away_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dueline")
    with staged() as stage:

        def work() -> None:
            stage.topics("runs", "workers")
            admin = stage.kafka().admin()
            reader = stage.kafka().log_reader("r")
            reader.assign({RUNS: 0})
            plain = stage.kafka().plain_writer("beat")
            contact = stage.kafka().contact(("workers", 0))
            stage.kafka().writers().open(["x.a"]).write([[record(b"1")]])
            stage.take(reader, 1)
            stage.sleep(5.0)
            assert contact.contacted().since_s < 3.0
            assert contact.contacted().until_s > 1.0

            stage.cluster.kill(1)
            died_s = stage.kernel.now_s
            reports: list[Delivered | None] = []
            plain.send(record(b"2"), lambda delivered, _: reports.append(delivered))
            with pytest.raises(Unavailable):
                admin.end_offset(RUNS)
            with pytest.raises(Unavailable):
                stage.kafka().writers().open(["x.b"])
            assert reader.poll(5.0, 10) == []
            assert contact.contacted().until_s < died_s

            stage.cluster.start(1)
            assert [one.value for one in stage.take(reader, 1)] == [b"2"]
            stage.until(lambda: reports or None, "the delivery report")
            assert reports[0] is not None
            stage.kafka().writers().open(["x.b"]).write([[record(b"3")]])
            assert stage.ledger() == [b"1", b"2", b"3"]
            stage.until(lambda: True if contact.contacted().until_s > died_s else None, "contact again")
            assert contact.contacted().since_s > died_s
            plain.close()
            contact.close()

        stage.run(work)
    said = [getattr(one, "action", "") for one in caplog.records if getattr(one, "client", "") == "test.beat"]
    assert said == ["kafka.away", "kafka.back"]


def test_of_three_brokers_one_may_die_in_the_middle_of_everything() -> None:
    def story(victim: int) -> None:
        with staged(seed=victim, nodes=3) as stage:

            def work() -> None:
                stage.topics("runs", "control", replicas=3)
                reader = stage.kafka().log_reader("r")
                reader.assign({RUNS: 0})
                written = 0
                for round_ in range(6):
                    try:
                        writer = stage.kafka().writers().open(["x.a", "x.b"])
                        for _ in range(3):
                            writer.write([[record(b"%d" % written)]])
                            written += 1
                    except Exception:  # noqa: BLE001 - the leader opens new producers after any failure, and so does this
                        stage.sleep(1.0)
                    if round_ == 2:
                        stage.cluster.kill(victim)
                    if round_ == 4:
                        stage.cluster.start(victim)
                assert written >= 12
                values = stage.ledger()
                assert [one.value for one in stage.take(reader, len(values))] == values
                assert len(values) >= written

            stage.run(work)

    for victim in (1, 2, 3):
        story(victim)


def test_a_report_comes_in_the_end_also_without_a_broker() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            plain = stage.kafka().plain_writer("beat")
            stage.cluster.kill(1)
            reports: list[str] = []
            plain.send(record(b"x"), lambda _, why: reports.append(why))
            stage.until(lambda: reports or None, "a report", 60.0)
            assert "within 30 s" in reports[0]
            plain.close()

        stage.run(work)


def test_topics_and_what_the_broker_is_set_to_are_told() -> None:
    with staged() as stage:

        def work() -> None:
            admin = stage.kafka().kafka_admin()
            spec = TopicSpec(
                name="t", partitions=3, replication_factor=1, cleanup=Cleanup.COMPACT,
                config={"cleanup.policy": "compact"}, why="",
            )  # fmt: skip
            assert admin.shape("t") == (0, 0)
            assert admin.create(spec)
            assert not admin.create(spec)
            assert admin.shape("t") == (3, 1)
            admin.grow("t", 5)
            assert admin.shape("t") == (5, 1)
            with pytest.raises(ConfigError):
                admin.grow("t", 5)
            assert admin.topic_id("t")
            assert admin.settings("t")["cleanup.policy"] == "compact"
            assert admin.topics("t") == ["t"]
            assert admin.minimum_session_s() == 1.0
            assert admin.answers()

        stage.run(work)


def test_a_session_that_the_broker_does_not_take_is_told() -> None:
    with staged(min_session_s=6.0) as stage:

        def work() -> None:
            stage.topics("control")
            reader = stage.member(session_timeout_s=1.0)
            with pytest.raises(ConfigError, match="session time-out"):
                stage.joined(reader)

        stage.run(work)
