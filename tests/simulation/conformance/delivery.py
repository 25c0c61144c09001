"""Delivery reports, flush, purge: what a producer is told about its records."""

from __future__ import annotations

from typing import Any

from tests.simulation.conformance.bench import Bench, told, tried
from tests.simulation.conformance.reading import Reader, committed_values, end_offset
from tests.simulation.conformance.scenario import OneOf, Outcome, scenario
from tests.simulation.conformance.writer import Writer

LOG_APPEND_TIME = 2
MANY = 50


@scenario(
    queued=True, left="0", after=0, reports=MANY, in_order=True, offsets=list(range(MANY)), by_broker=True, near=True,
    same_as_read=True, values=MANY,
)  # fmt: skip
def reports_of_a_transaction(bench: Bench) -> Outcome:
    """In order, with the log's offsets and the broker's time, which is what a reader finds."""
    topic = bench.new_topic()
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    began_ms = bench.now_ms()
    for number in range(MANY):
        assert writer.queue(topic, f"{number}") == "ok"
    queued = len(writer.client) >= MANY  # log lines that wait count as well
    left = writer.flush()
    ended_ms = bench.now_ms()
    after = len(writer.client)
    writer.commit()
    reader = Reader(bench)
    reader.assign(topic)
    read: list[tuple[int, int]] = []
    while len(read) < MANY:
        message = reader.client.poll(10)
        assert message is not None and message.error() is None
        assert message.value() == str(len(read)).encode()
        read.append(message.timestamp())
    return {
        "queued": queued, "left": left, "after": after, "reports": writer.reports.count("sent"),
        "in_order": writer.offsets == sorted(writer.offsets), "offsets": writer.offsets,
        "by_broker": {kind for kind, _ in writer.stamps} == {LOG_APPEND_TIME},
        "near": all(began_ms - 1 <= stamp <= ended_ms + 1 for _, stamp in writer.stamps),
        "same_as_read": read == writer.stamps, "values": len(read),
    }  # fmt: skip


@scenario(abort="ok", told=OneOf(["_PURGE_QUEUE"], ["_PURGE_QUEUE", "sent"], ["sent"]), left=0, values=["after"])
def abort_purges(bench: Bench) -> Outcome:
    """What is queued is reported as purged, what was on its way may be reported as sent; nothing of it is visible."""
    topic = bench.new_topic()
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    for number in range(5):
        writer.queue(topic, f"{number}")
    abort = writer.abort()
    seen = {"abort": abort, "told": sorted(set(writer.reports)), "left": len(writer.client)}
    assert len(writer.reports) == 5
    writer.transaction(topic, "after")
    return {**seen, "values": committed_values(bench, topic)}


@scenario(commit="ok", reports=["sent", "sent"], left=0, values=["0", "1"])
def commit_flushes(bench: Bench) -> Outcome:
    topic = bench.new_topic()
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    for number in range(2):
        writer.queue(topic, f"{number}")
    commit = writer.commit()
    return {"commit": commit, "reports": writer.reports, "left": len(writer.client), "values": committed_values(bench, topic)}


@scenario(
    queue="ok", flush="0", report="UNKNOWN_TOPIC_OR_PART", commit="_INCONSISTENT abort", abort="ok",
    no_partition="_UNKNOWN_PARTITION", harmless="ok", values=["good"],
)  # fmt: skip
def places_that_do_not_exist(bench: Bench) -> Outcome:
    """A failed record makes the transaction abortable; one that was refused at once does it no harm."""
    topic = bench.new_topic()
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    writer.write(topic, "torn")
    seen = {"queue": writer.queue(bench.name("no-topic"), "x"), "flush": writer.flush(), "report": writer.reports[-1]}
    seen |= {"commit": writer.commit(), "abort": writer.abort()}
    writer.begin()
    writer.write(topic, "good")
    return {
        **seen, "no_partition": writer.queue(topic, "x", partition=9), "harmless": writer.commit(),
        "values": committed_values(bench, topic),
    }  # fmt: skip


@scenario(
    report=["0", LOG_APPEND_TIME, "k", "v"], tombstone=["1", LOG_APPEND_TIME, "k", "-"], headers=["h", "1"], none=None,
    missing="UNKNOWN_TOPIC_OR_PART", too_large="MSG_SIZE_TOO_LARGE", no_partition="_UNKNOWN_PARTITION", flush="0",
    read=["v@0", "-@1", "v@2"], end=3,
)  # fmt: skip
def plain_records(bench: Bench) -> Outcome:
    """Without transactions: no marker, visible at once; reports come in poll and flush."""
    topic = bench.new_topic()
    producer = bench.producer(client_id="plain", message_timeout_ms=30_000)
    reports: list[Any] = []

    def reported(error: Any, message: Any) -> None:
        if error is not None:
            reports.append(told(error))
            return
        kind, _ = message.timestamp()
        reports.append([str(message.offset()), kind, message.key().decode(), (message.value() or b"-").decode()])

    producer.produce(topic, b"v", b"k", 0, on_delivery=reported)
    assert producer.flush(10) == 0
    producer.produce(topic, None, b"k", 0, on_delivery=reported)
    bench.until(lambda: producer.poll(0.1) or (True if len(reports) > 1 else None), "the report")
    producer.produce(topic, b"v", b"k", 0, headers=[("h", b"1")])
    producer.produce(bench.name("no-topic"), b"v", b"k", 0, on_delivery=reported)
    flush = tried(producer.flush, 20)
    reader = Reader(bench)
    reader.assign(topic)
    messages = [reader.client.poll(10) for _ in range(3)]
    [header] = messages[2].headers()
    return {
        "report": reports[0], "tombstone": reports[1], "headers": [header[0], header[1].decode()],
        "none": messages[0].headers(), "missing": reports[2],
        "too_large": tried(producer.produce, topic, b"x" * 3_000_000, b"k", 0),
        "no_partition": tried(producer.produce, topic, b"x", b"k", 9), "flush": flush,
        "read": [f"{(one.value() or b'-').decode()}@{one.offset()}" for one in messages], "end": end_offset(bench, topic),
    }  # fmt: skip
