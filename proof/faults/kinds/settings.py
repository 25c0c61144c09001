"""Faults that an operator makes: other time-outs, a deleted consumer group, topics that forget too early."""

from __future__ import annotations

import json
import time
from enum import IntEnum
from random import Random
from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError, KafkaException, TopicPartition
from proof.faults import entry
from proof.faults.kinds.kills import UP_S, terminate
from proof.faults.kinds.kind import Attack, Kind, free_leader, free_standby
from proof.faults.plan import PARTITIONS, QUEUE
from proof.faults.recorder import NotRead, ends_of, read_log
from proof.faults.world import Acts, World

SESSIONS_S: Final = (1.0, 2.0, 3.0)
TRANSACTIONS_S: Final = (4.5, 5.0, 8.0)
ANSWER_S: Final = 10.0
GROUP_EMPTY_S: Final = 15.0
READ_S: Final = 15.0


def change_timeouts(world: World, chance: Random) -> Attack | None:
    """A scheduler is started again with another session and transaction time-out, lower or higher; they stay."""
    child = free_leader(world) if chance.random() < 0.5 else free_standby(world, chance)
    if child is None:
        return None
    session_s = chance.choice(SESSIONS_S) * world.plan.session_s
    transaction_s = chance.choice(TRANSACTIONS_S)

    def acts() -> Acts:
        detail = f"session {session_s:g} s, transaction {transaction_s:g} s"
        fault = world.notes.fault("timeouts-changed", child.name, detail=detail)
        yield from terminate(world, child)
        child.arguments[child.arguments.index("--session-timeout") + 1] = f"{session_s:g}"
        child.session_ms = round(session_s * 1000)
        fields = {**world.plan.scheduler_fields, "transaction_timeout_s": transaction_s}
        poll_s = float(str(fields["max_poll_interval_s"]))
        fields["max_poll_interval_s"] = max(poll_s, session_s)  # the client wants it no shorter than the session
        child.environ[entry.SCHEDULER_ENVIRONMENT] = json.dumps(fields)
        world.crew.back(child)
        fault.end()
        yield from world.hold(UP_S)

    return Attack(targets=(child.name,), acts=acts())


class Gone(IntEnum):
    """Whether the group was deleted."""

    NO = 0
    PERHAPS = 1
    YES = 2


def delete_group(world: World, chance: Random) -> Attack | None:
    """While no scheduler runs, their consumer group is deleted: its generations begin at 1 again (T9)."""
    names = tuple(child.name for child in world.crew.schedulers)
    if world.leader() is None:  # after it, the first term under generation 1 follows one that decided something
        return None

    def acts() -> Acts:
        fault = world.notes.fault("group-deleted", ",".join(names))
        for child in world.crew.schedulers:
            if chance.random() < 0.5:
                world.crew.kill(child)
            else:
                yield from terminate(world, child)
        gone, end_s = Gone.NO, time.monotonic() + GROUP_EMPTY_S
        while gone is not Gone.YES and time.monotonic() < end_s:
            tried = yield from world.aside(lambda: _delete(world))
            gone = max(gone, tried)
        for child in world.crew.schedulers:
            world.crew.back(child)
        if gone is Gone.NO:
            fault.end_instead("schedulers-stopped", f"the group was not empty within {GROUP_EMPTY_S:g} s")
        else:
            fault.end("deleted" if gone is Gone.YES else "perhaps deleted: nobody answered")
        yield from world.hold(UP_S)

    return Attack(targets=names, acts=acts())


def _delete(world: World) -> Gone:
    group, admin = world.namespace.scheduler_group, world.admin()  # a client that nobody holds answers no more
    try:
        admin.delete_consumer_groups([group], request_timeout=ANSWER_S)[group].result(ANSWER_S)
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.GROUP_ID_NOT_FOUND:
            return Gone.YES
        return Gone.NO if code == KafkaError.NON_EMPTY_GROUP else Gone.PERHAPS  # the killed ones are members for a session yet
    except TimeoutError:
        return Gone.PERHAPS
    return Gone.YES


def run_out(world: World, _: Random) -> Attack | None:
    """Everything that stands in `dispatch` and `signals` now is gone, as after their retention: both are derived from the
    ledger. What was there is kept for the history, and deleted as soon as it was read."""
    topics = (world.namespace.dispatch(QUEUE), world.namespace.signals)
    partitions = [(topic, number) for topic in topics for number in range(PARTITIONS)]
    if world.held & set(topics):
        return None

    asked_of: list[int] = []  # how many records, once the broker is asked to delete them

    def drop() -> str:
        ends = ends_of(world.brokers.servers, partitions)  # first: what comes while the log is read stays
        gone = 0
        for where, entries in read_log(world.brokers.servers, partitions, within_s=READ_S).items():
            kept = [entry for entry in entries if entry.offset < ends[where]]
            before = world.kept_log.setdefault(where, [])  # the last time it may have been deleted only in part
            known = {entry.offset for entry in before}
            before.extend(entry for entry in kept if entry.offset not in known)
            gone += len(kept)
        asked_of.append(gone)
        asked = [TopicPartition(topic, number, offset) for (topic, number), offset in ends.items() if offset > 0]
        admin = world.admin()  # a client that nobody holds answers no more
        answers = admin.delete_records(asked, request_timeout=ANSWER_S)
        lowest = {where: answer.result(ANSWER_S).low_watermark for where, answer in answers.items()}
        left = [f"{where.topic}[{where.partition}]" for where, offset in lowest.items() if offset < where.offset]
        return f"{gone} records" + (f"; not all is gone of {', '.join(left)}" if left else "")

    def acts() -> Acts:
        fault = world.notes.fault("retention-over", ",".join(topics))
        try:
            said = yield from world.aside(drop)
        except (KafkaException, NotRead, TimeoutError) as error:
            said = f"{'perhaps' if asked_of else 'not'} done: {type(error).__name__} {error}"
        fault.end(said, struck=sum(asked_of) > 0)

    return Attack(targets=topics, acts=acts())


KINDS: Final = (
    Kind(name="timeouts-changed", weight=3, begin=change_timeouts),
    Kind(name="group-deleted", weight=1, begin=delete_group, alone=True),
    Kind(name="retention-over", weight=2, begin=run_out),
)
