"""The fence: what a transaction's offsets and metadata decide."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from dueline.scheduler.kafka.capture import Metadata
from dueline.scheduler.kafka.selftest import generation_before, sentinel
from tests.simulation.conformance.bench import Bench, tried
from tests.simulation.conformance.member import Member
from tests.simulation.conformance.reading import committed_values, settled_end
from tests.simulation.conformance.scenario import Outcome, scenario
from tests.simulation.conformance.writer import CALL_S, Writer


def member_and_writer(bench: Bench) -> tuple[Member, Writer, str]:
    """A member that holds the only partition of its topic, an initialised writer, and a topic to write to."""
    member = Member(bench, bench.name("group"), bench.new_topic())
    member.until_assigned()
    return member, Writer(bench, bench.name("id")), bench.new_topic()


@scenario(
    begin="ok", fence="ILLEGAL_GENERATION abort", produce="_STATE", flush="0", commit="ILLEGAL_GENERATION abort", abort="ok",
    after=[0], values=["after"],
)
def stale_generation_is_refused(bench: Bench) -> Outcome:
    """The producer can go on after an abort."""
    member, writer, topic = member_and_writer(bench)
    begin = writer.begin()
    fence = writer.fence(member.topic, 0, generation_before(member.captured))
    seen = {
        "begin": begin,
        "fence": fence,
        "produce": writer.queue(topic, "in between"),
        "flush": writer.flush(),
        "commit": writer.commit(),
        "abort": writer.abort(),
    }
    return {**seen, "after": writer.transaction(topic, "after"), "values": committed_values(bench, topic)}


@scenario(fence="ILLEGAL_GENERATION abort", records=["ok", "0", "sent"], abort="ok", committed=[], end=2)
def stale_generation_after_records(bench: Bench) -> Outcome:
    """What was written before is aborted with the rest; the abort marker takes an offset."""
    member, writer, topic = member_and_writer(bench)
    writer.begin()
    records = writer.write(topic, "torn")
    fence = writer.fence(member.topic, 0, generation_before(member.captured))
    seen = {"records": records, "fence": fence, "abort": writer.abort()}
    return {**seen, "committed": committed_values(bench, topic), "end": settled_end(bench, topic)}


@scenario(
    unknown_member="UNKNOWN_MEMBER_ID abort", next_generation="ILLEGAL_GENERATION abort", other_group="ILLEGAL_GENERATION abort",
    member_only="ILLEGAL_GENERATION abort", generation_only="UNKNOWN_MEMBER_ID abort",
)
def forged_metadata(bench: Bench) -> Outcome:
    """Each in a transaction of its own, aborted."""
    member, writer, _ = member_and_writer(bench)
    real = Metadata.parse(member.captured)
    forged = {
        "unknown_member": Metadata(generation=real.generation, group=real.group, member="nobody", rest=real.rest),
        "next_generation": Metadata(generation=real.generation + 1, group=real.group, member=real.member, rest=real.rest),
        "other_group": Metadata(generation=real.generation, group=bench.name("nogroup"), member=real.member, rest=real.rest),
        "member_only": Metadata(generation=-1, group=real.group, member=real.member, rest=real.rest),
        "generation_only": Metadata(generation=real.generation, group=real.group, member="", rest=real.rest),
    }
    seen = {}
    for name, metadata in forged.items():
        writer.begin()
        seen[name] = writer.fence(member.topic, 0, metadata.raw())
        assert writer.abort() == "ok"
    return seen


@scenario(fence="ok", commit="ok", values=["unfenced"], committed=7)
def sentinel_is_committed(bench: Bench) -> Outcome:
    member, writer, topic = member_and_writer(bench)
    writer.begin()
    writer.write(topic, "unfenced")
    seen = {"fence": writer.fence(member.topic, 7, sentinel(member.captured)), "commit": writer.commit()}
    return {**seen, "values": committed_values(bench, topic), "committed": committed(member)}


@scenario(fence="ok", commit="ok", values=["unfenced"], committed=-1001)
def invalid_offset_sends_no_request(bench: Bench) -> Outcome:
    member, writer, topic = member_and_writer(bench)
    writer.begin()
    writer.write(topic, "unfenced")
    seen = {"fence": writer.fence(member.topic, -1001, generation_before(member.captured)), "commit": writer.commit()}
    return {**seen, "values": committed_values(bench, topic), "committed": committed(member)}


@scenario(before=-1001, during="_TIMED_OUT", after=5, last=8, empty_fence="ok", empty_commit="ok", unchanged=8)
def offsets_of_a_transaction(bench: Bench) -> Outcome:
    """They count with the commit, without a record, too; the last of several counts. Meanwhile a question for them waits."""
    member, writer, _ = member_and_writer(bench)
    seen: Outcome = {"before": committed(member)}
    writer.begin()
    assert writer.fence(member.topic, 5, member.captured) == "ok"
    seen["during"] = tried(member.client.committed, [TopicPartition(member.topic, 0)], 1.0)
    assert writer.commit() == "ok"
    seen["after"] = committed(member)
    writer.begin()
    assert writer.fence(member.topic, 9, member.captured) == "ok"
    assert writer.fence(member.topic, 8, member.captured) == "ok"
    assert writer.commit() == "ok"
    seen["last"] = committed(member)
    writer.begin()
    seen["empty_fence"] = tried(writer.client.send_offsets_to_transaction, [], member.captured, CALL_S)
    return {**seen, "empty_commit": writer.commit(), "unchanged": committed(member)}


@scenario(commit="ok", committed=5, aborted="ok")
def aborted_offsets_do_not_count(bench: Bench) -> Outcome:
    member, writer, _ = member_and_writer(bench)
    writer.begin()
    assert writer.fence(member.topic, 5, member.captured) == "ok"
    commit = writer.commit()
    writer.begin()
    assert writer.fence(member.topic, 6, member.captured) == "ok"
    return {"commit": commit, "aborted": writer.abort(), "committed": committed(member)}


@scenario(unowned="ok", commit="ok", committed=3, no_partition="UNKNOWN_TOPIC_OR_PART abort", abort="ok")
def partitions_nobody_holds(bench: Bench) -> Outcome:
    """The broker does not check who holds a partition; that it exists, it does."""
    member, writer, topic = member_and_writer(bench)
    writer.begin()
    seen = {"unowned": writer.fence(topic, 3, member.captured), "commit": writer.commit()}
    held = member.client.committed([TopicPartition(topic, 0)], CALL_S)[0].offset
    writer.begin()
    missing = writer.fence(topic, 3, member.captured, partition=7)
    return {**seen, "committed": held, "no_partition": missing, "abort": writer.abort()}


@scenario(
    before_init="_STATE", commit="_STATE", abort="_STATE", produce="_STATE", fence="_STATE", init_twice="_STATE",
    begin_twice="_STATE", after="ok",
)
def calls_out_of_order(bench: Bench) -> Outcome:
    member, writer, topic = member_and_writer(bench)
    fresh = Writer(bench, bench.name("id"), init=False)
    seen = {
        "before_init": fresh.begin(),
        "commit": writer.commit(),
        "abort": writer.abort(),
        "produce": writer.queue(topic, "x"),
        "fence": writer.fence(member.topic, 0, member.captured),
        "init_twice": writer.init(),
    }
    writer.begin()
    return {**seen, "begin_twice": writer.begin(), "after": writer.abort()}


def committed(member: Member) -> int:
    """The group's offset of the member's first partition."""
    return member.client.committed([TopicPartition(member.topic, 0)], CALL_S)[0].offset
