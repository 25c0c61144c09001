"""dueline's own writers on simulated producers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dueline.scheduler.core.ports import Aborted, Delivered, Fenced, Outgoing, Refused
from dueline.scheduler.kafka.errors import NoFence, TopicMissing
from tests.simulation.client.stage import RUNS, fence, record, staged


def test_two_in_turns_write_in_order_and_each_commit_leaves_a_marker() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("control", "runs")
            assignment = stage.joined(stage.member(), partitions=1)
            writer = stage.kafka().writers().open(["x.leader.a", "x.leader.b"])
            offsets = [writer.write([[record(b"%d" % n)]], offsets=fence(assignment))[0].offset for n in range(4)]
            assert offsets == [0, 2, 4, 6]
            assert stage.ledger() == [b"0", b"1", b"2", b"3"]

        stage.run(work)


def test_a_stale_generation_is_refused_and_a_writer_that_survives_it_goes_on() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("control", "runs")
            leader = stage.member()
            before = stage.joined(leader, partitions=1)
            writer = stage.kafka().writers().open(["x.claim"], survives_refusal=True)
            stage.member().poll(0, 1)
            after = stage.joined(leader, than=before, partitions=1)
            assert after.generation == before.generation + 1
            with pytest.raises(Refused, match="generation is stale"):
                writer.write([[record(b"refused")]], offsets=fence(before))
            writer.write([[record(b"kept")]], offsets=fence(after))
            assert stage.ledger() == [b"kept"]

        stage.run(work)


def test_a_newer_owner_aborts_what_is_open_and_fences() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            old = stage.kafka().writers().open(["x.leader.a"])

            def another_takes_over(_: Sequence[Delivered]) -> None:
                stage.kafka("other").writers().open(["x.leader.a"]).write([[record(b"new")]])

            with pytest.raises(Fenced, match="a newer owner"):
                old.write([[record(b"torn")]], before_commit=another_takes_over)
            with pytest.raises(Fenced, match="over"):
                old.write([[record(b"never")]])
            assert stage.ledger() == [b"new"]

        stage.run(work)


def test_a_transaction_that_outlived_its_time_out_is_fenced() -> None:
    with staged(transaction_sweep_s=0.5) as stage:

        def work() -> None:
            stage.topics("runs")
            reader = stage.kafka().log_reader("r")
            reader.assign({RUNS: 0})

            def stall(_: Sequence[Delivered]) -> None:
                stage.position(reader, RUNS, 2)  # record and abort marker

            writer = stage.kafka().writers().open(["x.leader.a"], transaction_timeout_s=2.0, doubt_bound_s=1.0)
            with pytest.raises(Fenced, match="timed out on the broker"):
                writer.write([[record(b"stalled")]], before_commit=stall)
            assert stage.ledger() == []

        stage.run(work)


def test_a_reason_before_the_commit_aborts_and_the_other_of_the_pair_survives() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            writer = stage.kafka().writers().open(["x.leader.a", "x.leader.b"])
            with pytest.raises(Aborted, match="too early"):
                writer.write([[record(b"x")]], before_commit=lambda _: "too early")
            survivor = writer.survivor()
            assert survivor is not None
            survivor.write([[record(b"z")]])
            assert stage.ledger() == [b"z"]

        stage.run(work)


def test_records_that_cannot_be_written_abort_the_whole_transaction() -> None:
    with staged() as stage:

        def work() -> None:
            stage.topics("runs")
            writers = stage.kafka().writers()
            with pytest.raises(Aborted, match="too large"):
                writers.open(["x.leader.a"]).write([[record(b"x")], [record(bytes(3 << 20))]])
            with pytest.raises(TopicMissing):
                writers.open(["x.leader.b"]).write([[record(b"x")], [record(b"y", "nowhere")]])
            assert stage.ledger() == []

        stage.run(work)


def test_keys_decide_the_partition_also_before_the_topic_is_known() -> None:
    with staged() as stage:

        def work() -> dict[bytes, set[int]]:
            stage.topics("jobs", partitions=4)
            seen: dict[bytes, set[int]] = {}
            for _ in range(2):
                writer = stage.kafka().plain_writer("jobs")
                for number in range(8):
                    key = b"job-%d" % number
                    reports: list[Delivered] = []
                    sent = Outgoing(topic="jobs", key=key, value=b"v")
                    writer.send(sent, lambda one, _, to=reports: to.append(one) if one else None)  # type: ignore[misc]
                    assert writer.flush(5.0) == 0
                    seen.setdefault(key, set()).add(reports[0].partition)
                writer.close()
            return seen

        seen = stage.run(work)
        assert all(len(partitions) == 1 for partitions in seen.values())
        assert len(set.union(*seen.values())) > 1


def test_the_same_seed_gives_the_same_times_and_another_one_others() -> None:
    def story(seed: int) -> tuple[float, list[int]]:
        with staged(seed) as stage:

            def work() -> list[int]:
                stage.topics("control", "runs")
                assignment = stage.joined(stage.member(), partitions=1)
                writer = stage.kafka().writers().open(["x.leader.a", "x.leader.b"])
                return [writer.write([[record(b"r")]], offsets=fence(assignment))[0].append_ms for _ in range(5)]

            return stage.run(work), stage.kernel.steps  # type: ignore[return-value]

    assert story(3) == story(3)
    assert story(3) != story(4)


def test_the_self_test_of_the_fence_passes_and_finds_a_broker_without_one() -> None:
    def check(**settings: bool) -> None:
        with staged(**settings) as stage:

            def work() -> None:
                stage.topics("control")
                stage.kafka().check_fence(prefix="x", partition=("control", 0))

            stage.run(work)

    check()
    with pytest.raises(NoFence):
        check(fenceless=True)
