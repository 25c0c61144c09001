"""Processes that are stopped as a whole, and woken: a member beyond its session, an owner inside a transaction."""

from __future__ import annotations

from typing import Any

from tests.simulation.conformance.bench import SHORT_SESSION_MS, Bench, Puppet
from tests.simulation.conformance.member import Member
from tests.simulation.conformance.reading import Reader, committed_values
from tests.simulation.conformance.scenario import OneOf, Outcome, scenario
from tests.simulation.conformance.writer import Writer

WAITED_MS = 3000
REFUSED = OneOf("ILLEGAL_GENERATION abort", "UNKNOWN_MEMBER_ID abort")


def both(bench: Bench, puppet: Puppet, member: Member, until: Any) -> list[str]:
    """Poll the puppet and the member in turns until it holds for the puppet's events so far, which are returned."""
    events: list[str] = []

    def probe() -> bool | None:
        member.poll(0.05)
        events.extend(puppet.run("poll", 0.05))
        return True if until(events) else None

    bench.until(probe, f"the puppet's event, after {events}")
    return events


@scenario(
    joined=["assign [0]"], standby=["assign []"], survivor=["assign [0]"], step=1, woken=["lost [0]", "assign []"], stale=REFUSED,
    survivors_next=["assign []"], fence="ok", same_generation=True,
)  # fmt: skip
def member_stopped_beyond_its_session(bench: Bench) -> Outcome:
    group, topic = bench.name("group"), bench.new_topic()
    puppet = bench.puppet()
    joined = puppet.run("join", group, topic, SHORT_SESSION_MS)
    survivor = Member(bench, group, topic)
    both(bench, puppet, survivor, lambda events: "assign []" in events and survivor.generations)
    seen: Outcome = {"joined": joined, "standby": survivor.take()}
    old = bytes.fromhex(puppet.run("captured")[0])
    puppet.freeze()
    survivor.until("assign [0]")
    before, after = survivor.generations[-2:]
    seen |= {"survivor": survivor.take(), "step": after - before}
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    seen["stale"] = writer.fence(topic, 0, old)
    writer.abort()
    puppet.thaw()
    seen["woken"] = both(bench, puppet, survivor, lambda events: "assign []" in events)
    survivor.poll_for(1.0)
    writer.begin()
    return {
        **seen, "survivors_next": survivor.take(), "fence": writer.fence(topic, 0, survivor.captured),
        "same_generation": puppet.run("captured")[1] == survivor.generations[-1],
    }  # fmt: skip


@scenario(waited=True, joiner=["assign [0]"], woken=["lost [0]"])
def join_waits_for_a_stopped_member(bench: Bench) -> Outcome:
    """Until its session ends; the longer time-out of a rebalance does not matter."""
    group, topic = bench.name("group"), bench.new_topic()
    puppet = bench.puppet()
    puppet.run("join", group, topic, WAITED_MS)
    puppet.run("poll", 0.5)
    puppet.freeze()
    joiner = Member(bench, group, topic)
    began = bench.monotonic_s()
    joiner.until("assign")
    seen: Outcome = {"waited": bench.monotonic_s() - began > WAITED_MS / 2000, "joiner": joiner.take()}
    puppet.thaw()
    return {**seen, "woken": both(bench, puppet, joiner, lambda events: "lost [0]" in events)[:1]}


@scenario(events=[], survivor=[], fence="ok")
def member_stopped_within_its_session(bench: Bench) -> Outcome:
    """Nothing happens."""
    group, topic = bench.name("group"), bench.new_topic()
    puppet = bench.puppet()
    puppet.run("join", group, topic, 6000)
    survivor = Member(bench, group, topic)
    both(bench, puppet, survivor, lambda events: "assign []" in events and survivor.generations)
    survivor.take()
    old = bytes.fromhex(puppet.run("captured")[0])
    puppet.freeze()
    survivor.poll_for(2.0)
    puppet.thaw()
    events = both(bench, puppet, survivor, lambda _: True)
    events += puppet.run("poll", 1.0)
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    return {"events": events, "survivor": survivor.take(), "fence": writer.fence(topic, 0, old)}


@scenario(begun="ok ok 0 sent", new=[2], woken="_FENCED fatal", values=["new"])
def owner_stopped_inside_a_transaction(bench: Bench) -> Outcome:
    """The newer owner aborts what was open; the one that wakes cannot commit it."""
    topic, transactional_id = bench.new_topic(), bench.name("id")
    puppet = bench.puppet()
    begun = puppet.run("begin", transactional_id, topic, "torn", 10_000)
    puppet.freeze()
    new = Writer(bench, transactional_id).transaction(topic, "new")
    puppet.thaw()
    return {"begun": begun, "new": new, "woken": puppet.run("commit"), "values": committed_values(bench, topic)}


@scenario(begun="ok ok 0 sent", held=[], after=["behind@1", "end@4"], woken="_FENCED fatal")
def owner_stopped_beyond_its_transaction(bench: Bench) -> Outcome:
    """Readers wait until the broker aborts it; then its commit is refused."""
    topic = bench.new_topic()
    puppet = bench.puppet()
    begun = puppet.run("begin", bench.name("id"), topic, "torn", 3000)
    puppet.freeze()
    Writer(bench, bench.name("id")).transaction(topic, "behind")
    reader = Reader(bench)
    reader.assign(topic)
    held = [one for one in reader.rest(0.5) if one != "end@0"]
    after = [one for one in reader.until("end@4") if one != "end@0"]
    puppet.thaw()
    return {"begun": begun, "held": held, "after": after, "woken": puppet.run("commit")}
