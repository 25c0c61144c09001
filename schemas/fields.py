"""Field types of what users write, and their faults in words: shared by job definitions and commands."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import islice
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from dueline.schemas.codec import decode
from dueline.schemas.duration import parse_duration
from dueline.schemas.errors import DecodeError, DefinitionError, Fault, NameInvalid
from dueline.schemas.json_text import canonical_json, load_json
from dueline.schemas.names import check_name
from dueline.schemas.registry import MARKER

MAX_PAYLOAD_BYTES: Final = 256 * 1024
"""A payload travels in definition, version, run and dispatch: with 256 KiB each stays under its topic's limit."""
MAX_TEXT: Final = 4_096
"""Characters of a description or reason."""

MAX_FAULTS: Final = 20
"""Told at once; a thousand unknown fields are one mistake."""

E = TypeVar("E", bound=StrEnum)
M = TypeVar("M", bound="Definition")


class Definition(BaseModel):
    """A mapping with known fields only; no value is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def validate(model: type[M], value: object) -> M:
    """The model of a mapping of JSON types. Raises DefinitionError with every fault."""
    if not isinstance(value, Mapping):
        raise DefinitionError.of(f"must be a mapping of fields, not {_kind(value)}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise DefinitionError(_faults(model, error)) from error


def read(value: bytes) -> object:
    """What stands on a user's topic: a JSON value, or a record from Avro. Raises DecodeError, DefinitionError."""
    if value[:1] == MARKER[:1]:
        return decode(value)
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"neither Avro nor JSON: not utf-8 at byte {error.start}") from error
    return load_json(text)


def name(what: str) -> AfterValidator:
    """A name that may stand in keys and topic names."""

    def check(value: str) -> str:
        try:
            return check_name(what, value)
        except NameInvalid as error:
            raise _fault(str(error)) from error

    return AfterValidator(check)


def between(low: float, high: float) -> AfterValidator:
    """A number within bounds; NaN is not."""

    def check(value: float) -> float:
        if not low <= value <= high:
            raise _fault(f"is {value:g}, must be from {low:g} to {high:g}")
        return value

    return AfterValidator(check)


def at_most(limit_ms: int, text: str) -> AfterValidator:
    """A duration that must not be longer."""

    def check(value: int) -> int:
        if value > limit_ms:
            raise _fault(f"must be at most {text}")
        return value

    return AfterValidator(check)


def one_of(kind: type[E], what: str) -> BeforeValidator:
    """A member of the enum, from its value. One that does not exist is refused with the list of those that do."""

    def check(value: object) -> E:
        known = [member.value for member in kind]
        if isinstance(value, str) and value in known:
            return kind(value)
        raise _fault(f"{_short(value)} is no {what}; there are: {', '.join(known)}{_nearest(value, known)}")

    return BeforeValidator(check)


def _parse_duration(value: object) -> int:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise _fault(str(error)) from error


def _check_text(value: str) -> str:
    if len(value) > MAX_TEXT:
        raise _fault(f"has {len(value):,} characters, at most {MAX_TEXT:,} are allowed")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise _fault("holds half of a surrogate pair, which is no character")
    return value


def json_text(limit: int) -> BeforeValidator:
    """Any JSON value, kept as its canonical text."""

    def check(value: object) -> str:
        try:
            return canonical_json(value, limit)
        except DefinitionError as error:
            raise _fault(error.message) from error

    return BeforeValidator(check)


Duration = Annotated[int, BeforeValidator(_parse_duration)]
"""Milliseconds, from `90s`, `1h30m`, `PT5M` or 0."""
Text = Annotated[str, AfterValidator(_check_text)]
JsonText = Annotated[str, json_text(MAX_PAYLOAD_BYTES)]


def _fault(message: str) -> PydanticCustomError:
    # Braces are pydantic's template syntax; the message is passed as a value so that a user's braces stay as they are.
    return PydanticCustomError("dueline", "{message}", {"message": message})


def _faults(model: type[BaseModel], error: ValidationError) -> Iterable[Fault]:
    return [
        Fault(path=details["loc"], message=_in_words(model, details))
        for details in islice(error.errors(include_url=False), MAX_FAULTS)
    ]


def _in_words(model: type[BaseModel], details: ErrorDetails) -> str:
    match details["type"]:
        case "missing":
            return "is missing: it is required"
        case "extra_forbidden":
            known = _fields_at(model, details["loc"][:-1])
            return f"unknown field{_nearest(details['loc'][-1], known)}; known fields: {', '.join(known)}"
        case "string_type":
            return f"must be text, not {_kind(details['input'])}"
        case "string_unicode" | "invalid_key":
            return "must be text of whole characters"
        case "int_type":
            return f"must be a whole number, not {_kind(details['input'])}"
        case "float_type":
            return f"must be a number, not {_kind(details['input'])}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"must be a mapping of fields, not {_kind(details['input'])}"
    return details["msg"]


def _fields_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    for part in path:
        inner = model.model_fields[str(part)].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return list(model.model_fields)


def _nearest(value: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(value)[:64], known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _short(value: object) -> str:
    return repr(value)[:60] if isinstance(value, str | int | float) else _kind(value)


def _kind(value: object) -> str:
    """A JSON value's kind in words, with the value where it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {str(value)[:40]}" if isinstance(value, float) or abs(value) < 10**40 else "a huge number"
    if isinstance(value, str):
        return f"text ({value[:40]!r})"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a {type(value).__name__}"
