"""Records of any type with values that tell their fields apart, and records as JSON (bytes as Avro's JSON has them)."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

NUMBERS = (0, 1, -2, 63, 64, -65, 8_192, 1_796_023_200_000, 2**63 - 1, -(2**63))
"""Around the borders of Avro's variable-length integers."""
FACTORS = (2.0, -0.5, 1e-9)


def filled(cls: type[Any]) -> Any:
    """Every field set, lists with two entries."""
    return cls(**{name: _value(hint, name, seed) for seed, (name, hint) in enumerate(get_type_hints(cls).items())})


def sparse(cls: type[Any]) -> Any:
    """Every field at its default, where it has one."""
    hints = get_type_hints(cls)
    required = [field.name for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING]
    return cls(**{name: _value(hints[name], name, seed) for seed, name in enumerate(required)})


def _value(hint: Any, name: str, seed: int) -> Any:
    if get_origin(hint) is list:
        return [_value(get_args(hint)[0], name, seed), _value(get_args(hint)[0], name, seed + 1)]
    if is_dataclass(hint) and isinstance(hint, type):
        return filled(hint)
    if hint is str:
        return f"{name} {seed} – ünïcode \U0001f4c5"
    if hint is bytes:
        return bytes([0, 255, seed]) + name.encode()
    if hint is bool:
        return seed % 2 == 0
    return FACTORS[seed % len(FACTORS)] if hint is float else NUMBERS[seed % len(NUMBERS)]


def to_json(value: Any) -> Any:
    """A record, or a value in one, as JSON types."""
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list):
        return [to_json(element) for element in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def from_json(hint: Any, value: Any) -> Any:
    """The inverse of `to_json`, for a record type or a field's type."""
    if get_origin(hint) is list:
        return [from_json(get_args(hint)[0], element) for element in value]
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return hint(**{name: from_json(hints[name], element) for name, element in value.items()})
    return value.encode("latin-1") if hint is bytes else value
