"""L1 and L2 before anything is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dueline.scheduler.core.ports import Assignment, GroupOffsets
from dueline.scheduler.kafka.capture import Metadata, capture, checked, without

CONTROL = ("ns.control", 0)
RAW = Metadata(generation=7, group="ns.schedulers", member="m-1", rest=b"\x01").raw()


def captured() -> Assignment:
    assignment = capture(RAW, [CONTROL, ("ns.control", 1)])
    assert assignment is not None
    return assignment


def test_metadata_survives_being_taken_apart() -> None:
    assert Metadata.parse(RAW).raw() == RAW
    assert Metadata.parse(RAW) == Metadata(generation=7, group="ns.schedulers", member="m-1", rest=b"\x01")


@pytest.mark.parametrize("raw", [b"", b"CGMDv2:", b"CGMDv3:" + RAW[7:], RAW[:12]])
def test_unknown_metadata_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="unknown form"):
        Metadata.parse(raw)


@pytest.mark.parametrize(("generation", "member"), [(-1, ""), (-1, "m-1"), (7, "")])
def test_a_sentinel_is_never_captured(generation: int, member: str) -> None:
    raw = replace(Metadata.parse(RAW), generation=generation, member=member).raw()
    assert capture(raw, [CONTROL]) is None


def test_every_capture_has_its_own_serial() -> None:
    assert captured().serial != captured().serial


def test_a_revocation_leaves_the_rest_under_the_captured_metadata() -> None:
    before = captured()
    after = without(before, [CONTROL])
    assert after is not None
    assert after.partitions == {("ns.control", 1)}
    assert (after.metadata, after.generation) == (before.metadata, before.generation)
    assert without(before, before.partitions) is None


def test_a_captured_assignment_may_be_sent() -> None:
    assert checked(GroupOffsets(assignment=captured(), offsets={CONTROL: 0})) == ({CONTROL: 0}, RAW)


@pytest.mark.parametrize("offset", [-1, -2, -1001])
def test_an_offset_below_zero_is_refused(offset: int) -> None:
    with pytest.raises(ValueError, match="no request"):
        checked(GroupOffsets(assignment=captured(), offsets={CONTROL: offset}))


def test_no_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="not be fenced"):
        checked(GroupOffsets(assignment=captured(), offsets={}))


def test_a_partition_outside_of_the_assignment_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the captured assignment"):
        checked(GroupOffsets(assignment=captured(), offsets={("ns.other", 0): 1}))


def test_a_sentinel_put_into_an_assignment_is_refused() -> None:
    sentinel = replace(Metadata.parse(RAW), generation=-1, member="").raw()
    forged = replace(captured(), metadata=sentinel)
    with pytest.raises(ValueError, match="unfenced"):
        checked(GroupOffsets(assignment=forged, offsets={CONTROL: 0}))


def test_metadata_of_another_capture_is_refused() -> None:
    newer = replace(Metadata.parse(RAW), generation=8).raw()
    with pytest.raises(ValueError, match="not a captured assignment"):
        checked(GroupOffsets(assignment=replace(captured(), metadata=newer), offsets={CONTROL: 0}))
