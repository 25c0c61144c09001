"""The fence on a real broker: what it refuses, and, as negative controls, what it lets pass without our guards."""

from __future__ import annotations

import socket
import statistics
import struct
import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, TopicPartition

from dueline.scheduler.core.ports import EARLIEST, Assignment, Fenced, GroupOffsets, GroupReader, Refused
from dueline.scheduler.kafka.capture import Metadata, capture
from dueline.scheduler.kafka.errors import NoFence
from dueline.scheduler.kafka.group import KafkaGroupReader
from dueline.scheduler.kafka.selftest import sentinel
from tests.integration.kafka.support import (
    DEADLINE_S,
    Site,
    fence,
    joined,
    position_of,
    raw_transaction,
    record,
    until,
)

ROUNDS = 3
STALE = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID)


def at(partition: tuple[str, int], offset: int) -> TopicPartition:
    return TopicPartition(*partition, offset)


def deposed(site: Site) -> tuple[KafkaGroupReader, Assignment]:
    """A leader that stalled beyond `max.poll.interval`, while a standby took over; it has joined again as follower.
    Its reader, and the assignment it had captured as leader."""
    old = site.member(max_poll_interval_s=1.0)
    led = joined(old, partitions=1)
    standby = site.member()
    until(lambda: standby.poll(0.1, 1)[0], "the standby joins")
    joined(standby, partitions=1)  # while `old` is not polled
    assert isinstance(old, KafkaGroupReader)
    assert joined(old, than=led, partitions=0).generation > led.generation
    return old, led


def test_t1_metadata_of_a_member_that_fell_out_is_never_captured_and_the_broker_would_accept_it(site: Site) -> None:
    member = site.member(session_timeout_s=6.0)  # a busy machine does not end it
    before = joined(member, partitions=1)
    assert isinstance(member, KafkaGroupReader)
    join_for(site, before.member)
    live = until(lambda: sentinel_of(member), "the next heartbeat is refused, and the client answers so")

    assert capture(live, [site.control]) is None
    # Negative control: the broker takes it, so the guard is what saves us.
    assert raw_transaction(site.raw("control-t1"), site.ns.runs, b"unfenced", at(site.control, 0), live) == 0
    # What was captured is refused, and the member comes back by itself.
    with pytest.raises(Refused):
        site.writer().write([[record(site.ns.runs, b"stale")]], offsets=fence(before, site.control))
    after = joined(member, than=before, partitions=1)
    site.writer().write([[record(site.ns.runs, b"fenced")]], offsets=fence(after, site.control))
    assert site.ledger() == [b"unfenced", b"fenced"]


