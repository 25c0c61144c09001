"""Members of a group: generations, the order of callbacks, what they hold, and when a captured generation ends."""

from __future__ import annotations

from dueline.scheduler.kafka.capture import Metadata
from dueline.scheduler.kafka.group import KafkaGroupReader
from tests.simulation.conformance.bench import LONG_SESSION_MS, SHORT_SESSION_MS, Bench, tried
from tests.simulation.conformance.member import Member, quiet, rounds, settled
from tests.simulation.conformance.reading import committed_values
from tests.simulation.conformance.scenario import OneOf, Outcome, scenario
from tests.simulation.conformance.writer import Writer

REFUSED = OneOf("ILLEGAL_GENERATION abort", "UNKNOWN_MEMBER_ID abort")
QUIET_S = 1.0
HALF_SESSION_S = LONG_SESSION_MS / 2000


def both_joined(bench: Bench, first: Member, second: Member) -> None:
    """Poll until both have the generation of the second's join."""
    rounds(bench, [first, second], "both", lambda: len(first.generations) == 2 and second.generations)


@scenario(
    before="sentinel", events=["assign [0]"], inside=["assign 1"], generation=1, member=True, held=[0], closing=["revoke [0]"]
)
def first_member(bench: Bench) -> Outcome:
    """Metadata are the sentinel before the first join."""
    member = Member(bench, bench.name("group"), bench.new_topic())
    before = member.metadata()
    member.until_assigned()
    metadata = Metadata.parse(member.captured)
    seen = {
        "before": before, "events": member.take(), "inside": list(member.inside), "generation": metadata.generation,
        "member": bool(metadata.member), "held": member.held(),
    }  # fmt: skip
    member.client.close()
    return {**seen, "closing": member.take()}


@scenario(
    leader=["assign []"], leader_generations=[1, 2], standby=["assign []"], standby_generations=[2], held=[[0], []],
    stale="ILLEGAL_GENERATION abort", abort="ok", fresh="ok", standby_fence="ok", commit="ok",
)  # fmt: skip
def standby_joins(bench: Bench) -> Outcome:
    """The holder keeps its partition, without a revocation, under a new generation, which an empty assign tells."""
    group, topic, other = bench.name("group"), bench.new_topic(), bench.new_topic()
    leader = Member(bench, group, topic)
    leader.until_assigned()
    leader.take()
    old = leader.captured
    standby = Member(bench, group, topic)
    both_joined(bench, leader, standby)
    quiet(bench, [leader, standby], QUIET_S)
    seen = {
        "leader": leader.take(), "leader_generations": leader.generations, "standby": standby.take(),
        "standby_generations": standby.generations, "held": [leader.held(), standby.held()],
    }  # fmt: skip
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    writer.write(other, "x")
    seen |= {"stale": writer.fence(topic, 0, old), "abort": writer.abort()}
    writer.begin()
    seen |= {"fresh": writer.fence(topic, 0, leader.captured), "standby_fence": writer.fence(topic, 0, standby.captured)}
    return {**seen, "commit": writer.commit()}


@scenario(before="ok", then="ILLEGAL_GENERATION abort", live="2", callbacks=[], generations=[1], served=["assign []"], after="ok")
def join_completes_without_a_poll(bench: Bench) -> Outcome:
    """The client joins again by itself, and its live metadata move on; the captured generation is valid until the join
    completes, and refused from then on, before the callback was served."""
    group, topic = bench.name("group"), bench.new_topic()
    leader = Member(bench, group, topic)
    leader.until_assigned()
    leader.take()
    old = leader.captured
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    seen: Outcome = {"before": writer.fence(topic, 0, old)}
    writer.abort()
    standby = Member(bench, group, topic)
    standby.until_assigned()
    writer.begin()
    seen["then"] = writer.fence(topic, 0, old)
    writer.abort()
    seen["live"] = bench.until(lambda: leader.metadata() if leader.metadata() != "1" else None, "the live metadata")
    seen |= {"callbacks": leader.take(), "generations": list(leader.generations)}
    leader.until_assigned()
    seen["served"] = leader.take()
    writer.begin()
    return {**seen, "after": writer.fence(topic, 0, leader.captured)}


@scenario(first="refused in the end", commit=REFUSED, abort="ok", again="ok", values=["again"])
def transaction_over_a_rebalance(bench: Bench) -> Outcome:
    """Refused once, captured again, repeated: the same producer goes on."""
    group, topic, other = bench.name("group"), bench.new_topic(), bench.new_topic()
    leader = Member(bench, group, topic)
    leader.until_assigned()
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    writer.write(other, "torn")
    standby = Member(bench, group, topic)

    def refused() -> str | None:
        standby.poll()
        return "refused in the end" if writer.fence(topic, 0, leader.captured) != "ok" else None

    first = bench.until(refused, "the join completes")
    seen = {"first": first, "commit": writer.commit(), "abort": writer.abort()}
    leader.until_assigned()
    writer.begin()
    writer.write(other, "again")
    assert writer.fence(topic, 0, leader.captured) == "ok"
    return {**seen, "again": writer.commit(), "values": committed_values(bench, other)}


