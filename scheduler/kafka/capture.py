"""L1: what a group member holds, captured in the assignment callback as one immutable value.

librdkafka hands the group metadata out as bytes: a prefix, the generation (int32, this machine's order), then group and
member, each ended by NUL, and a flag with the optional static member. Read at another time than in the callback they may
be the unfenced sentinel (generation -1, no member), which the broker accepts from anybody; so they are read here only,
and refused when they are that.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.core.ports import Assignment, GroupOffsets, Partition, UnfencedOffset

PREFIX: Final = b"CGMDv2:"
_GENERATION: Final = struct.Struct("=i")
_serials = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The group metadata, taken apart."""

    generation: int
    group: str
    member: str
    rest: bytes

    @classmethod
    def parse(cls, raw: bytes) -> Metadata:
        """Raises ValueError when the bytes are not what this version of librdkafka is known to produce."""
        start = len(PREFIX) + _GENERATION.size
        parts = raw[start:].split(b"\0", 2)
        if not raw.startswith(PREFIX) or len(parts) != 3:
            raise ValueError(
                f"the Kafka client's group metadata has an unknown form ({raw[:16]!r}...): this version of "
                "confluent-kafka cannot be used with dueline, install the one that dueline names"
            )
        (generation,) = _GENERATION.unpack_from(raw, len(PREFIX))
        return cls(generation=generation, group=parts[0].decode(), member=parts[1].decode(), rest=parts[2])

    def raw(self) -> bytes:
        """The bytes again."""
        names = self.group.encode() + b"\0" + self.member.encode() + b"\0"
        return PREFIX + _GENERATION.pack(self.generation) + names + self.rest

    @property
    def fenced(self) -> bool:
        """Whether a broker checks it at all: the sentinel is accepted from anybody."""
        return self.generation >= 0 and bool(self.member)


def unfenced(group: str) -> bytes:
    """What a client without a member gives out: brokers accept offsets of the group under it from anybody."""
    return Metadata(generation=-1, group=group, member="", rest=b"\x01").raw()


def capture(raw: bytes, partitions: Iterable[Partition]) -> Assignment | None:
    """The assignment as one value; None when the metadata is the sentinel or of a member that fell out."""
    metadata = Metadata.parse(raw)
    if not metadata.fenced:
        return None
    return Assignment(
        serial=next(_serials),
        generation=metadata.generation,
        member=metadata.member,
        partitions=frozenset(partitions),
        metadata=raw,
    )


def without(assignment: Assignment, revoked: Iterable[Partition]) -> Assignment | None:
    """What is left of it after a revocation, still under the metadata captured with it; None when nothing is."""
    left = assignment.partitions - frozenset(revoked)
    if not left:
        return None
    return Assignment(
        serial=next(_serials),
        generation=assignment.generation,
        member=assignment.member,
        partitions=left,
        metadata=assignment.metadata,
    )


def checked(offsets: GroupOffsets | UnfencedOffset) -> tuple[Mapping[Partition, int], bytes]:
    """The offsets and metadata to send, after L1 and L2. Raises ValueError: whoever built this value has a bug.

    The broker does not check that a member owns the partitions it commits, so that is checked here, too. An offset that
    moves nobody's needs no fence.
    """
    if isinstance(offsets, UnfencedOffset):
        return {offsets.partition: 0}, unfenced(offsets.group)
    raw = offsets.assignment.metadata
    if not isinstance(raw, bytes):
        raise TypeError("the assignment was not captured by this client: its metadata is not bytes")
    metadata = Metadata.parse(raw)
    if not metadata.fenced or (metadata.generation, metadata.member) != (
        offsets.assignment.generation,
        offsets.assignment.member,
    ):
        raise ValueError(
            f"refused to commit under generation {metadata.generation} of member {metadata.member!r}: "
            "not a captured assignment, and the broker would let it pass unfenced"
        )
    if not offsets.offsets:
        raise ValueError("no offset to commit: the transaction would not be fenced at all")
    for partition, offset in offsets.offsets.items():
        if offset < 0:
            raise ValueError(f"offset {offset} of {partition}: the client would send no request, so nothing is fenced")
        if partition not in offsets.assignment.partitions:
            raise ValueError(f"{partition} is not in the captured assignment {sorted(offsets.assignment.partitions)}")
    return offsets.offsets, raw
