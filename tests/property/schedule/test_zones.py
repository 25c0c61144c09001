"""The zone reader against the standard library's, on the same files."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from dueline.scheduler.core.schedule.zone import Zone, load_zone
from dueline.scheduler.core.schedule.zone_file import zone_names
from tests.property.schedule.strategies import zone_info

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = int(datetime(1850, 1, 1, tzinfo=UTC).timestamp())
LAST = int(datetime(9_990, 1, 1, tzinfo=UTC).timestamp())
NEAR = int(datetime(2060, 1, 1, tzinfo=UTC).timestamp())


def expected(name: str, at: int) -> int:
    offset = (EPOCH + timedelta(seconds=at)).astimezone(zone_info(name)).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


@pytest.mark.parametrize("name", sorted(zone_names()))
def test_offsets_are_those_of_zoneinfo(name: str) -> None:
    zone, chance = load_zone(name), random.Random(name)
    points = [chance.randrange(FIRST, NEAR) for _ in range(20)] + [chance.randrange(NEAR, LAST) for _ in range(5)]
    for at in points:
        span = zone.span_at(at)
        assert span.start <= at < span.end
        for point in (at, span.start, span.start - 1, span.end - 1, span.end):
            if FIRST < point < LAST:
                assert zone.offset_at(point) == expected(name, point), (name, point)
        check_neighbours(zone, at)


def check_neighbours(zone: Zone, at: int) -> None:
    span = zone.span_at(at)
    if span.end < LAST:
        following = zone.span_at(span.end)
        assert following.start == span.end
        assert following.offset != span.offset
        assert span.shown_again == span.end + min(span.offset, following.offset)
        assert following.shown_to == span.end + max(span.offset, following.offset)
        assert following.gap_from == span.end + min(span.offset, following.offset)