def join_for(site: Site, member: str) -> None:
    """Begin a rebalance the member knows nothing of: a JoinGroup request (version 2) in its name, by its plain bytes.
    Its next heartbeat is answered ILLEGAL_GENERATION, as after a stall in which the others went on without it."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    subscription = struct.pack(">hi", 0, 1) + text(site.ns.control) + struct.pack(">i", -1)
    protocol = struct.pack(">i", 1) + text("cooperative-sticky") + struct.pack(">i", len(subscription)) + subscription
    body = text(site.ns.scheduler_group) + struct.pack(">ii", 6000, 30_000) + text(member) + text("consumer") + protocol
    request = struct.pack(">hhi", 11, 2, 1) + text("test") + body
    host, _, port = site.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb").read(18)
    _, correlation, _, error, generation = struct.unpack(">iiihi", answer)
    assert (correlation, error, generation) == (1, 0, 2)


def sentinel_of(member: KafkaGroupReader) -> bytes | None:
    raw: bytes = member._consumer.consumer_group_metadata()  # the member is not polled meanwhile
    metadata = Metadata.parse(raw)
    return raw if (metadata.generation, metadata.member) == (-1, "") else None


def test_t2_before_the_first_join_there_is_no_assignment_to_write_under(site: Site) -> None:
    reader = site.member()
    assert reader.assignment() is None
    assert isinstance(reader, KafkaGroupReader)
    live = reader._consumer.consumer_group_metadata()
    assert capture(live, [site.control]) is None

    writer = site.writer()
    forged = Assignment(serial=0, generation=-1, member="", partitions=frozenset({site.control}), metadata=live)
    with pytest.raises(ValueError, match="unfenced"):
        writer.write([[record(site.ns.runs, b"x")]], offsets=fence(forged, site.control))
    assert site.ledger() == []


def test_t3_the_position_in_an_empty_control_topic_is_a_real_offset_so_the_fence_is_asked(site: Site) -> None:
    _, led = deposed(site)
    position = position_of(site.reader({site.control: EARLIEST}), site.control, 0)
    assert position == 0
    with pytest.raises(Refused):
        site.writer().write([[record(site.ns.runs, b"x")]], offsets=fence(led, site.control, position))
    assert site.ledger() == []


def test_t7_a_deposed_leader_that_believes_to_lead_is_refused(site: Site) -> None:
    old, led = deposed(site)
    with pytest.raises(Refused, match="generation is stale"):
        site.writer().write([[record(site.ns.runs, b"stale")]], offsets=fence(led, site.control))
    assert site.ledger() == []

    # Negative control: the live metadata of a follower passes, since no broker checks who owns the partition.
    live = old._consumer.consumer_group_metadata()
    assert raw_transaction(site.raw("control-t7"), site.ns.runs, b"follower", at(site.control, 0), live) == 0
    assert site.ledger() == [b"follower"]

    # That is why we do.
    follower = old.assignment()
    assert follower is not None
    with pytest.raises(ValueError, match="not in the captured assignment"):
        site.writer().write([[record(site.ns.runs, b"x")]], offsets=fence(follower, site.control))


def test_l2_an_invalid_offset_is_refused_and_would_not_be_fenced(site: Site) -> None:
    _, led = deposed(site)
    with pytest.raises(ValueError, match="no request"):
        site.writer().write([[record(site.ns.runs, b"x")]], offsets=fence(led, site.control, -1001))
    with pytest.raises(ValueError, match="not be fenced"):
        site.writer().write([[record(site.ns.runs, b"x")]], offsets=GroupOffsets(assignment=led, offsets={}))
    assert site.ledger() == []

    # Negative controls: with a stale generation, a real offset is refused, an invalid one committed.
    raw = site.raw("control-l2")
    assert raw_transaction(raw, site.ns.runs, b"real", at(site.control, 0), led.metadata) in STALE
    assert raw_transaction(raw, site.ns.runs, b"invalid", at(site.control, -1001), led.metadata) == 0
    assert site.ledger() == [b"invalid"]


def test_t8_a_standby_that_joins_costs_one_refusal_and_the_same_process_goes_on(site: Site) -> None:
    leader = site.member()
    before = joined(leader, partitions=1)
    writer = site.writer()
    writer.write([[record(site.ns.runs, b"1")]], offsets=fence(before, site.control))

    standby = site.member()
    standby.poll(0, 1)  # it asks to join; the rebalance ends with the leader's next poll
    after = joined(leader, than=before, partitions=1)
    until(lambda: standby.poll(0.1, 1)[0], "the standby joins")
    with pytest.raises(Refused):
        writer.write([[record(site.ns.runs, b"2")]], offsets=fence(before, site.control))
    with pytest.raises(Fenced, match="over"):
        writer.write([[record(site.ns.runs, b"3")]], offsets=fence(after, site.control))
    writer.close()

    site.writer().write([[record(site.ns.runs, b"4")]], offsets=fence(after, site.control))
    assert site.ledger() == [b"1", b"4"]
    assert after.generation == before.generation + 1


def test_a_refused_claim_writer_goes_on_when_told_so(site: Site) -> None:
    leader = site.member()
    before = joined(leader, partitions=1)
    writer = site.writer("claims", survives_refusal=True)
    standby = site.member()
    standby.poll(0, 1)
    after = joined(leader, than=before, partitions=1)
    with pytest.raises(Refused):
        writer.write([[record(site.ns.runs, b"refused")]], offsets=fence(before, site.control))
    writer.write([[record(site.ns.runs, b"kept")]], offsets=fence(after, site.control))
    assert site.ledger() == [b"kept"]


def test_t9_a_deleted_group_begins_again_at_generation_one_while_the_ledger_goes_on(site: Site) -> None:
    terms = []
    for _ in range(2):
        member = site.member()
        assignment = joined(member, partitions=1)
        assert assignment.generation == 1
        (barrier,) = site.writer().write([[record(site.ns.runs, b"b")]], offsets=fence(assignment, site.control))
        terms.append(barrier.offset)
        member.close()
        deletion = site.cluster.kafka_admin().client.delete_consumer_groups([site.ns.scheduler_group])
        deletion[site.ns.scheduler_group].result(30)
    assert terms[1] > terms[0]


def test_t10_a_protocol_switch_on_the_empty_group_changes_the_generation_only(site: Site) -> None:
    member = site.member()
    before = joined(member, partitions=1)
    site.writer().write([[record(site.ns.runs, b"1")]], offsets=fence(before, site.control))
    member.close()

    other = site.raw_consumer(site.ns.scheduler_group, **{"group.protocol": "consumer"})
    other.subscribe([site.ns.control])
    until(lambda: other.poll(0.1) or other.assignment() or None, "the other protocol's member joins")
    other.close()

    again = site.member()
    after = joined(again, partitions=1)
    site.writer().write([[record(site.ns.runs, b"2")]], offsets=fence(after, site.control))
    assert site.ledger() == [b"1", b"2"]
    assert after.serial > before.serial


def test_t16_a_worker_cannot_claim_from_a_partition_it_lost_though_the_broker_would_accept_it(site: Site) -> None:
    def member() -> GroupReader:
        reader = site.cluster.group_reader(site.ns.worker_group("q"), site.ns.dispatch("q"))
        site.stack.callback(reader.close)
        return reader

    worker = member()
    before = joined(worker, partitions=2)
    other = member()

    def shared() -> Assignment | None:  # it takes two rebalances: one gives up a partition, the next one gives it away
        mine, others = (reader.poll(0.1, 1)[0] for reader in (worker, other))
        if mine is None or others is None or mine.generation != others.generation:
            return None
        return mine if [len(one.partitions) for one in (mine, others)] == [1, 1] else None

    after = until(shared, "each has a partition")
    (lost,), (kept,) = before.partitions - after.partitions, after.partitions
    claims = site.writer("claims", survives_refusal=True)
    with pytest.raises(Refused):
        claims.write([[record(site.ns.attempts, b"stale")]], offsets=fence(before, lost, 1))
    with pytest.raises(ValueError, match="not in the captured assignment"):
        claims.write([[record(site.ns.attempts, b"fresh")]], offsets=fence(after, lost, 1))
    claims.write([[record(site.ns.attempts, b"its own")]], offsets=fence(after, kept))

    # Negative control: the broker takes the fresh metadata for the partition that another one owns.
    assert isinstance(worker, KafkaGroupReader)
    live = worker._consumer.consumer_group_metadata()
    assert raw_transaction(site.raw("control-t16"), site.ns.attempts, b"would be", at(lost, 1), live) == 0
    partition = (site.ns.attempts, 0)
    end = site.cluster.admin().end_offset(partition)
    read = site.cluster.admin().read_range(partition, 0, end, timeout_s=DEADLINE_S)
    assert [one.value for one in read] == [b"its own", b"would be"]


def test_a_newer_owner_of_the_ids_fences_the_older(site: Site) -> None:
    assignment = joined(site.member(), partitions=1)
    old = site.writer()
    old.write([[record(site.ns.runs, b"old")]], offsets=fence(assignment, site.control))
    new = site.writer()
    with pytest.raises(Fenced, match="newer owner"):
        old.write([[record(site.ns.runs, b"zombie")]], offsets=fence(assignment, site.control))
    new.write([[record(site.ns.runs, b"new")]], offsets=fence(assignment, site.control))
    assert site.ledger() == [b"old", b"new"]


def test_an_open_transaction_of_an_older_owner_is_aborted_and_its_commit_refused(site: Site) -> None:
    assignment = joined(site.member(), partitions=1)
    old = site.writer()

    def take_over(_: object) -> None:
        site.writer()

    with pytest.raises(Fenced):
        old.write([[record(site.ns.runs, b"torn")]], offsets=fence(assignment, site.control), before_commit=take_over)
    assert site.ledger() == []


def test_the_initialisation_waits_for_no_timer_of_the_client(site: Site) -> None:
    """Told that an older owner's transaction is being ended, a bare client asks again after half a second."""

    def took_s(initialise: Callable[[], object]) -> float:
        site.left_open("successor")
        began_s = time.monotonic()
        initialise()
        return time.monotonic() - began_s

    bare_s = statistics.median(took_s(lambda: site.raw("successor")) for _ in range(ROUNDS))
    own_s = statistics.median(took_s(lambda: site.writer("successor")) for _ in range(ROUNDS))
    assert own_s < bare_s / 2, f"{own_s:.3f} s; a bare client: {bare_s:.3f} s"


def test_l9_t25_a_broker_with_the_fence_passes_and_one_that_accepts_is_refused(site: Site) -> None:
    site.cluster.check_fence(prefix=site.ns.name, partition=site.control)
    # Every broker accepts the sentinel, so it plays the broker that accepts a stale generation.
    with pytest.raises(NoFence, match="stale group generation"):
        site.cluster.check_fence(prefix=site.ns.name, partition=site.control, forge=sentinel)
