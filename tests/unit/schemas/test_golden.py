"""The bytes of every record type are those that were fixed once (tests/golden)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dueline.schemas.codec import TYPES, decode, decode_as, encode
from dueline.schemas.errors import DecodeError
from tests.golden.samples import from_json, to_json

FOLDER = Path(__file__).resolve().parents[2] / "golden"
CASES = [
    pytest.param(file.name.split(".")[0], case, id=f"{file.stem}-{number}")
    for file in sorted(FOLDER.glob("*.json"))
    for number, case in enumerate(json.loads(file.read_text(encoding="utf-8")))
]


def test_every_type_has_a_golden_file() -> None:
    assert {file.stem for file in FOLDER.glob("*.json") if "." not in file.stem} == set(TYPES)


@pytest.mark.parametrize(("name", "case"), CASES)
def test_bytes_are_as_they_were(name: str, case: dict[str, Any]) -> None:
    record = from_json(TYPES[name], case["record"])
    assert encode(record).hex() == case["hex"]
    assert decode(bytes.fromhex(case["hex"])) == record
    assert to_json(decode_as(TYPES[name], bytes.fromhex(case["hex"]))) == case["record"]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_every_truncation_and_every_addition_is_refused(name: str, case: dict[str, Any]) -> None:
    value = bytes.fromhex(case["hex"])
    for cut in range(len(value)):
        with pytest.raises(DecodeError):
            decode(value[:cut])
    with pytest.raises(DecodeError, match="followed by 1 bytes"):
        decode(value + b"\0")
