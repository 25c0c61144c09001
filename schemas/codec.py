"""Records to bytes and back: Avro single-object encoding (marker C3 01, schema fingerprint, body).

A record type is a dataclass whose field names and order are those of its `.avsc`; a test holds them equal. For each
type one function is made at import that takes a record apart into the nested dicts fastavro writes, and one that puts
it together again: looking at dataclass fields for every record would cost more than the encoding itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from io import BytesIO
from operator import attrgetter
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from fastavro import schemaless_reader, schemaless_writer

from dueline.schemas.command import Command, Rejected
from dueline.schemas.errors import DecodeError
from dueline.schemas.job import Job, JobVersion
from dueline.schemas.ledger import Barrier, Fence, Positions
from dueline.schemas.registry import MARKER, PREFIX_BYTES, Registry, released
from dueline.schemas.run import Run, Summary
from dueline.schemas.work import AttemptEvent, Dispatch, Heartbeat, Signal, Step

Record = (
    Job | JobVersion | Run | Summary | Barrier | Positions | Fence
    | Dispatch | Signal | AttemptEvent | Step | Heartbeat | Command | Rejected
)  # fmt: skip
"""Any record that stands in a topic by itself."""

R = TypeVar("R", bound=Record)
Headers = tuple[tuple[str, bytes], ...]

TYPES: Final[dict[str, type]] = {cls.__name__: cls for cls in get_args(Record)}
"""Record types by name, which is also the value of the header `type`."""


def encode(record: Record) -> bytes:
    """The record's bytes. Raises what fastavro raises when a field holds what its type cannot: that is a bug."""
    return CODEC.encode(record)


def decode(value: bytes) -> Record:
    """The record of any known type that the bytes hold, told by their fingerprint. Raises DecodeError, nothing else."""
    return CODEC.decode(value)


def decode_as(cls: type[R], value: bytes) -> R:
    """The record of this type. Raises DecodeError, also when the bytes hold another type."""
    record = CODEC.decode(value)
    if not isinstance(record, cls):
        raise DecodeError(f"expected a record of type {cls.__name__}, got a {type(record).__name__}")
    return record


def headers(record: Record) -> Headers:
    """Headers that let a reader skip a record undecoded: `type`; of leader records `term`, `state`, `queue` too."""
    kind, has_term, has_state, queue_of = _HEADERS[type(record)]
    found: list[tuple[str, bytes]] = [kind]
    if has_term:
        found.append(("term", b"%d" % record.term))  # type: ignore[union-attr]
        if has_state:
            found.append(("state", record.state.encode()))  # type: ignore[union-attr]
        if queue_of is not None:
            found.append(("queue", queue_of(record).encode()))
    return tuple(found)


class Codec:
    """Encodes the current schema of each type, decodes every schema of its registry. Any thread may use it."""

    def __init__(self, registry: Registry) -> None:
        self._readings = registry.readings
        self._writers = {
            cls: (registry.current[name].prefix, registry.current[name].schema, _taker_apart(cls))
            for name, cls in TYPES.items()
        }
        self._builders = {name: _builder(cls) for name, cls in TYPES.items()}

    def encode(self, record: Record) -> bytes:
        """See `encode`."""
        prefix, schema, take_apart = self._writers[type(record)]
        out = BytesIO()
        out.write(prefix)
        schemaless_writer(out, schema, take_apart(record))
        return out.getvalue()

    def decode(self, value: bytes) -> Record:
        """See `decode`. Takes a small multiple of the input in memory: lengths are checked against what is there."""
        reading = self._readings.get(value[:PREFIX_BYTES])
        if reading is None:
            raise DecodeError(_unknown(value))
        body = BytesIO(value)
        body.seek(PREFIX_BYTES)
        try:
            datum: Any = schemaless_reader(body, reading.writer, reading.reader)
            record: Record = self._builders[reading.name](datum)
        except Exception as error:  # hostile bytes raise whatever they hit first in fastavro
            cause = f"{type(error).__name__}: {error}".rstrip(": ")
            raise DecodeError(f"a damaged record of type {reading.name} ({len(value)} bytes): {cause}") from error
        rest = len(value) - body.tell()
        if rest:
            raise DecodeError(f"a record of type {reading.name} is followed by {rest} bytes that do not belong to it")
        return record


def _unknown(value: bytes) -> str:
    if not value:
        return "no bytes: a record cannot be empty"
    if value[:2] != MARKER:
        return f"not Avro single-object encoding: starts with {value[:2].hex()}, not c301"
    if len(value) < PREFIX_BYTES:
        return f"truncated within the schema fingerprint: {len(value)} bytes"
    return f"unknown schema fingerprint {value[2:PREFIX_BYTES].hex()}: written by a newer release, or not by dueline"


def _taker_apart(cls: type) -> Callable[[Any], dict[str, Any]]:
    """A function record -> nested dict: one dict display, three times as fast as zipping names and values."""
    text = f"lambda r: {_dict_display(cls, 'r')}"
    function: Callable[[Any], dict[str, Any]] = eval(text, {})  # noqa: S307 - made of our own field names
    return function


def _dict_display(cls: type, variable: str) -> str:
    parts = []
    for name, nested, many in _shape(cls):
        value = f"{variable}.{name}"
        if nested is not None and many:
            value = f"[{_dict_display(nested, 'e')} for e in {value}]"
        elif nested is not None:
            value = _dict_display(nested, value)
        parts.append(f"{name!r}: {value}")
    return "{" + ", ".join(parts) + "}"


def _builder(cls: type) -> Callable[[dict[str, Any]], Any]:
    """A function nested dict -> record. It fills the slots itself, which takes half the time of a frozen `__init__`;
    Avro's reader has given every field a value of its type already."""
    shape = _shape(cls)
    plain = [(name, getattr(cls, name).__set__) for name, nested, _ in shape if nested is None]
    inner = [(name, getattr(cls, name).__set__, _builder(nested), many) for name, nested, many in shape if nested]
    new = object.__new__

    def build(datum: dict[str, Any]) -> Any:
        record: Any = new(cls)
        for name, assign in plain:
            assign(record, datum[name])
        for name, assign, build_inner, many in inner:
            value = datum[name]
            assign(record, [build_inner(element) for element in value] if many else build_inner(value))
        return record

    return build


def _shape(cls: type) -> list[tuple[str, type | None, bool]]:
    """(field, nested record type if any, whether it is a list of them) for each field."""
    hints = get_type_hints(cls)
    shape: list[tuple[str, type | None, bool]] = []
    for field in fields(cls):
        hint = hints[field.name]
        many = get_origin(hint) is list
        inner = get_args(hint)[0] if many else hint
        shape.append((field.name, inner if isinstance(inner, type) and is_dataclass(inner) else None, many))
    return shape


def _header_parts(cls: type) -> tuple[tuple[str, bytes], bool, bool, Callable[[Any], str] | None]:
    names = {name: nested for name, nested, _ in _shape(cls)}
    nested_queue = next((name for name, nested in names.items() if nested and hasattr(nested, "queue")), None)
    queue_of: Callable[[Any], str] | None = None
    if "queue" in names:
        queue_of = attrgetter("queue")
    elif nested_queue:
        queue_of = attrgetter(f"{nested_queue}.queue")
    return ("type", cls.__name__.encode()), "term" in names, "state" in names, queue_of


_HEADERS: Final = {cls: _header_parts(cls) for cls in TYPES.values()}
CODEC: Final = Codec(released())
