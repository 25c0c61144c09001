"""Reading the log: positions, ranges, ends, and logs that are not there any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer, TopicPartition

from dueline.scheduler.core.ports import EARLIEST, LATEST, Expired, Partition, Unavailable, UnfencedOffset
from tests.integration.kafka.support import DEADLINE_S, Site, position_of, record, take


def write_plain(site: Site, partition: Partition, *values: bytes) -> None:
    writer = site.cluster.plain_writer("test")
    for value in values:
        writer.send(record(partition[0], value, partition[1]))
    assert writer.flush(DEADLINE_S) == 0
    writer.close()


@contextmanager
def open_transaction(site: Site, partition: Partition, *values: bytes) -> Iterator[Producer]:
    """Another producer's transaction with these records, left open; the block may end it."""
    producer = site.raw(f"other-{partition[0]}-{values[0].decode()}")
    producer.begin_transaction()
    for value in values:
        producer.produce(partition[0], value, b"k", partition=partition[1])
    producer.flush(DEADLINE_S)
    yield producer


def test_a_position_passes_an_aborted_tail_and_its_marker(site: Site) -> None:
    write_plain(site, site.runs, b"a", b"b")
    with open_transaction(site, site.runs, b"torn", b"torn") as other:
        other.abort_transaction(DEADLINE_S)
    reader = site.reader({site.runs: EARLIEST})
    assert [one.value for one in take(reader, 2)] == [b"a", b"b"]
    end = site.cluster.admin().end_offset(site.runs)
    assert end == 5  # two records, two aborted ones, the marker
    assert position_of(reader, site.runs, end) == end


def test_a_position_stops_at_the_first_open_transaction_and_the_end_offset_does_not(site: Site) -> None:
    write_plain(site, site.runs, b"a")
    with open_transaction(site, site.runs, b"open") as other:
        write_plain(site, site.runs, b"behind")
        assert site.cluster.admin().end_offset(site.runs) == 3
        reader = site.reader({site.runs: EARLIEST})
        assert [one.value for one in take(reader, 1)] == [b"a"]
        assert position_of(reader, site.runs, 1) == 1
        assert reader.poll(0.3, 10) == []
        assert reader.position(site.runs) == 1
        other.commit_transaction(DEADLINE_S)
        assert [one.value for one in take(reader, 2)] == [b"open", b"behind"]


def test_where_to_start(site: Site) -> None:
    write_plain(site, site.runs, b"a", b"b", b"c")
    assert [one.value for one in take(site.reader({site.runs: 1}), 2)] == [b"b", b"c"]
    latest = site.reader({site.runs: LATEST})
    assert latest.position(site.runs) == -1
    assert position_of(latest, site.runs, 0) == 3
    write_plain(site, site.runs, b"d")
    (last,) = take(latest, 1)
    assert (last.value, last.offset, last.key, last.partition) == (b"d", 3, b"k", 0)
    assert abs(last.append_ms - time.time() * 1000) < 60_000


def test_a_poll_returns_what_is_there_without_waiting_for_more(site: Site) -> None:
    reader = site.reader({site.runs: EARLIEST})
    position_of(reader, site.runs, 0)
    write_plain(site, site.runs, b"one")
    started = time.monotonic()
    assert len(take(reader, 1)) == 1
    write_plain(site, site.runs, b"two")
    assert [one.value for one in reader.poll(20.0, 5000)] == [b"two"]
    assert time.monotonic() - started < 10.0


def test_a_range_waits_for_an_open_transaction_before_its_end(site: Site) -> None:
    write_plain(site, site.runs, b"a")
    with open_transaction(site, site.runs, b"open") as other:
        write_plain(site, site.runs, b"step")
        end = site.cluster.admin().end_offset(site.runs)
        found: list[bytes | None] = []

        def read() -> None:
            found.extend(
                one.value for one in site.cluster.admin().read_range(site.runs, 0, end, timeout_s=DEADLINE_S)
            )

        thread = threading.Thread(target=read)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        assert found == [b"a"]
        other.commit_transaction(DEADLINE_S)
        thread.join(DEADLINE_S)
        assert found == [b"a", b"open", b"step"]


