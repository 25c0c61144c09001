"""One partition: offsets, time, idempotence, retention, compaction."""

from __future__ import annotations

from dataclasses import replace

from proof.simulation.broker import codes
from proof.simulation.broker.log import Log
from proof.simulation.protocol import Fetch, FetchAnswer, NewRecord, Produce, ProduceAnswer
from tests.simulation.broker.driver import P0, Driver

HOUR_MS = 3_600_000


def test_offsets_and_the_leaders_time() -> None:
    driver = Driver()
    assert driver.put("a", "b") == 0
    assert driver.put("c") == 2
    driver.cluster.set_clock(1, -HOUR_MS)
    driver.wait(1.0)
    driver.put("d")
    first, *_, last = driver.read().records
    assert [record.offset for record in driver.read().records] == [0, 1, 2, 3]
    assert last.append_ms - first.append_ms == 1000 - HOUR_MS
    assert (driver.end(), driver.read().start, driver.read().high_watermark) == (4, 0, 4)


def test_a_clock_that_drifts() -> None:
    driver = Driver()
    driver.cluster.set_clock(1, 0, drift=100)
    driver.wait(10.0)
    driver.put("a")
    assert driver.read().records[0].append_ms == driver.kernel.epoch_ms + 10_000 + 1_000


def test_a_long_fetch_is_answered_as_soon_as_there_is_something() -> None:
    driver = Driver()
    driver.put("a")
    soon = driver.send(_fetch(1))
    driver.wait(0.2)
    assert not soon.answered()
    driver.put("b")
    assert soon.answered()
    late = driver.send(_fetch(2))
    driver.wait(0.9)
    assert not late.answered()
    driver.wait(0.2)
    [answer] = late.answers
    assert isinstance(answer, FetchAnswer)
    assert (answer.next_offset, answer.records) == (2, ())


def test_a_batch_sent_again_is_answered_as_at_first_and_nothing_is_skipped() -> None:
    driver = Driver()
    writer = driver.writer()
    writer.add()
    first = writer.batch("a", "b")
    answers = [driver.ask(first, ProduceAnswer) for _ in range(3)]
    assert [(answer.code, answer.offset) for answer in answers] == [(0, 0)] * 3
    assert driver.ask(writer.batch("z", sequence=3), ProduceAnswer).code == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert driver.ask(writer.batch("c"), ProduceAnswer).offset == 2
    assert driver.ask(first, ProduceAnswer).offset == 0
    assert driver.end() == 3


def test_an_older_epoch_is_refused() -> None:
    driver = Driver()
    old = driver.writer()
    old.add()
    new = driver.writer()
    assert new.epoch > old.epoch
    assert old.put("a") == codes.INVALID_PRODUCER_EPOCH
    new.write("b")
    assert old.put("a") == codes.INVALID_PRODUCER_EPOCH
    assert driver.values() == ["b"]


def test_what_is_too_large_is_refused() -> None:
    driver = Driver()
    driver.cluster.create_topic("small", 1, {"max.message.bytes": "1000"})
    record = NewRecord(key=None, value=b"x" * 1000)
    request = Produce(partition=("small", 0), records=(record,), pid=-1, epoch=-1, sequence=-1, transactional=False)
    assert driver.ask(request, ProduceAnswer).code == codes.MSG_SIZE_TOO_LARGE
    assert driver.ask(_with_value(request, b"x" * 900), ProduceAnswer).code == 0


def test_retention_moves_the_start_and_readers_before_it_are_told() -> None:
    driver = Driver()
    driver.put("a", "b", "c")
    driver.cluster.delete_before(P0, 2)
    answer = driver.read()
    assert (answer.code, answer.start) == (codes.OFFSET_OUT_OF_RANGE, 2)
    assert [record.offset for record in driver.read(offset=2).records] == [2]
    assert driver.read(offset=4).code == codes.OFFSET_OUT_OF_RANGE


def test_retention_by_time() -> None:
    driver = Driver()
    driver.cluster.create_topic("short", 1, {"retention.ms": "600000"})
    driver.put("a", partition=("short", 0))
    driver.wait(500.0)
    driver.put("b", partition=("short", 0))
    assert driver.read(("short", 0)).code == 0
    driver.wait(400.0)
    assert driver.read(("short", 0)).start == 1


def test_compaction_keeps_the_last_write_by_position() -> None:
    log = Log()
    for value in ("a1", "b1", "a2", "c1", "b2"):
        log.append([NewRecord(key=value[:1].encode(), value=value.encode())], 0)
    assert log.compact(0, 1000) == 2
    found, next_offset = log.read(0, True, 100)
    assert ([record.offset for record in found], next_offset, log.end) == ([2, 3, 4], 5, 5)


def test_a_tombstone_goes_delete_retention_after_its_first_cleaning() -> None:
    """T20: a reader slower than that never sees the deletion; one that began before it keeps the key."""
    log = Log()
    log.append([NewRecord(key=b"a", value=b"1")], 0)
    log.append([NewRecord(key=b"a", value=None)], 0)
    log.append([NewRecord(key=b"b", value=b"1")], 0)
    early, position = log.read(0, True, 1)
    assert [record.value for record in early] == [b"1"]
    assert log.compact(HOUR_MS, 1000) == 1
    assert log.compact(HOUR_MS + 999, 1000) == 0
    assert [record.value for record in log.read(position, True, 9)[0]] == [None, b"1"]
    assert log.compact(HOUR_MS + 1000, 1000) == 1
    assert [record.key for record in log.read(position, True, 9)[0]] == [b"b"]


def test_compaction_stops_at_the_first_open_transaction() -> None:
    driver = Driver()
    driver.put("a1")
    writer = driver.writer()
    writer.add()
    writer.put("b1")
    driver.put("a2", "b2")
    assert driver.cluster.compact(P0) == 0
    writer.end()
    assert driver.cluster.compact(P0) == 2
    assert driver.values() == ["a2", "b2"]


def test_a_tail_without_its_last_marker_leaves_a_reader_short_of_the_end() -> None:
    """T21: offsets 0 a, 1 b, 2 marker; the reader of the compacted log never gets to 3."""
    driver = Driver()
    driver.cluster.create_topic("c", 1, {"delete.retention.ms": "0", "cleanup.policy": "compact"})
    writer = driver.writer()
    assert writer.add(("c", 0)) == 0
    assert writer.put("a", partition=("c", 0)) == 0
    assert writer.end(commit=False) == 0
    assert driver.cluster.compact(("c", 0)) == 2
    answer = driver.read(("c", 0), wait_s=0.5)
    assert (answer.records, answer.next_offset, answer.end) == ((), 0, 2)


def _fetch(offset: int) -> Fetch:
    return Fetch(partition=P0, offset=offset, committed_only=True, max_wait_s=1.0)


def _with_value(request: Produce, value: bytes) -> Produce:
    return replace(request, records=(NewRecord(key=None, value=value),))
