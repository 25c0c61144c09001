"""Which Avro schemas are known: the current one of each record type, and earlier ones that must stay readable.

Each record type has one file, `<Type>.avsc`, complete in itself. A schema that was released and has been replaced stays
as `<Type>.<release>.avsc`: records written under it are still in the log, and are read into today's type by Avro's
schema resolution (missing fields take their defaults, fields that are gone are dropped).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Final, NamedTuple

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form
from fastavro.types import Schema

MARKER: Final = b"\xc3\x01"
"""Starts every value in Avro's single-object encoding, version 1."""
PREFIX_BYTES: Final = 10
"""Marker and fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchema:
    """A parsed schema and the ten bytes that every record written under it starts with."""

    name: str
    schema: Schema
    prefix: bytes


class Reading(NamedTuple):
    """How to read a record: under the schema it was written with, into the type's current one (None: the same)."""

    name: str
    writer: Schema
    reader: Schema | None


class Registry:
    """Known schemas by the prefix of the records written under them. Not changed after start-up."""

    def __init__(self) -> None:
        self.current: dict[str, KnownSchema] = {}
        self.readings: dict[bytes, Reading] = {}

    def add_current(self, text: str) -> KnownSchema:
        """Make this the schema that its type is written with, and read into. Raises ValueError when it is no schema."""
        known = parse(text)
        self.current[known.name] = known
        self.readings[known.prefix] = Reading(known.name, known.schema, None)
        return known

    def add_known(self, text: str) -> KnownSchema:
        """Records of another release, older or newer, can be read too. Its type must have a current schema."""
        known = parse(text)
        current = self.current[known.name]
        if known.prefix != current.prefix:
            self.readings[known.prefix] = Reading(known.name, known.schema, current.schema)
        return known


def parse(text: str) -> KnownSchema:
    """A schema from its JSON text. Raises ValueError (JSON) or fastavro's SchemaParseException."""
    definition = json.loads(text)
    parsed = fastavro.parse_schema(definition)
    digest = fingerprint(to_parsing_canonical_form(definition), "CRC-64-AVRO")
    # fastavro writes the 64-bit number's bytes in little-endian order already, as the encoding wants them.
    return KnownSchema(name=definition["name"], schema=parsed, prefix=MARKER + bytes.fromhex(digest))


def released() -> Registry:
    """The registry of all schemas that this release ships."""
    registry = Registry()
    for name, text in schema_texts():
        if name.count(".") == 1:
            registry.add_current(text)
    for name, text in schema_texts():
        if name.count(".") > 1:
            registry.add_known(text)
    return registry


def schema_texts() -> Iterator[tuple[str, str]]:
    """(file name, text) of every schema file, in order of name."""
    folder = resources.files("dueline.schemas")
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".avsc"):
            yield file.name, file.read_text(encoding="utf-8")
