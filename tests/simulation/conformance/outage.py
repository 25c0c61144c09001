"""The broker is killed and comes back: what each call says meanwhile, and that everything goes on by itself."""

from __future__ import annotations

from typing import Any

from confluent_kafka import TopicPartition

from tests.simulation.conformance.bench import Bench, told, tried
from tests.simulation.conformance.member import Member
from tests.simulation.conformance.reading import Reader, committed_values, end_offset
from tests.simulation.conformance.scenario import OneOf, Outcome, scenario
from tests.simulation.conformance.writer import Writer

LONG_MS = 100_000
"""A transaction that outlives the broker's restart."""


def back(bench: Bench, topic: str) -> None:
    """The broker is back, and leads the topic's partition."""
    bench.start_broker()

    def leads() -> bool | None:
        tried(lambda: bench.admin().list_topics(timeout=5) and None)  # else the client asks under the leadership it knew
        return True if tried(end_offset, bench, topic).isdigit() else None

    bench.until(leads, "the broker leads again", 60.0)


@scenario(
    restarts=True, commit="_TIMED_OUT retriable", commit_repeated="_TIMED_OUT retriable", begin="_CONFLICT retriable",
    abort="_TIMED_OUT retriable", queue="ok", flush="1", commit_after="ok", abort_after="ok", flush_after="0",
    flushed_commit="ok", fence_after="ok", fenced_commit="ok", idle_after="ok", next=1,
    values=["committed", "fenced", "flushed", "idle", "next"],
)  # fmt: skip
def transactions_over_a_restart(bench: Bench) -> Outcome:
    """Open transactions live on in the broker's log: what was asked for is asked for again, and answered."""
    topic = bench.new_topic()
    member = Member(bench, bench.name("group"), bench.new_topic(), session_timeout_ms=60_000, max_poll_interval_ms=200_000)
    member.until_assigned()
    committing, aborting, flushing, fencing, idle = (
        Writer(bench, bench.name("id"), timeout_ms=LONG_MS) for _ in range(5)
    )  # fmt: skip
    for writer, value in ((committing, "committed"), (aborting, "aborted"), (fencing, "fenced")):
        writer.begin()
        writer.write(topic, value)
    flushing.begin()
    bench.stop_broker()
    seen: Outcome = {
        "commit": tried(committing.client.commit_transaction, 0.5),
        "commit_repeated": tried(committing.client.commit_transaction, 0.5),
        "begin": committing.begin(),
        "abort": tried(aborting.client.abort_transaction, 0.5),
        "queue": flushing.queue(topic, "flushed"),
        "flush": flushing.flush(0.5),
    }
    back(bench, topic)
    seen |= {
        "commit_after": again(bench, committing.client.commit_transaction),
        "abort_after": again(bench, aborting.client.abort_transaction),
        "flush_after": bench.until(lambda: "0" if flushing.flush() == "0" else None, "flush"),
        "flushed_commit": flushing.commit(),
        "fence_after": fencing.fence(member.topic, 1, member.captured),
        "fenced_commit": fencing.commit(),
    }
    idle.begin()
    idle.write(topic, "idle")
    seen["idle_after"] = idle.commit()
    seen["next"] = len(committing.transaction(topic, "next"))
    return {**seen, "values": sorted(committed_values(bench, topic))}


def again(bench: Bench, call: Any) -> str:
    """What the call says once it is answered."""

    def probe() -> str | None:
        said = tried(call, 10.0)
        return None if said.endswith("retriable") else said

    return bench.until(probe, "an answer")


