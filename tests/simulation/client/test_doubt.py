"""EndTxn that is late, lost, sent twice: what dueline makes of it, and, as controls, what a bare client suffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaException

from dueline.scheduler.core.ports import Delivered, Doubtful
from dueline.scheduler.kafka import client
from dueline.scheduler.kafka.config import KafkaConfig
from proof.simulation.kernel import Host
from proof.simulation.network import Meddling
from proof.simulation.protocol import EndTxn, Request
from tests.simulation.client.stage import Stage, record, staged

CALL_S = 30.0


class Once:
    """Meddles with the first EndTxn after `arm`."""

    def __init__(self, stage: Stage, how: Meddling) -> None:
        self.armed = False
        self.seen = 0
        self._how = how
        stage.network.meddlers.append(self)

    def __call__(self, _host: Host, _node: int, request: Request) -> Meddling | None:
        if not isinstance(request, EndTxn):
            return None
        self.seen += 1
        if not self.armed:
            return None
        self.armed = False
        return self._how

    def arm(self, _: Sequence[Delivered] = ()) -> None:
        self.armed = True


def raw(stage: Stage) -> Any:
    """A bare transactional client, initialised."""
    config = KafkaConfig(bootstrap_servers="broker-1:9092")
    producer = client.producer(config, lambda _: None, client_id="raw", transactional_id="raw", transaction_timeout_ms=60_000)
    producer.init_transactions(CALL_S)
    return producer


def test_a_commit_whose_answer_is_late_is_doubtful_and_committed_once() -> None:
    with staged() as stage:
        late = Once(stage, Meddling(hold_s=3.0))

        def work() -> None:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a", "x.leader.b"], doubt_bound_s=1.0)
            with pytest.raises(Doubtful, match=r"more than 1\.0 s"):
                writer.write([[record(b"1")]], before_commit=late.arm)
            survivor = writer.survivor()
            assert survivor is not None
            survivor.write([[record(b"2")]])
            assert stage.ledger() == [b"1", b"2"]

        stage.run(work)


def test_a_commit_on_a_connection_that_broke_is_repeated_acknowledged_and_doubtful() -> None:
    with staged() as stage:
        broken = Once(stage, Meddling(break_after_s=0.001))

        def work() -> None:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a"])
            with pytest.raises(Doubtful, match="connection failed"):
                writer.write([[record(b"1")]], before_commit=broken.arm)
            assert broken.seen == 2
            assert stage.ledger() == [b"1"]

        stage.run(work)


def test_a_commit_that_timed_out_is_repeated_and_told_in_the_log() -> None:
    with staged() as stage:
        lost = Once(stage, Meddling(lose_answer=True))

        def work() -> None:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a"], transaction_timeout_s=3.0, doubt_bound_s=1.0)
            with pytest.raises(Doubtful, match=r"connection failed|more than|not answered"):
                writer.write([[record(b"1")]], before_commit=lost.arm)
            assert stage.ledger() == [b"1"]

        stage.run(work)


def test_an_idle_connection_that_breaks_before_a_commit_is_doubt_as_well() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a"])
            with pytest.raises(Doubtful, match="connection failed"):
                writer.write([[record(b"1")]], before_commit=lambda _: stage.network.broke(stage.host("a"), 1))
            assert stage.ledger() == [b"1"]

        stage.run(work)


def test_control_a_delayed_commit_ends_the_next_transaction_of_a_bare_client() -> None:
    """T11. The first copy arrives while the next transaction is open: half of it is committed, and its abort cannot help."""
    with staged() as stage:
        held = Once(stage, Meddling(hold_s=2.0, break_after_s=0.01))

        def work() -> None:
            stage.topics("runs")
            producer = raw(stage)
            producer.begin_transaction()
            producer.produce("runs", b"1", b"k", 0)
            held.arm()
            producer.commit_transaction(CALL_S)  # reported as a success
            producer.begin_transaction()
            producer.produce("runs", b"2", b"k", 0)
            producer.flush(CALL_S)
            stage.sleep(3.0)
            with pytest.raises(KafkaException):
                producer.abort_transaction(CALL_S)
            assert stage.ledger() == [b"1", b"2"]

        stage.run(work)


def test_control_a_delayed_abort_takes_records_out_of_a_transaction_that_commits() -> None:
    """The worst: the commit reports success, and its first records are gone."""
    with staged() as stage:
        held = Once(stage, Meddling(hold_s=2.0, break_after_s=0.01))

        def work() -> None:
            stage.topics("runs", "other")
            producer = raw(stage)
            producer.begin_transaction()
            producer.produce("runs", b"1", b"k", 0)
            producer.flush(CALL_S)
            held.arm()
            producer.abort_transaction(CALL_S)
            producer.begin_transaction()
            producer.produce("runs", b"2", b"k", 0)
            producer.flush(CALL_S)
            stage.sleep(3.0)
            producer.produce("other", b"3", b"k", 0)
            producer.commit_transaction(CALL_S)
            assert stage.ledger() == []
            admin = stage.kafka().admin()
            assert [one.value for one in admin.read_range(("other", 0), 0, 1, timeout_s=30.0)] == [b"3"]

        stage.run(work)


def test_a_commit_goes_on_in_the_background_and_is_resumed() -> None:
    with staged() as stage:
        late = Once(stage, Meddling(hold_s=1.0))

        def work() -> None:
            stage.topics("runs")
            producer = raw(stage)
            producer.begin_transaction()
            producer.produce("runs", b"1", b"k", 0)
            late.arm()
            with pytest.raises(KafkaException) as timed_out:
                producer.commit_transaction(0.1)
            assert timed_out.value.args[0].retriable()
            with pytest.raises(KafkaException) as conflict:
                producer.begin_transaction()
            assert conflict.value.args[0].name() == "_CONFLICT"
            producer.commit_transaction(CALL_S)
            producer.begin_transaction()
            assert stage.ledger() == [b"1"]

        stage.run(work)


def test_a_connection_that_was_idle_for_long_breaks_without_a_doubt() -> None:
    """librdkafka does not tell of it, and nothing can have been under way."""
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a"])
            writer.write([[record(b"1")]])
            stage.sleep(61.0)
            stage.network.broke(stage.host("a"), 1)
            writer.write([[record(b"2")]])
            assert stage.ledger() == [b"1", b"2"]

        stage.run(work)


def test_after_a_break_between_commits_statistics_prove_that_each_later_one_was_sent_once() -> None:
    with staged() as stage:

        def work() -> int:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a", "x.leader.b"])
            writer.write([[record(b"first")]])
            writer.write([[record(b"first")]])
            stage.network.broke(stage.host("a"), 1)
            stage.sleep(1.0)
            count = 0
            while stage.kernel.now_s < 60.0:  # beyond the half minute in which the client drops log lines
                writer.write([[record(b"%d" % count)]])
                count += 1
            assert stage.ledger()[2:] == [b"%d" % number for number in range(count)]
            return count

        assert stage.run(work) > 100


def test_control_a_break_that_the_log_did_not_tell_is_found_by_the_statistics() -> None:
    with staged() as stage:
        late = Once(stage, Meddling(break_after_s=0.01, hold_s=0.5))

        def work() -> None:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a"])
            writer.write([[record(b"1")]])
            stage.network.broke(stage.host("a"), 1)
            stage.sleep(2.5)
            writer.write([[record(b"2")]])
            with pytest.raises(Doubtful, match="connection failed"):
                writer.write([[record(b"3")]], before_commit=late.arm)
            assert stage.ledger() == [b"1", b"2", b"3"]

        stage.run(work)
