"""JSON as the contract takes it: strict when read, canonical when stored.

What different readers would understand differently is refused: a key twice, NaN and Infinity, a number that no double
holds. Size and depth are bounded before anything recursive touches a value, so no input ends in RecursionError here or,
later, in a worker that reads the stored text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Final

from dueline.schemas.errors import DecodeError, DefinitionError

MAX_DEPTH: Final = 64
"""Lists and mappings within each other. Far more than data needs, far less than any reader's stack."""


def load_json(text: str) -> object:
    """The value of a JSON text. Raises DecodeError when it is no JSON, DefinitionError when it is ambiguous JSON."""
    try:
        value: object = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        raise DecodeError(f"not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise DefinitionError.of(_too_deep()) from error
    return value


def canonical_json(value: object, limit: int, *path: str | int) -> str:
    """The one text of a JSON value: keys sorted, no blanks, characters not escaped. `limit`: its bytes as utf-8.

    Raises DefinitionError (at `path`) for what is not JSON, is nested too deeply, or is too large.
    """
    _check_shape(value, limit, path)
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise DefinitionError.of("holds half of a surrogate pair, which is no character", *path) from error
    except ValueError as error:
        raise DefinitionError.of(f"holds a number that JSON cannot carry: {error}", *path) from error
    if size > limit:
        raise DefinitionError.of(_too_large(f"is {size:,} bytes of JSON", limit), *path)
    return text


def _check_shape(value: object, limit: int, path: tuple[str | int, ...]) -> None:
    """Walk without recursion. Every node takes a byte of text at least, so more nodes than bytes cannot fit."""
    nodes = 0
    level = [value]
    depth = 0
    while level:
        nodes += len(level)
        if nodes > limit:
            raise DefinitionError.of(_too_large("is too large", limit), *path)
        below: list[object] = []
        for node in level:
            if isinstance(node, dict):
                _check_keys(node, path)
                children: Iterable[object] = node.values()
            elif isinstance(node, list | tuple):
                children = node
            elif node is None or isinstance(node, str | int | float):
                continue
            else:
                kind = type(node).__name__
                raise DefinitionError.of(f"holds a {kind}, which JSON cannot carry: write it as text in quotes", *path)
            if depth == MAX_DEPTH:
                raise DefinitionError.of(_too_deep(), *path)
            below.extend(children)
            if nodes + len(below) > limit:
                raise DefinitionError.of(_too_large("is too large", limit), *path)
        level = below
        depth += 1


def _check_keys(mapping: dict[object, object], path: tuple[str | int, ...]) -> None:
    for key in mapping:
        if not isinstance(key, str):
            raise DefinitionError.of(f"holds the key {key!r}: keys of JSON are text, put it in quotes", *path)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DefinitionError.of(f"the key {twice!r} stands twice in one mapping: which one is meant?", twice)
    return mapping


def _constant(name: str) -> object:
    raise DefinitionError.of(f"{name} is not JSON")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise DefinitionError.of(f"the number {text[:40]} is too large: send it as text")
    return number


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # Python's own limit on digits
        raise DefinitionError.of(f"a number of {len(text):,} digits: send it as text") from error


def _too_large(what: str, limit: int) -> str:
    return f"{what}, at most {limit:,} bytes are allowed: store it elsewhere and send where it stands"


def _too_deep() -> str:
    return f"is nested more than {MAX_DEPTH} deep"