@scenario(
    restarts=True, read=[], init="_TIMED_OUT retriable", committed="_TIMED_OUT", admin=False, begin="ok", queue="ok",
    flush="1", abort="ok", purged=["_PURGE_QUEUE"], plain_left="0", plain=["_MSG_TIMED_OUT"], lost=True,
    back=["x@0", "end@1"], init_after="ok", plain_after=[0],
)  # fmt: skip
def calls_while_the_broker_is_away(bench: Bench) -> Outcome:
    topic = bench.new_topic()
    member = Member(bench, bench.name("group"), bench.new_topic(), session_timeout_ms=1000)
    member.until_assigned()
    member.take()
    reader = Reader(bench)
    reader.assign(topic)
    reader.until("end")
    idle, fresh = Writer(bench, bench.name("id"), timeout_ms=LONG_MS), Writer(bench, bench.name("id"), init=False)
    plain = bench.producer(client_id="plain", message_timeout_ms=2000)
    reports: list[Any] = []

    def reported(error: Any, message: Any) -> None:
        reports.append(told(error) if error is not None else message.offset())

    bench.stop_broker()
    seen: Outcome = {
        "read": [one for one in reader.rest(0.5) if not one.startswith("end")],
        "init": tried(fresh.client.init_transactions, 0.5),
        "committed": tried(member.client.committed, [TopicPartition(member.topic, 0)], 0.5),
        "admin": tried(end_offset, bench, topic).isdigit(),
        "begin": idle.begin(),
        "queue": idle.queue(topic, "never"),
        "flush": idle.flush(0.5),
        "abort": tried(idle.client.abort_transaction, 5.0),
        "purged": idle.reports,
    }
    plain.produce(topic, b"late", b"k", 0, on_delivery=reported)
    seen["plain_left"] = tried(plain.flush, 10)
    seen["plain"] = list(reports)
    member.until("lost [0]")
    seen["lost"] = bool(member.take())
    reports.clear()
    back(bench, topic)
    plain.produce(topic, b"x", b"k", 0, on_delivery=reported)
    assert plain.flush(30) == 0
    return {
        **seen, "back": reader.until("end@1"), "init_after": again(bench, fresh.client.init_transactions), "plain_after": reports,
    }  # fmt: skip


@scenario(restarts=True, events=True, fence="ok", commit="ok", committed=4)
def members_over_a_restart(bench: Bench) -> Outcome:
    """Whether a member keeps its generation or joins anew, it can go on under what it captured last."""
    topic = bench.new_topic()
    member = Member(bench, bench.name("group"), topic, session_timeout_ms=1000)
    member.until_assigned()
    writer = Writer(bench, bench.name("id"), timeout_ms=LONG_MS)
    bench.stop_broker()
    member.poll_for(2.5)
    back(bench, topic)

    def fenced() -> str | None:
        member.poll_for(0.2)
        if not member.held():
            return None
        writer.begin()
        said = writer.fence(topic, 4, member.captured)
        if said != "ok":
            writer.abort()
            return None
        return said

    seen: Outcome = {"fence": bench.until(fenced, "a generation that is accepted"), "events": member.held() == [0]}
    seen["commit"] = writer.commit()
    return {**seen, "committed": member.client.committed([TopicPartition(topic, 0)], 10)[0].offset}


@scenario(
    restarts=True, commit_while_away="_TIMED_OUT retriable", left="0", report="_MSG_TIMED_OUT",
    commit=OneOf("_INCONSISTENT abort", "_TIMED_OUT abort"), late_fence="_TIMED_OUT retriable", fence_waited=True,
    abort=OneOf("_FENCED fatal", "ok"), late_commit=OneOf("_FENCED fatal", "ok"), values=True,
)  # fmt: skip
def transactions_that_the_outage_outlives(bench: Bench) -> Outcome:
    """Records time out with their transaction. The time-out of send_offsets is not heeded: it ends with the transaction's.
    What the client repeats by itself may come before the broker's sweep; whatever it says then is so. A broker that sweeps in
    the first second after it was killed may forget the topic's partition, whose readers then stand still (docs/kafka.md): what
    it forgot ends with the next transaction of the same id that touches the partition."""
    topic = bench.new_topic()
    ids = [bench.name("id") for _ in range(3)]
    member = Member(bench, bench.name("group"), bench.new_topic())
    member.until_assigned()
    writer, committing, fencing = (Writer(bench, each, timeout_ms=2000) for each in ids)
    for one in (writer, committing, fencing):
        one.begin()
        one.write(topic, "torn")
    bench.stop_broker()
    writer.queue(topic, "late")
    seen: Outcome = {"commit_while_away": tried(committing.client.commit_transaction, 0.5)}
    began = bench.monotonic_s()
    seen["late_fence"] = tried(fencing.client.send_offsets_to_transaction, member.at(1), member.captured, 0.3)
    seen["fence_waited"] = bench.monotonic_s() - began > 1.5
    seen |= {"left": writer.flush(10), "report": writer.reports[-1], "commit": writer.commit()}
    back(bench, topic)
    seen["abort"] = again(bench, writer.client.abort_transaction)
    seen["late_commit"] = again(bench, committing.client.commit_transaction)
    successors = [Writer(bench, each) for each in ids]
    for one in successors:
        one.begin()
        one.write(topic, "nothing")
        one.abort()
    successors[0].transaction(topic, "new")

    def all_ended() -> bool | None:
        return True if end_offset(bench, topic, committed=True) == end_offset(bench, topic, committed=False) else None

    bench.until(all_ended, "the end of every transaction", 60.0)
    committed = ["torn", "new"] if seen["late_commit"] == "ok" else ["new"]
    return {**seen, "values": committed_values(bench, topic) == committed}
