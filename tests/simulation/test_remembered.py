"""The codec of a simulation: the same record for the same bytes, and the same errors."""

from __future__ import annotations

import pytest

from dueline.schemas import codec
from dueline.schemas.errors import DecodeError
from dueline.schemas.ledger import Barrier
from proof.simulation.remembered import Remembering, remembering
from proof.simulation.substitution import substituted


def test_the_same_bytes_are_decoded_once_and_the_real_codec_comes_back() -> None:
    real, barrier = codec.CODEC, Barrier(id="b", process="s1:1", generation=7)
    value = codec.encode(barrier)
    with substituted(remembering()):
        assert codec.decode(value) == barrier
        assert codec.decode(bytes(bytearray(value))) is codec.decode(value)
        assert codec.encode(barrier) == value
        for _ in range(2):
            with pytest.raises(DecodeError):
                codec.decode(value[:-1])
    assert codec.CODEC is real
    assert codec.decode(value) is not codec.decode(value)


def test_it_forgets_before_it_grows_too_large() -> None:
    made = Remembering(most=3)
    for generation in range(10):
        barrier = Barrier(id="b", process="s1:1", generation=generation)
        assert made.decode(made.encode(barrier)) == barrier
        assert 0 < len(made) <= 3
