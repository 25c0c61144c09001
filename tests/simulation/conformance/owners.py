"""Owners of a transactional id: each initialisation fences the one before, and aborts what it left open."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.conformance.bench import Bench, tried
from tests.simulation.conformance.member import Member
from tests.simulation.conformance.reading import Reader, committed_values, end_offset, settled_end
from tests.simulation.conformance.scenario import OneOf, Outcome, scenario
from tests.simulation.conformance.writer import Writer

LOST = "_FENCED fatal"
LOST_OR_FATAL = OneOf(LOST, "_FATAL fatal")
"""The real client's callbacks meet at times an exception that is pending already: `client.callbacks_served` tells."""


def deposed(bench: Bench, topic: str) -> tuple[Writer, Writer]:
    """An owner with an open transaction of one record, and the newer owner that fenced it."""
    transactional_id = bench.name("id")
    old = Writer(bench, transactional_id)
    old.begin()
    assert old.write(topic, "torn") == ["ok", "0", "sent"]
    return old, Writer(bench, transactional_id)


def timed_out(bench: Bench, topic: str) -> Writer:
    """An owner whose transaction of one record the broker has ended."""
    writer = Writer(bench, bench.name("id"), timeout_ms=1000)
    writer.begin()
    assert writer.write(topic, "torn") == ["ok", "0", "sent"]
    Reader(bench).until_end(topic, 2)  # the record, and the marker of the broker's abort
    return writer


def after_the_loss(writer: Writer, topic: str, member: Member) -> Outcome:
    """Every call, once the client knows."""
    return {
        "fence": writer.fence(member.topic, 0, member.captured),
        "commit": writer.commit(),
        "abort": writer.abort(),
        "begin": writer.begin(),
        "queue": writer.queue(topic, "zombie"),
        "flush": writer.flush(),
        "poll": tried(writer.client.poll, 0),
        "init": writer.init(),
    }


ALL_LOST = {
    "fence": LOST, "commit": LOST, "abort": LOST, "begin": LOST, "queue": "_FATAL", "flush": "0", "poll": "0", "init": LOST,
}  # fmt: skip


def first_calls(bench: Bench, loser: Callable[[], Writer], topic: str) -> Outcome:
    """What each call says when it is the first that the loser makes."""
    member = Member(bench, bench.name("group"), bench.new_topic())
    member.until_assigned()
    by_fence, by_commit, by_abort, by_flush = loser(), loser(), loser(), loser()
    seen: Outcome = {
        "fence": by_fence.fence(member.topic, 0, member.captured),
        "commit": by_commit.commit(),
        "abort": by_abort.abort(),
        "queue": by_flush.queue(topic, "zombie"),
        "flush": by_flush.flush(),
        "sent": by_flush.reports.count("sent"),
    }
    return {**seen, "later": after_the_loss(by_flush, topic, member)}


@scenario(fence=LOST, commit=LOST, abort=LOST, queue="ok", flush=LOST_OR_FATAL, sent=1, later=ALL_LOST, values=[], new=["new"])
def newer_owner_aborts_and_fences(bench: Bench) -> Outcome:
    topic = bench.new_topic()
    seen = first_calls(bench, lambda: deposed(bench, topic)[0], topic)
    values = committed_values(bench, topic)
    _, new = deposed(bench, topic)
    new.transaction(topic, "new")
    return {**seen, "values": values, "new": committed_values(bench, topic)}


@scenario(fence=LOST, commit=LOST, abort=LOST, queue="ok", flush=LOST_OR_FATAL, sent=1, later=ALL_LOST, again="ok")
def transaction_that_timed_out_on_the_broker(bench: Bench) -> Outcome:
    """Looks the same as a rival. A new initialisation goes on."""
    seen = first_calls(bench, lambda: timed_out(bench, bench.new_topic()), bench.new_topic())
    transactional_id = bench.name("id")
    slow = Writer(bench, transactional_id, timeout_ms=1000)
    slow.begin()
    topic = bench.new_topic()
    slow.write(topic, "torn")
    Reader(bench).until_end(topic, 2)
    return {**seen, "again": Writer(bench, transactional_id, init=False).init()}