@scenario(closing=["revoke [0]"], survivor=["assign [0]"], step=1, soon=True, stale=REFUSED, fresh="ok")
def holder_leaves(bench: Bench) -> Outcome:
    """The survivor holds the partition before the session could have ended."""
    group, topic = bench.name("group"), bench.new_topic()
    leader = Member(bench, group, topic)
    leader.until_assigned()
    survivor = Member(bench, group, topic)
    both_joined(bench, leader, survivor)
    quiet(bench, [leader, survivor], QUIET_S)
    leader.take()
    survivor.take()
    old = leader.captured
    began = bench.monotonic_s()
    leader.client.close()
    survivor.until("assign [0]")
    soon = bench.monotonic_s() - began < HALF_SESSION_S
    before, after = survivor.generations[-2:]
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    seen = {"closing": leader.take(), "survivor": survivor.take(), "step": after - before, "soon": soon}
    seen["stale"] = writer.fence(topic, 0, old)
    writer.abort()
    writer.begin()
    return {**seen, "fresh": writer.fence(topic, 0, survivor.captured)}


@scenario(before=[1], offset=5, after=[1], offset_after=-1001, old="UNKNOWN_MEMBER_ID abort", new="ok")
def deleted_group_counts_anew(bench: Bench) -> Outcome:
    """Generation 1 again, and no offsets."""
    group, topic = bench.name("group"), bench.new_topic()
    writer = Writer(bench, bench.name("id"))
    first = Member(bench, group, topic)
    first.until_assigned()
    writer.begin()
    writer.fence(topic, 5, first.captured)
    writer.commit()
    seen: Outcome = {"before": first.generations, "offset": first.client.committed(first.at(-1001), 10)[0].offset}
    first.client.close()
    bench.delete_group(group)
    second = Member(bench, group, topic)
    second.until_assigned()
    seen |= {"after": second.generations, "offset_after": second.client.committed(second.at(-1001), 10)[0].offset}
    writer.begin()
    seen["old"] = writer.fence(topic, 6, first.captured)
    writer.abort()
    writer.begin()
    return {**seen, "new": writer.fence(topic, 6, second.captured)}


@scenario(soon=True, again="ok")
def standby_of_dueline_leaves_at_once(bench: Bench) -> Outcome:
    """By dueline's own member, which unsubscribes; closing it twice is harmless."""
    group, topic = bench.name("group"), bench.new_topic()
    leader = Member(bench, group, topic)
    leader.until_assigned()
    standby = KafkaGroupReader(
        bench.config, "standby", group=group, topic=topic, session_timeout_s=LONG_SESSION_MS / 1000, max_poll_interval_s=30.0
    )

    def joined() -> bool | None:
        leader.poll()
        return True if standby.poll(0.02, 1)[0] is not None and len(leader.generations) == 2 else None

    bench.until(joined, "both")
    quiet(bench, [leader], 0.5)
    began = bench.monotonic_s()
    standby.close()
    leader.until_assigned()
    return {"soon": bench.monotonic_s() - began < HALF_SESSION_S, "again": tried(standby.close)}


@scenario(closed_soon=False, unsubscribed_soon=True, events=["assign []"], step=1)
def standby_leaves(bench: Bench) -> Outcome:
    """A member that holds nothing does not leave when it closes: the group waits until its session ends. It leaves when it
    unsubscribes before."""
    seen: Outcome = {}
    for name, unsubscribes in (("closed_soon", False), ("unsubscribed_soon", True)):
        group, topic = bench.name("group"), bench.new_topic()
        leader = Member(bench, group, topic)
        leader.until_assigned()
        standby = Member(bench, group, topic)
        both_joined(bench, leader, standby)
        quiet(bench, [leader, standby], QUIET_S)
        leader.take()
        began = bench.monotonic_s()
        if unsubscribes:
            standby.client.unsubscribe()
        standby.client.close()
        leader.until_assigned()
        seen[name] = bench.monotonic_s() - began < HALF_SESSION_S
        seen |= {"events": leader.take(), "step": leader.generations[-1] - leader.generations[-2]}
    return seen


