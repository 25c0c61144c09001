"""A copy of EndTxn that arrives late (T11): protocol 1 compares producer id and epoch only, so it ends whatever is open then."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

from dueline.scheduler.core.ports import Outgoing, WriteError
from dueline.scheduler.kafka.timing import Timing
from dueline.scheduler.kafka.transaction import TransactionalProducer
from dueline.scheduler.kafka.watchdog import Watchdog
from tests.simulation.conformance.bench import Bench
from tests.simulation.conformance.member import Member
from tests.simulation.conformance.reading import Reader, committed_values, settled_end
from tests.simulation.conformance.scenario import Outcome, scenario
from tests.simulation.conformance.writer import Writer

SENT = ["ok", "0", "sent"]
HALF: dict[str, Any] = {"commit": "ok", "second": SENT, "code": 0, "values": ["first", "second"]}


@scenario(meddles=True, told="Doubtful", survivor="ok", values=["doubted", "next"])
def broken_connection_in_a_commit_is_doubted(bench: Bench) -> Outcome:
    """By dueline's own producer, which learns of it from the client's log only: the commit itself is acknowledged."""
    topic = bench.new_topic()
    made = []
    for _ in range(2):
        made.append(TransactionalProducer(bench.config, bench.name("id"), name="leader", timing=Timing(), watchdog=Watchdog()))
        made[-1].init()
    broken, survivor = made
    bench.keep_end_txn(broken.transactional_id, breaks=True)
    return {
        "told": written(broken, topic, b"doubted"), "survivor": written(survivor, topic, b"next"),
        "values": committed_values(bench, topic),
    }  # fmt: skip


@scenario(meddles=True, first="ok", second="ok", values=["first", "second"])
def broken_connection_before_a_commit_is_not_doubted(bench: Bench) -> Outcome:
    """Although the client tells of a second break within half a minute only in its statistics."""
    topic = bench.new_topic()
    producer = TransactionalProducer(bench.config, bench.name("id"), name="leader", timing=Timing(), watchdog=Watchdog())
    producer.init()
    first = written(producer, topic, b"first")
    bench.break_connections()
    bench.sleep(1.0)  # awaited: the client's statistics from after the break
    second = written(producer, topic, b"second")
    return {"first": first, "second": second, "values": committed_values(bench, topic)}


def written(producer: TransactionalProducer, topic: str, value: bytes) -> str:
    """"ok", or the kind of the failure."""
    record = Outgoing(topic=topic, key=b"k", value=value, partition=0)
    try:
        producer.write([[record]], offsets=None, before_commit=None, survives_refusal=False)
    except WriteError as error:
        return type(error).__name__
    return "ok"


def opened(bench: Bench) -> tuple[str, str, Writer]:
    """A topic of two partitions, an id, and its writer."""
    transactional_id = bench.name("id")
    return bench.new_topic(2), transactional_id, Writer(bench, transactional_id)


@scenario(meddles=True, commit="ok", taken=True, end=2, code=0, end_after=2, next=[2], values=["first", "next"])
def late_commit_with_nothing_open(bench: Bench) -> Outcome:
    topic, name, writer = opened(bench)
    writer.begin()
    writer.write(topic, "first")
    kept = bench.keep_end_txn(name, breaks=True)
    commit = writer.commit()
    seen = {"commit": commit, "taken": kept.taken(), "end": settled_end(bench, topic), "code": kept.deliver()}
    seen["end_after"] = settled_end(bench, topic)
    return {**seen, "next": writer.transaction(topic, "next"), "values": committed_values(bench, topic)}


def half(bench: Bench, *, breaks: bool) -> tuple[Outcome, str, Writer]:
    """A transaction of one record that was ended by the copy of the commit before it."""
    topic, name, writer = opened(bench)
    writer.begin()
    writer.write(topic, "first")
    kept = bench.keep_end_txn(name, breaks=breaks)
    seen: Outcome = {"commit": writer.commit()}
    writer.begin()
    seen |= {"second": writer.write(topic, "second"), "code": kept.deliver(), "values": committed_values(bench, topic)}
    return seen, topic, writer


@scenario(meddles=True, **HALF, second_commit="ok", begin="ok", end=4)
def late_commit_then_commit(bench: Bench) -> Outcome:
    """The next transaction is committed half-way; its own commit then has nothing to end."""
    seen, topic, writer = half(bench, breaks=True)
    return {**seen, "second_commit": writer.commit(), "begin": writer.begin(), "end": settled_end(bench, topic)}


@scenario(meddles=True, **HALF, second_commit="ok", begin="ok", end=4)
def repeated_commit_then_commit(bench: Bench) -> Outcome:
    """No connection breaks: the client cannot know."""
    seen, topic, writer = half(bench, breaks=False)
    return {**seen, "second_commit": writer.commit(), "begin": writer.begin(), "end": settled_end(bench, topic)}


@scenario(
    meddles=True, **HALF, third="ok", flush="0", third_commit="INVALID_TXN_STATE abort", abort="INVALID_TXN_STATE fatal",
    after=["first", "second"],
)
def late_commit_then_the_same_partition(bench: Bench) -> Outcome:
    """A further record to a partition that the client has added is refused."""
    seen, topic, writer = half(bench, breaks=True)
    seen["third"] = writer.queue(topic, "third")
    seen["flush"] = writer.flush()
    return {**seen, "third_commit": writer.commit(), "abort": writer.abort(), "after": committed_values(bench, topic)}


@scenario(meddles=True, **HALF, third=SENT, third_commit="ok", ends=[4, 2])
def late_commit_then_another_partition(bench: Bench) -> Outcome:
    """A further record to a partition that is added anew begins a transaction of its own, and is committed."""
    seen, topic, writer = half(bench, breaks=True)
    seen["third"] = writer.write(topic, "third", 1)
    return {**seen, "third_commit": writer.commit(), "ends": [settled_end(bench, topic, 0), settled_end(bench, topic, 1)]}


@scenario(
    meddles=True, abort="ok", next=SENT, code=0, values=[], commit="INVALID_TXN_STATE fatal",
    begin="INVALID_TXN_STATE fatal", after=[],
)
def late_abort_ends_the_next_transaction(bench: Bench) -> Outcome:
    topic, name, writer = opened(bench)
    writer.begin()
    writer.write(topic, "torn")
    kept = bench.keep_end_txn(name, breaks=True)
    seen: Outcome = {"abort": writer.abort()}
    writer.begin()
    seen |= {"next": writer.write(topic, "next"), "code": kept.deliver(), "values": committed_values(bench, topic)}
    seen["commit"] = writer.commit()
    return {**seen, "begin": writer.begin(), "after": committed_values(bench, topic)}


@scenario(meddles=True, abort="ok", code=0, next=SENT, commit="ok", values=["next"])
def late_abort_before_anything_was_written(bench: Bench) -> Outcome:
    """The next transaction is not there yet for the broker."""
    topic, name, writer = opened(bench)
    writer.begin()
    writer.write(topic, "torn")
    kept = bench.keep_end_txn(name, breaks=True)
    seen: Outcome = {"abort": writer.abort()}
    settled_end(bench, topic)  # else the broker answers CONCURRENT_TRANSACTIONS
    writer.begin()
    seen |= {"code": kept.deliver(), "next": writer.write(topic, "next"), "commit": writer.commit()}
    return {**seen, "values": committed_values(bench, topic)}


@scenario(meddles=True, abort="ok", fence="ok", code=0, next=SENT, commit="ok", committed=-1001, ends=[2, 2])
def late_abort_between_offsets_and_records(bench: Bench) -> Outcome:
    """The offsets are gone with it; the records after it begin a transaction of their own, and are committed without a fence."""
    topic, name, writer = opened(bench)
    member = Member(bench, bench.name("group"), bench.new_topic())
    member.until_assigned()
    writer.begin()
    writer.write(topic, "torn")
    kept = bench.keep_end_txn(name, breaks=True)
    seen: Outcome = {"abort": writer.abort()}
    writer.begin()
    seen |= {"fence": writer.fence(member.topic, 5, member.captured), "code": kept.deliver()}
    seen |= {"next": writer.write(topic, "next", 1), "commit": writer.commit()}
    committed = member.client.committed(member.at(-1001), 10)[0].offset
    return {**seen, "committed": committed, "ends": [settled_end(bench, topic, 0), settled_end(bench, topic, 1)]}


@scenario(
    meddles=True, commit="ok", new=SENT, code=KafkaError.INVALID_PRODUCER_EPOCH, values=["first"], new_commit="ok",
    after=["first", "new"],
)
def late_commit_after_another_owner(bench: Bench) -> Outcome:
    """A new owner's epoch refuses it."""
    topic, name, writer = opened(bench)
    writer.begin()
    writer.write(topic, "first")
    kept = bench.keep_end_txn(name, breaks=True)
    seen: Outcome = {"commit": writer.commit()}
    new = Writer(bench, name)
    new.begin()
    seen |= {"new": new.write(topic, "new"), "code": kept.deliver(), "values": committed_values_behind(bench, topic)}
    return {**seen, "new_commit": new.commit(), "after": committed_values(bench, topic)}


def committed_values_behind(bench: Bench, topic: str) -> list[str]:
    """What is visible while a transaction stands open."""
    reader = Reader(bench)
    reader.assign(topic)
    return [one.rpartition("@")[0] for one in reader.until("end@2") if not one.startswith("end")]