def test_a_range_that_cannot_be_read_to_its_end_in_time_is_unavailable(site: Site) -> None:
    with open_transaction(site, site.runs, b"open"):
        write_plain(site, site.runs, b"step")
        with pytest.raises(Unavailable, match="stuck at offset 0"):
            list(site.cluster.admin().read_range(site.runs, 0, 2, timeout_s=0.5))


def test_a_range_ends_over_an_aborted_tail_and_gives_nothing_beyond_its_end(site: Site) -> None:
    write_plain(site, site.runs, b"a", b"b", b"c")
    with open_transaction(site, site.runs, b"torn") as other:
        other.abort_transaction(DEADLINE_S)
    end = site.cluster.admin().end_offset(site.runs)
    read = site.cluster.admin().read_range
    assert [one.value for one in read(site.runs, 0, end, timeout_s=DEADLINE_S)] == [b"a", b"b", b"c"]
    assert [one.value for one in read(site.runs, 1, 2, timeout_s=DEADLINE_S)] == [b"b"]
    assert list(read(site.runs, 2, 2, timeout_s=DEADLINE_S)) == []


def test_a_log_that_starts_later_than_asked_is_expired_and_not_reset(site: Site) -> None:
    partition = (site.ns.steps, 1)
    write_plain(site, partition, b"a", b"b", b"c")
    gone = TopicPartition(*partition, 2)
    site.cluster.kafka_admin().client.delete_records([gone])[gone].result(DEADLINE_S)
    assert site.cluster.admin().start_offset(partition) == 2

    with pytest.raises(Expired, match="no record at offset 0"):
        list(site.cluster.admin().read_range(partition, 0, 3, timeout_s=DEADLINE_S))
    assert [one.value for one in site.cluster.admin().read_range(partition, 2, 3, timeout_s=DEADLINE_S)] == [b"c"]
    assert list(site.cluster.admin().read_range(partition, 0, 0, timeout_s=DEADLINE_S)) == []

    reader = site.reader({partition: 0})
    for _ in range(2):  # until it is assigned anew
        with pytest.raises(Expired, match="no record at offset 0"):
            take(reader, 1)
    reader.assign({partition: 2})
    assert [one.value for one in take(reader, 1)] == [b"c"]


def test_an_offset_beyond_the_end_is_expired_as_well(site: Site) -> None:
    write_plain(site, site.runs, b"a")
    with pytest.raises(Expired, match="no record at offset 9"):
        take(site.reader({site.runs: 9}), 1)


def test_topics_answer_for_themselves(site: Site) -> None:
    admin = site.cluster.admin()
    assert admin.partitions(site.ns.attempts) == 2
    assert admin.partitions(site.ns.name + ".nowhere") == 0
    assert admin.topic_id(site.ns.name + ".nowhere") == ""
    first = admin.topic_id(site.ns.rejected)
    assert first not in ("", admin.topic_id(site.ns.runs))
    assert admin.topic_id(site.ns.rejected) == first


def test_an_unfenced_offset_takes_part_in_the_group_and_moves_nobody_s(site: Site) -> None:
    group, consumed, home = site.ns.worker_group("q"), (site.ns.dispatch("q"), 0), (site.ns.attempts, 1)
    own = UnfencedOffset(group=group, partition=consumed)
    site.writer("owner").write([[record(site.ns.runs, b"x")]], offsets=own)
    site.writer("claims").write([[record(site.ns.runs, b"y")]], offsets=UnfencedOffset(group=group, partition=home))
    answers = site.raw_consumer(group).committed([TopicPartition(*consumed), TopicPartition(*home)], DEADLINE_S)
    assert [one.offset for one in answers] == [0, 0]
    assert site.ledger() == [b"x", b"y"]
