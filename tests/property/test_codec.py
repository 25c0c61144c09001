"""decode(encode(x)) == x for every record, and DecodeError, nothing else, for whatever is no record."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.schemas.codec import TYPES, Record, decode, decode_as, encode
from dueline.schemas.errors import DecodeError
from dueline.schemas.registry import released
from tests.golden.samples import filled

VALUES: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(max_size=40),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
}
PREFIXES = [known.prefix for known in released().current.values()]
SAMPLES = [encode(filled(cls)) for cls in TYPES.values()]


def values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is list:
        return st.lists(values(get_args(hint)[0]), max_size=4)
    return records(hint) if is_dataclass(hint) and isinstance(hint, type) else VALUES[hint]


def records(cls: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{name: values(hint) for name, hint in get_type_hints(cls).items()})


def outcome(value: bytes) -> Record | DecodeError:
    try:
        return decode(value)
    except DecodeError as error:
        return error


@pytest.mark.parametrize("cls", TYPES.values(), ids=TYPES)
def test_round_trip(cls: type[Any]) -> None:
    @given(records(cls))
    def holds(record: Any) -> None:
        value = encode(record)
        assert decode(value) == record
        assert decode_as(cls, value) == record
        assert encode(decode(value)) == value

    holds()


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(value: bytes) -> None:
    assert isinstance(outcome(value), DecodeError)


@given(st.sampled_from(PREFIXES), st.binary(max_size=400))
def test_random_bodies_are_refused_or_are_records(prefix: bytes, body: bytes) -> None:
    found = outcome(prefix + body)
    # Avro has more than one form of a number or an array, so an accepted body need not be ours; its content must be.
    if not isinstance(found, DecodeError):
        assert encode(decode(encode(found))) == encode(found)


@given(st.sampled_from(SAMPLES), st.data())
def test_truncated_records_are_refused(value: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(value) - 1))
    assert isinstance(outcome(value[:cut]), DecodeError)


@given(st.sampled_from(SAMPLES), st.binary(min_size=1, max_size=40))
def test_trailing_bytes_are_refused(value: bytes, rest: bytes) -> None:
    assert isinstance(outcome(value + rest), DecodeError)


@given(st.sampled_from(SAMPLES), st.data())
def test_flipped_bits_are_refused_or_are_another_record(value: bytes, data: st.DataObject) -> None:
    damaged = bytearray(value)
    for position in data.draw(st.sets(st.integers(0, len(value) * 8 - 1), min_size=1, max_size=4)):
        damaged[position // 8] ^= 1 << position % 8
    found = outcome(bytes(damaged))
    if not isinstance(found, DecodeError):
        assert type(found).__name__ in TYPES
