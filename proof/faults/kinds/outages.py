"""Brokers that die, stand still, give their coordinators away, or cannot write."""

from __future__ import annotations

import logging
import resource
from pathlib import Path
from random import Random
from typing import Final

from dueline.scheduler.kafka.broker.errors import BrokerStartFailed, FolderInUse
from dueline.scheduler.kafka.vocabulary import KafkaException
from proof.faults.clock import now_ms
from proof.faults.kinds.kind import Attack, Kind, free_node
from proof.faults.world import Acts, World

log = logging.getLogger(__name__)

TRIES: Final = 3
AWAY_S: Final = (0.1, 2.0)
FROZEN_S: Final = (0.3, 4.0)
ANSWER_S: Final = 5.0
HALT_S: Final = 20.0
"""For a broker to give up once its disk is full."""
ROOM: Final = 20_000
"""Bytes that still fit at most: the write that does not may be cut in the middle of a batch."""
COORDINATED: Final = ("__consumer_offsets", "__transaction_state")


def kill_broker(world: World, chance: Random) -> Attack | None:
    """SIGKILL; started again a moment later."""
    node = free_node(world, chance)
    if node is None:
        return None

    def acts() -> Acts:
        fault = world.notes.fault("kill-broker", world.brokers.name(node))
        world.brokers.down.add(node)
        yield from world.aside(lambda: world.brokers.kill(node))
        yield from world.hold(chance.uniform(*AWAY_S))
        yield from back(world, node)
        fault.end()

    return Attack(targets=(world.brokers.name(node),), acts=acts())


def freeze_broker(world: World, chance: Random) -> Attack | None:
    """SIGSTOP, for less or more than other nodes wait for it."""
    node = free_node(world, chance)
    if node is None:
        return None
    seconds = chance.uniform(*FROZEN_S)

    def acts() -> Acts:
        fault = world.notes.fault("stop-broker", world.brokers.name(node), detail=f"{seconds:.1f} s")
        world.brokers.freeze(node)
        yield from world.hold(seconds)
        world.brokers.thaw(node)
        fault.end()
        yield from world.hold(1.0)

    return Attack(targets=(world.brokers.name(node),), acts=acts())


def move_coordinator(world: World, chance: Random) -> Attack | None:
    """The node that coordinates the election's group, or the transactions, is killed or stops: another one takes over."""
    if free_node(world, chance) is None:
        return None
    topic, killed = chance.choice(COORDINATED), chance.random() < 0.5

    def acts() -> Acts:
        began_ms, kind = now_ms(), "coordinator-killed" if killed else "coordinator-moved"
        node = yield from world.aside(lambda: leader_of(world, topic))
        if node not in world.brokers.nodes:
            world.notes.missed(kind, "", began_ms, f"nobody says who leads {topic}")
            return
        world.brokers.down.add(node)
        fault = world.notes.fault(kind, world.brokers.name(node), detail=f"leads {topic}")
        yield from world.aside(lambda: world.brokers.kill(node) if killed else world.brokers.stop(node))
        yield from back(world, node)
        fault.end()

    return Attack(targets=tuple(map(world.brokers.name, world.brokers.nodes)), acts=acts())


def revive(world: World, node: int) -> Attack:
    """A broker whose group coordinator gave up by itself: a fault that nobody wanted, and that only another start ends."""

    def acts() -> Acts:
        world.brokers.down.add(node)
        fault = world.notes.fault("coordinator-failed", world.brokers.name(node), detail="by a bug of the broker's own")
        yield from world.aside(lambda: world.brokers.kill(node))
        yield from back(world, node)
        fault.end()

    return Attack(targets=(), acts=acts())


def fill_disk(world: World, chance: Random) -> Attack | None:
    """No file of the broker can grow any more, by a limit of the process: writes fail as on a full disk, perhaps in the middle
    of a batch, and the broker halts. It is started again with room."""
    node = free_node(world, chance)
    if node is None:
        return None
    broker = world.brokers.nodes[node]

    def acts() -> Acts:
        fault = world.notes.fault("disk-full", world.brokers.name(node))
        world.brokers.down.add(node)
        limit = largest(broker.folder.data) + chance.randrange(ROOM)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (limit, limit))
        halted = yield from world.until(lambda: not broker.is_running, HALT_S)
        world.brokers.halted(node)
        if not halted:
            yield from world.aside(lambda: world.brokers.kill(node))
        yield from world.hold(chance.uniform(*AWAY_S))
        yield from back(world, node)
        fault.end("it halted" if halted else "it did not halt, and was killed")

    return Attack(targets=(world.brokers.name(node),), acts=acts())


# --- steps ------------------------------------------------------------------------------------------------------------


def back(world: World, node: int) -> Acts:
    """Start it again, and again if it does not come up."""
    tries = 0
    while not world.brokers.nodes[node].is_running:
        try:
            yield from world.aside(lambda: world.brokers.start_one(node))
        except (BrokerStartFailed, FolderInUse) as error:
            tries += 1
            if tries == TRIES:
                raise
            log.warning("broker %d did not start: %s", node, error)
    world.brokers.down.discard(node)


def leader_of(world: World, topic: str) -> int:
    """The node that leads the topic's one partition; -1 if none does or nobody answers."""
    try:
        known = world.admin().list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
    except KafkaException:
        return -1
    return known[0].leader if known else -1


def largest(data: Path) -> int:
    """Bytes of the longest log segment."""
    return max((file.stat().st_size for file in data.glob("*/*.log")), default=0)


KINDS: Final = (
    Kind(name="kill-broker", weight=3, begin=kill_broker),
    Kind(name="stop-broker", weight=3, begin=freeze_broker),
    Kind(name="coordinator-moved", weight=4, begin=move_coordinator, nodes=3),
    Kind(name="disk-full", weight=1, begin=fill_disk),
)
