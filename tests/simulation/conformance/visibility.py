"""What a read-committed reader is shown, and where its position stands."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from tests.simulation.conformance.bench import Bench, tried
from tests.simulation.conformance.reading import EARLIEST, LATEST, Reader, end_offset, settled_end, text
from tests.simulation.conformance.scenario import Outcome, scenario
from tests.simulation.conformance.writer import Writer

QUIET_S = 1.0


def ends(bench: Bench, topic: str) -> list[int]:
    """The high watermark and the last stable offset."""
    return [end_offset(bench, topic), end_offset(bench, topic, committed=True)]


def ten_offsets(bench: Bench) -> tuple[str, Writer, Writer]:
    """a0 b1 b2 (3) a4 (5) aborted6 (7) b8 (9): a's first transaction stands open while b's commits."""
    topic = bench.new_topic()
    a, b = Writer(bench, bench.name("a")), Writer(bench, bench.name("b"))
    a.begin()
    a.write(topic, "a")
    b.transaction(topic, "b", "b")
    bench.until(lambda: True if end_offset(bench, topic) == 4 else None, "b's marker")
    a.write(topic, "a")
    assert a.commit() == "ok"
    settled_end(bench, topic)
    a.begin()
    a.write(topic, "aborted")
    assert a.abort() == "ok"
    settled_end(bench, topic)
    b.transaction(topic, "b")
    settled_end(bench, topic)
    return topic, a, b


@scenario(
    empty=["end@0"], opened=[], opened_ends=[1, 0], behind=[], behind_ends=[4, 0],
    closed=["a@0", "b@1", "b@2", "a@4", "end@6"], closed_ends=[6, 6], aborted=["end@8"], idle=[],
)  # fmt: skip
def stops_at_the_first_open_transaction(bench: Bench) -> Outcome:
    """Of any producer; what others committed behind it waits, too. The end of the partition is told once a position."""
    topic = bench.new_topic()
    a, b = Writer(bench, bench.name("a")), Writer(bench, bench.name("b"))
    reader = Reader(bench)
    reader.assign(topic)
    seen: Outcome = {"empty": reader.until("end")}
    a.begin()
    a.write(topic, "a")
    seen |= {"opened": reader.rest(), "opened_ends": ends(bench, topic)}
    b.transaction(topic, "b", "b")
    bench.until(lambda: True if end_offset(bench, topic) == 4 else None, "b's marker")
    seen |= {"behind": reader.rest(), "behind_ends": ends(bench, topic)}
    a.write(topic, "a")
    a.commit()
    seen |= {"closed": reader.until("end"), "closed_ends": ends(bench, topic)}
    a.begin()
    a.write(topic, "aborted")
    a.abort()
    return {**seen, "aborted": reader.until("end@8"), "idle": reader.rest()}


ALL = ["a@0", "b@1", "b@2", "a@4", "b@8", "end@10"]


@scenario(
    earliest=ALL, latest=["end@10"], zero=ALL, at_a_marker=ALL[3:], at_an_aborted=ALL[4:], middle=ALL[1:], at_end=["end@10"]
)
def starts(bench: Bench) -> Outcome:
    """From each kind of offset."""
    topic, _, _ = ten_offsets(bench)
    reader = Reader(bench)
    seen = {}
    for name, offset in {
        "earliest": EARLIEST, "latest": LATEST, "zero": 0, "at_a_marker": 3, "at_an_aborted": 6, "middle": 1, "at_end": 10,
    }.items():  # fmt: skip
        reader.assign(topic, offset)
        seen[name] = reader.until("end")
    return seen


@scenario(just_past=["error _AUTO_OFFSET_RESET"], far_past=["error _AUTO_OFFSET_RESET"], once=[], after=["b@8", "end@10"])
def starts_out_of_range(bench: Bench) -> Outcome:
    """An error message, once; another assignment goes on."""
    topic, _, _ = ten_offsets(bench)
    reader = Reader(bench)
    reader.assign(topic, 11)
    seen = {"just_past": reader.until("error")}
    reader.assign(topic, 500)
    seen |= {"far_past": reader.until("error"), "once": reader.rest(QUIET_S)}
    reader.assign(topic, 8)
    return {**seen, "after": reader.until("end")}


@scenario(
    start=4, end=10, zero=["error _AUTO_OFFSET_RESET"], earliest=["a@4", "b@8", "end@10"], at_start=["a@4", "b@8", "end@10"]
)
def log_that_starts_later(bench: Bench) -> Outcome:
    """An offset below its start is out of range."""
    topic, _, _ = ten_offsets(bench)
    bench.delete_before(topic, 4)
    reader = Reader(bench)
    reader.assign(topic, 0)
    seen: Outcome = {"start": end_offset(bench, topic, earliest=True), "end": end_offset(bench, topic)}
    seen["zero"] = reader.until("error")
    for name, offset in (("earliest", EARLIEST), ("at_start", 4)):
        reader.assign(topic, offset)
        seen[name] = reader.until("end")
    return seen


@scenario(latest=["end@10"], past_stable=[], then=["b@11", "end@14"], from_latest=["open@10", "b@11", "end@14"])
def starts_behind_an_open_transaction(bench: Bench) -> Outcome:
    """LATEST is the last stable offset; an offset between that and the end is in range, and waits."""
    topic, a, b = ten_offsets(bench)
    a.begin()
    a.write(topic, "open")
    at_latest, past = Reader(bench), Reader(bench)
    at_latest.assign(topic, LATEST)
    seen = {"latest": at_latest.until("end")}
    past.assign(topic, 11)
    seen["past_stable"] = past.rest(QUIET_S)
    b.transaction(topic, "b")
    bench.until(lambda: True if end_offset(bench, topic) == 13 else None, "b's marker")
    a.commit()
    return {**seen, "then": past.until("end@14"), "from_latest": at_latest.until("end@14")}


@scenario(back=["b@1", "b@2", "a@4", "b@8", "end@10"], forward=["b@8", "end@10"], at_once=["b@8", "end@10"], stranger="_STATE")
def seeks(bench: Bench) -> Outcome:
    """A partition that was just assigned may say `_STATE` at first: a seek is asked for again."""
    topic, _, _ = ten_offsets(bench)
    reader = Reader(bench)
    reader.assign(topic)
    reader.until("end")
    reader.client.seek(TopicPartition(topic, 0, 1))
    seen: Outcome = {"back": reader.until("end")}
    reader.client.seek(TopicPartition(topic, 0, 5))
    seen["forward"] = reader.until("end")
    reader.assign(topic)
    at_8 = TopicPartition(topic, 0, 8)
    bench.until(lambda: True if tried(reader.client.seek, at_8) == "ok" else None, "a seek in a partition just assigned")
    seen["at_once"] = reader.until("end")
    return {**seen, "stranger": tried(reader.client.seek, TopicPartition(topic, 1, 0))}


@scenario(two=["a@0", "b@1"], one="b@2", rest=["a@4", "b@8", "end@10"], none=[], idle=True, waited=True)
def batches(bench: Bench) -> Outcome:
    """`consume(n, 0)` takes what is there; with a time-out it waits for all n; `poll` waits for one."""
    topic, _, _ = ten_offsets(bench)
    reader = Reader(bench)
    reader.assign(topic)
    first = reader.client.poll(10)
    assert first is not None
    bench.sleep(0.3)  # awaited: the client's queue has the rest
    seen: Outcome = {"two": [text(first), *(text(one) for one in reader.client.consume(1, 0))]}
    seen["one"] = reader.poll(1)
    seen["rest"] = [text(one) for one in reader.client.consume(100, 0)]
    seen["none"] = reader.client.consume(100, 0)
    began = bench.monotonic_s()
    seen["idle"] = reader.client.poll(0.2) is None and bench.monotonic_s() - began >= 0.19
    reader.assign(topic)
    reader.until("a")
    began = bench.monotonic_s()
    assert reader.client.consume(100, 0.4)
    return {**seen, "waited": bench.monotonic_s() - began >= 0.39}


@scenario(first=["x@0", "end@2"], second=["y@0", "end@2"], both=["end@0", "end@2", "end@2", "x@0", "y@0"])
def several_partitions(bench: Bench) -> Outcome:
    """One transaction over two of three partitions: a marker in each it wrote to."""
    topic = bench.new_topic(3)
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    writer.write(topic, "x", 0)
    writer.write(topic, "y", 2)
    writer.commit()
    seen = {}
    for name, partition in (("first", 0), ("second", 2)):
        reader = Reader(bench)
        reader.client.assign([TopicPartition(topic, partition, 0)])
        seen[name] = reader.until("end")
    reader = Reader(bench)
    reader.assign(topic, partitions=3)

    def all_seen() -> bool | None:
        reader.poll()
        return True if len(reader.seen) == 5 else None

    bench.until(all_seen, "both")
    return {**seen, "both": sorted(reader.seen)}


@scenario(missing_topic=[], missing_partition=[], empty=["end@0"], earliest=["end@0"], committed=-1001)
def nothing_to_read(bench: Bench) -> Outcome:
    """What does not exist is not an error within a second."""
    topic = bench.new_topic()
    reader = Reader(bench)
    reader.assign(bench.name("no-topic"))
    seen: Outcome = {"missing_topic": reader.rest(QUIET_S)}
    reader.client.assign([TopicPartition(topic, 7, 0)])
    seen["missing_partition"] = reader.rest(QUIET_S)
    reader.assign(topic)
    seen["empty"] = reader.until("end")
    reader.assign(topic, EARLIEST)
    seen["earliest"] = reader.until("end")
    return {**seen, "committed": reader.client.committed([TopicPartition(topic, 0)], 10)[0].offset}
