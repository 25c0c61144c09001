"""dueline's own group readers on simulated consumers: hand-overs, stalls, deaths."""

from __future__ import annotations

import pytest

from dueline.scheduler.core.ports import Refused
from dueline.scheduler.kafka.capture import Metadata, capture
from dueline.scheduler.kafka.group import KafkaGroupReader
from tests.simulation.client.stage import CONTROL, Stage, fence, record, staged


def live(reader: object) -> Metadata:
    """The metadata as the client answers now."""
    assert isinstance(reader, KafkaGroupReader)
    raw: bytes = reader._consumer.consumer_group_metadata()
    return Metadata.parse(raw)


def standby_takes_over(stage: Stage) -> list[float]:
    """On host "b": join, and note when the partition is held."""
    since: list[float] = []

    def work() -> None:
        reader = stage.member()
        stage.joined(reader, partitions=1)
        since.append(stage.kernel.now_s)
        while True:
            reader.poll(1.0, 10)

    stage.spawn("b", work)
    return since


def test_before_the_first_join_there_is_nothing_to_capture() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("control")
            reader = stage.member()
            metadata = live(reader)
            assert (metadata.generation, metadata.member) == (-1, "")
            assert capture(metadata.raw(), [CONTROL]) is None
            assignment = stage.joined(reader, partitions=1)
            assert live(reader).raw() == assignment.metadata

        stage.run(work)


def test_a_leader_that_is_killed_is_replaced_after_its_session() -> None:
    with staged() as stage:
        held: list[float] = []

        def lead() -> None:
            stage.topics("control")
            reader = stage.member()
            stage.joined(reader, partitions=1)
            held.append(stage.kernel.now_s)
            while True:
                reader.poll(1.0, 10)

        stage.spawn("a", lead)
        stage.kernel.run(2.0)
        since = standby_takes_over(stage)
        stage.kernel.run(6.0)
        assert held and not since
        stage.kernel.kill(stage.host("a"))
        stage.kernel.run(12.0)
        assert not stage.uncaught
        assert 0.5 < since[0] - 6.0 < 2.5


def test_a_leader_that_leaves_is_replaced_at_once() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("control")
            reader = stage.member()
            stage.joined(reader, partitions=1)
            since = standby_takes_over(stage)
            stage.until(lambda: True if reader.poll(0.1, 1)[0] and live(reader).generation > 1 else None, "the standby joins")
            left_s = stage.kernel.now_s
            reader.close()
            stage.until(lambda: since or None, "the standby leads")
            assert since[0] - left_s < 1.0

        stage.run(work)


def test_python_that_hangs_is_ended_by_the_poll_interval_and_its_capture_is_refused() -> None:
    """T27, T7: the client's threads go on beating, so only the poll interval ends it."""
    with staged() as stage:
        seen: list[object] = []

        def lead() -> None:
            stage.topics("control", "runs")
            reader = stage.member(max_poll_interval_s=5.0)
            led = stage.joined(reader, partitions=1)
            seen.append("leads")
            stage.kernel.stick(stage.host("a"))
            metadata = live(reader)
            seen.append((metadata.generation, metadata.member))
            with pytest.raises(Refused):
                stage.kafka().writers().open(["x.leader.a"]).write([[record(b"stale")]], offsets=fence(led))
            after = stage.joined(reader, than=led)
            assert after.generation > led.generation
            assert not after.partitions
            assert stage.ledger() == []
            seen.append("done")

        stage.spawn("a", lead)
        stage.kernel.run(1.0)
        since = standby_takes_over(stage)
        stage.kernel.run(20.0)
        assert seen == ["leads"]
        assert 4.0 < since[0] < 8.0
        stage.kernel.unstick(stage.host("a"))
        stage.kernel.run(40.0)
        assert not stage.uncaught
        assert seen == ["leads", (2, ""), "done"]  # a generation without a member: refused, not the sentinel


def test_a_leader_that_is_stopped_beyond_its_session_is_refused_when_it_wakes() -> None:
    """T4: inside a transaction, before its offsets."""
    with staged() as stage:
        seen: list[str] = []

        def lead() -> None:
            stage.topics("control", "runs")
            reader = stage.member()
            led = stage.joined(reader, partitions=1)
            writer = stage.kafka().writers().open(["x.leader.a"])
            seen.append("leads")
            stage.kernel.freeze(stage.host("a"))
            with pytest.raises(Refused):
                writer.write([[record(b"stale")]], offsets=fence(led))
            assert stage.joined(reader, than=led).generation > led.generation
            assert stage.ledger() == []
            seen.append("done")

        stage.spawn("a", lead)
        stage.kernel.run(1.0)
        since = standby_takes_over(stage)
        stage.kernel.run(10.0)
        assert seen == ["leads"]
        assert since
        stage.kernel.thaw(stage.host("a"))
        stage.kernel.run(30.0)
        assert not stage.uncaught
        assert seen == ["leads", "done"]


def test_a_member_comes_back_by_itself_after_a_broker_was_away() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("control")
            reader = stage.member()
            before = stage.joined(reader, partitions=1)
            stage.cluster.kill(1)
            stage.until(lambda: True if reader.poll(0.2, 1)[0] is None else None, "it knows that it fell out")
            stage.cluster.start(1)
            after = stage.joined(reader, than=before, partitions=1)
            assert after.generation > before.generation
            assert after.member != before.member

        stage.run(work)


def test_committed_offsets_are_read_once_no_transaction_on_them_is_open() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("control", "runs")
            reader = stage.member()
            assignment = stage.joined(reader, partitions=1)
            assert reader.committed([CONTROL]) == {}
            stage.kafka().writers().open(["x.leader.a"]).write([[record(b"1")]], offsets=fence(assignment, 7))
            assert reader.committed([CONTROL]) == {CONTROL: 7}

        stage.run(work)