@scenario(
    empty_commit="ok", empty_abort="ok", begin="ok", queue="ok", commit=LOST, abort="_CONFLICT retriable", fence=LOST, values=[]
)
def idle_owner_that_was_fenced(bench: Bench) -> Outcome:
    """Begin and what has nothing in it are the client's alone; the first request tells."""
    topic = bench.new_topic()
    member = Member(bench, bench.name("group"), bench.new_topic())
    member.until_assigned()
    transactional_id = bench.name("id")
    writers = [Writer(bench, transactional_id) for _ in range(4)]
    idle, unflushed, fencing, _ = writers
    idle.begin()
    seen: Outcome = {"empty_commit": idle.commit()}
    idle.begin()
    seen["empty_abort"] = idle.abort()
    seen["begin"] = unflushed.begin()
    seen["queue"] = unflushed.queue(topic, "x")
    seen["commit"] = unflushed.commit()
    seen["abort"] = unflushed.abort()
    fencing.begin()
    seen["fence"] = fencing.fence(member.topic, 0, member.captured)
    return {**seen, "values": committed_values(bench, topic)}


@scenario(end=[2, 2], again=[2, 2])
def initialisation_waits_for_the_markers(bench: Bench) -> Outcome:
    """Once an id is initialised nothing of its older owner can come any more: the end that is asked for then is its end."""
    topic, other = bench.new_topic(), bench.new_topic()
    transactional_id = bench.name("id")
    old = Writer(bench, transactional_id)
    old.begin()
    old.write(topic, "torn")
    old.write(other, "torn")
    new = Writer(bench, transactional_id)
    ends = [end_offset(bench, topic), end_offset(bench, other)]
    new.begin()
    old.queue(topic, "zombie")
    old.flush()
    return {"end": ends, "again": [end_offset(bench, topic), end_offset(bench, other)]}


@scenario(early=[0], late_init="ok", late=[2], deposed_queue="ok", deposed_flush=LOST_OR_FATAL, third=[4])
def the_last_initialised_owns(bench: Bench) -> Outcome:
    """Whoever was there first, or opened its client later: epochs follow the order of initialisation."""
    topic, transactional_id = bench.new_topic(), bench.name("id")
    opened_first = Writer(bench, transactional_id, init=False)
    opened_later = Writer(bench, transactional_id)
    early = opened_later.transaction(topic, "early")
    late_init = opened_first.init()
    late = opened_first.transaction(topic, "late")
    opened_later.begin()
    deposed_queue, deposed_flush = opened_later.queue(topic, "zombie"), opened_later.flush()
    third = Writer(bench, transactional_id).transaction(topic, "third")
    return {
        "early": early, "late_init": late_init, "late": late, "deposed_queue": deposed_queue, "deposed_flush": deposed_flush,
        "third": third,
    }  # fmt: skip


@scenario(inits=["ok", "ok"], winners=1, losers=[LOST], values=1)
def two_initialise_at_once(bench: Bench) -> Outcome:
    topic, transactional_id = bench.new_topic(), bench.name("id")
    old = Writer(bench, transactional_id)
    old.begin()
    old.write(topic, "torn")
    rivals = [Writer(bench, transactional_id, init=False) for _ in range(2)]
    tasks = [bench.spawn(one.init) for one in rivals]
    inits = [task.join() for task in tasks]
    said = []
    for one in rivals:
        one.begin()
        one.queue(topic, "one of them")
        said.append(one.commit())
    return {
        "inits": inits, "winners": said.count("ok"), "losers": [one for one in said if one != "ok"],
        "values": len(committed_values(bench, topic)),
    }  # fmt: skip


@scenario(short=OneOf("_TIMED_OUT retriable", "CONCURRENT_TRANSACTIONS retriable"), again="ok", values=["after"])
def initialisation_in_parts(bench: Bench) -> Outcome:
    """A call that ends before its answer is called again."""
    topic, transactional_id = bench.new_topic(), bench.name("id")
    old = Writer(bench, transactional_id)
    old.begin()
    old.write(topic, "torn")
    new = Writer(bench, transactional_id, init=False)
    short = tried(new.client.init_transactions, 0.001)
    again = bench.until(lambda: "ok" if new.init() == "ok" else None, "the second call")
    new.transaction(topic, "after")
    return {"short": short, "again": again, "values": committed_values(bench, topic)}


@scenario(first=[0], second=[2], third=[4, 5], fourth=[7], end=9, values=["a", "b", "c", "d", "e"])
def producers_in_turns(bench: Bench) -> Outcome:
    """Each commit leaves a marker that takes an offset."""
    topic = bench.new_topic()
    a, b = Writer(bench, bench.name("id")), Writer(bench, bench.name("id"))
    seen: Outcome = {}
    for name, writer, values in (("first", a, "a"), ("second", b, "b"), ("third", a, "cd"), ("fourth", b, "e")):
        seen[name] = writer.transaction(topic, *values)
        settled_end(bench, topic)  # the other one need not wait for this marker, and would write before it
    return {**seen, "end": settled_end(bench, topic), "values": committed_values(bench, topic)}
