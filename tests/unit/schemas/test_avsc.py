"""The `.avsc` files and the dataclasses say the same, and the schemas can evolve."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from io import BytesIO
from typing import Any, get_args, get_origin, get_type_hints

import fastavro
import pytest
from fastavro.schema import to_parsing_canonical_form

from dueline.schemas.codec import TYPES, Codec, encode
from dueline.schemas.registry import Registry, parse, released, schema_texts
from dueline.schemas.work import Signal
from tests.golden.samples import filled

AVRO = {str: "string", int: "long", float: "double", bool: "boolean", bytes: "bytes"}
SCHEMAS = {name.split(".")[0]: json.loads(text) for name, text in schema_texts() if name.count(".") == 1}


def expected(cls: type[Any], seen: set[str]) -> dict[str, Any] | str:
    """The schema that a record type must have, without docs; a type's second mention is its name."""
    if cls.__name__ in seen:
        return cls.__name__
    seen.add(cls.__name__)
    hints = get_type_hints(cls)
    declared = []
    for field in fields(cls):
        entry: dict[str, Any] = {"name": field.name, "type": avro_type(hints[field.name], seen)}
        if field.default is not MISSING:
            is_bytes = isinstance(field.default, bytes)
            entry["default"] = field.default.decode("latin-1") if is_bytes else field.default
        elif field.default_factory is not MISSING:
            entry["default"] = field.default_factory()
        declared.append(entry)
    return {"type": "record", "name": cls.__name__, "fields": declared}


def avro_type(hint: Any, seen: set[str]) -> Any:
    if get_origin(hint) is list:
        return {"type": "array", "items": avro_type(get_args(hint)[0], seen)}
    return expected(hint, seen) if isinstance(hint, type) and is_dataclass(hint) else AVRO[hint]


def without(node: Any, *names: str) -> Any:
    if isinstance(node, dict):
        return {key: without(value, *names) for key, value in node.items() if key not in names}
    return [without(element, *names) for element in node] if isinstance(node, list) else node


def records(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for element in node for found in records(element)]
    if not isinstance(node, dict):
        return []
    inner = [found for value in node.values() for found in records(value)]
    return [node, *inner] if node.get("type") == "record" else inner


def test_one_file_a_record_type() -> None:
    assert set(SCHEMAS) == set(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_fields_types_order_and_defaults_are_those_of_the_dataclass(name: str) -> None:
    assert without(SCHEMAS[name], "doc", "namespace") == expected(TYPES[name], set())


def test_every_record_and_field_is_documented() -> None:
    bare = [
        f"{record['name']}.{entry.get('name')}"
        for record in records(list(SCHEMAS.values()))
        for entry in (record, *record["fields"])
        if len(entry.get("doc", "")) < 5
    ]
    assert bare == []


def test_a_nested_type_is_the_same_in_every_file() -> None:
    seen: dict[str, Any] = {}
    for record in records(list(SCHEMAS.values())):
        plain = without(record, "namespace", "doc")
        assert seen.setdefault(record["name"], plain) == plain


def crc_64_avro(text: bytes) -> int:
    """The Avro specification's fingerprint, bit by bit: a second opinion on the library's."""
    value = empty = 0xC15D213AA4D7A795
    for byte in text:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (empty if value & 1 else 0)
    return value


def test_fingerprint_is_the_specifications() -> None:
    assert crc_64_avro(b'"int"') == 0x7275D51A3F395C8F  # published with the specification's test cases
    for known in released().current.values():
        canonical = to_parsing_canonical_form(SCHEMAS[known.name]).encode()
        assert known.prefix == b"\xc3\x01" + crc_64_avro(canonical).to_bytes(8, "little")


def test_a_change_of_documentation_keeps_the_fingerprint() -> None:
    assert parse(json.dumps(without(SCHEMAS["Run"], "doc"))).prefix == released().current["Run"].prefix


def codec_knowing(other: dict[str, Any]) -> Codec:
    registry = released()
    registry.add_known(json.dumps(other))
    return Codec(registry)


def written(schema: dict[str, Any], datum: dict[str, Any]) -> bytes:
    out = BytesIO()
    out.write(parse(json.dumps(schema)).prefix)
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), datum)
    return out.getvalue()


def test_a_record_of_an_older_release_takes_the_default_of_a_new_field() -> None:
    older = json.loads(json.dumps(SCHEMAS["Signal"]))
    older["fields"] = [field for field in older["fields"] if field["name"] != "deadline_ms"]
    value = written(older, {"kind": "grant", "incarnation": "w.1", "run": "r", "attempt": 2, "claim": 3,
                            "reason": "x", "term": 7, "leader_ms": 9})  # fmt: skip
    expected_signal = Signal(kind="grant", incarnation="w.1", run="r", attempt=2, claim=3, reason="x", term=7,
                             leader_ms=9)  # fmt: skip
    assert codec_knowing(older).decode(value) == expected_signal


def test_a_record_of_a_newer_release_loses_what_is_not_known_yet() -> None:
    newer = json.loads(json.dumps(SCHEMAS["Signal"]))
    newer["fields"].insert(3, {"name": "urgency", "type": "long", "default": 0})
    signal = filled(Signal)
    datum = {field.name: getattr(signal, field.name) for field in fields(Signal)}
    assert codec_knowing(newer).decode(written(newer, {**datum, "urgency": 5})) == signal


def test_a_codec_that_knows_others_writes_its_own() -> None:
    newer = json.loads(json.dumps(SCHEMAS["Signal"]))
    newer["fields"].append({"name": "urgency", "type": "long", "default": 0})
    assert codec_knowing(newer).encode(filled(Signal)) == encode(filled(Signal))


def test_a_schema_of_an_unknown_type_is_a_bug() -> None:
    with pytest.raises(KeyError, match="Signal"):
        Registry().add_known(json.dumps(SCHEMAS["Signal"]))