@scenario(
    other=["assign [0]"], metadata="2 without a member", live="UNKNOWN_MEMBER_ID abort", captured="UNKNOWN_MEMBER_ID abort",
    callbacks=[], served=["error _MAX_POLL_EXCEEDED", "lost [0]", "assign []"], inside="lost 2 without a member",
    others_next=["assign []"],
)  # fmt: skip
def polls_no_more(bench: Bench) -> Outcome:
    """Beyond max.poll.interval the client leaves by itself; its next polls give an error message, the loss, and a new join."""
    group, topic = bench.name("group"), bench.new_topic()
    stalled = Member(bench, group, topic, session_timeout_ms=SHORT_SESSION_MS, max_poll_interval_ms=2000)
    stalled.until_assigned()
    other = Member(bench, group, topic)
    both_joined(bench, stalled, other)
    quiet(bench, [stalled, other], QUIET_S)
    stalled.take()
    other.take()
    other.until("assign [0]")
    seen: Outcome = {"other": other.take(), "metadata": stalled.metadata(), "callbacks": stalled.take()}
    writer = Writer(bench, bench.name("id"))
    writer.begin()
    seen["live"] = writer.fence(topic, 0, stalled.client.consumer_group_metadata())
    writer.abort()
    writer.begin()
    seen["captured"] = writer.fence(topic, 0, stalled.captured)
    stalled.inside.clear()
    rounds(bench, [stalled, other], "it joins again", lambda: len(stalled.generations) == 3)
    quiet(bench, [stalled, other], QUIET_S)
    return {**seen, "served": stalled.take(), "inside": stalled.inside[0], "others_next": other.take()}


@scenario(metadata="1 without a member", events=["error _MAX_POLL_EXCEEDED", "lost [0]", "assign [0]"], step=2)
def polls_no_more_alone(bench: Bench) -> Outcome:
    """The empty group counts one generation, too."""
    member = Member(
        bench, bench.name("group"), bench.new_topic(), session_timeout_ms=SHORT_SESSION_MS, max_poll_interval_ms=1500
    )
    member.until_assigned()
    member.take()
    metadata = bench.until(lambda: member.metadata() if member.metadata() != "1" else None, "it left")
    bench.sleep(0.5)  # awaited: the broker's answer to its leaving
    member.until_assigned()
    return {"metadata": metadata, "events": member.take(), "step": member.generations[1] - member.generations[0]}


@scenario(
    alone=["assign [0, 1, 2, 3]"], older=["revoke", "assign []", "assign []"], older_steps=[1, 2, 3],
    newer=OneOf(["assign []", "assign"], ["assign"]), newer_steps=OneOf([2, 3], [3]),
    kept=True, three_shares=[1, 1, 2], three_kept=True, left=[2, 2], left_kept=True,
    five=[0, 1, 1, 1, 1], fifth=[["assign []"]] * 5,
)  # fmt: skip
def four_partitions(bench: Bench) -> Outcome:
    """Cooperative and sticky: a partition that moves is revoked in one generation and assigned in the next; who keeps one
    sees neither."""
    group, topic = bench.name("group"), bench.new_topic(4)
    a = Member(bench, group, topic)
    a.until_assigned()
    seen: Outcome = {"alone": a.take()}
    b = Member(bench, group, topic)
    held = settled(bench, [a, b], [2, 2])
    for name, member in (("older", a), ("newer", b)):  # the newer may see the second generation before it saw the first
        seen[name] = [one if one.endswith("[]") else one.split()[0] for one in member.take()]
        seen[f"{name}_steps"] = list(member.generations)
    seen["kept"] = len(held[0]) == 2 and sorted(held[0] + held[1]) == [0, 1, 2, 3]
    c = Member(bench, group, topic)
    three = settled(bench, [a, b, c], [2, 1, 1])
    seen["three_shares"] = sorted(len(one) for one in three)
    seen["three_kept"] = set(three[0]) <= set(held[0]) and set(three[1]) <= set(held[1])
    a.client.close()
    left = settled(bench, [b, c], [2, 2])
    seen["left"] = [len(one) for one in left]
    seen["left_kept"] = set(three[1]) <= set(left[0]) and set(three[2]) <= set(left[1])
    d, e = Member(bench, group, topic), Member(bench, group, topic)
    settled(bench, [b, c, d, e], [1, 1, 1, 1])
    members = [b, c, d, e]
    for one in members:
        one.take()
    fifth = Member(bench, group, topic)
    five = settled(bench, [*members, fifth], [1, 1, 1, 1, 0])
    rounds(bench, [*members, fifth], "the fifth's join", lambda: fifth.generations)
    quiet(bench, [*members, fifth], QUIET_S)
    return {**seen, "five": sorted(len(one) for one in five), "fifth": [one.take() for one in [*members, fifth]]}
