"""Where each input goes on: the ledger's positions against the topics as they are now (L6).

A position outside its topic, or of a topic with another id, is an alarm. The input is not read until a person accepts it
by command; accepting moves the position to what the topic still has, resets nothing else and deletes no job.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from dueline.scheduler.core.ports import LogAdmin, Partition
from dueline.scheduler.core.state import State
from dueline.schemas.ledger import Position

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to read one input partition from, or why not."""

    position: Position
    alarm: str = ""


class InputPositions:
    """The next offset of every input partition of one term."""

    def __init__(self, admin: LogAdmin, partitions: list[Partition], state: State) -> None:
        """Ask the broker about every input. Raises Unavailable."""
        self._admin = admin
        self._ids = {topic: admin.topic_id(topic) for topic in {topic for topic, _ in partitions}}
        self._now: dict[Partition, Position] = {}
        self.alarms: dict[Partition, str] = {}
        for partition in partitions:
            start = self._start(partition, state.positions.get(partition))
            self._now[partition] = start.position
            if start.alarm:
                self.alarms[partition] = start.alarm
                log.error("%s", start.alarm, extra={"action": "position_alarm"})

    def _start(self, partition: Partition, known: Position | None) -> Start:
        topic, number = partition
        first, end = self._admin.start_offset(partition), self._admin.end_offset(partition)
        if known is None:
            return Start(position=Position(topic=topic, topic_id=self._ids[topic], partition=number, offset=first))
        problem = ""
        if known.topic_id != self._ids[topic]:
            problem = f"is another topic than the one read so far (id {self._ids[topic]}, not {known.topic_id})"
        elif known.offset < first:
            problem = f"starts at offset {first}, but was read only to {known.offset}: what stood between is gone"
        elif known.offset > end:
            problem = f"ends at offset {end}, but was read to {known.offset}: records were lost or the topic was made anew"
        if problem:
            problem = (
                f"{topic}[{number}] {problem}. It is not read until somebody has looked at it and accepts what it has now: "
                f"dueline accept-positions {topic}"
            )
        return Start(position=known, alarm=problem)

    def alarmed(self, topic: str) -> bool:
        """Whether the topic must not be read."""
        return any(name == topic for name, _ in self.alarms)

    def accept(self, topic: str) -> None:
        """A person accepts what the topic has now. Raises Unavailable."""
        for partition in [partition for partition in self.alarms if partition[0] == topic]:
            known = self._now[partition]
            first, end = self._admin.start_offset(partition), self._admin.end_offset(partition)
            same = known.topic_id == self._ids[topic]
            offset = min(max(known.offset, first), end) if same else first
            self._now[partition] = Position(
                topic=topic, topic_id=self._ids[topic], partition=partition[1], offset=offset
            )
            del self.alarms[partition]
            log.warning("%s[%d] accepted from offset %d", topic, partition[1], offset, extra={"action": "position_accepted"})

    def offset(self, partition: Partition) -> int:
        """The next offset to decide on."""
        return self._now[partition].offset

    def advance(self, partition: Partition, offset: int) -> None:
        """Everything below this was decided in this round."""
        known = self._now[partition]
        if offset > known.offset and partition not in self.alarms:
            self._now[partition] = Position(
                topic=known.topic, topic_id=known.topic_id, partition=known.partition, offset=offset
            )

    def vector(self) -> list[Position]:
        """All of them, for the ledger."""
        return list(self._now.values())
