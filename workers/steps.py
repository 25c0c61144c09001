"""A step's result as it is recorded, and the rules a step must keep. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dueline.schemas.errors import DefinitionError
from dueline.schemas.json_text import canonical_json
from dueline.schemas.work import Step
from dueline.workers.errors import StepError

MAX_RESULT_BYTES: Final = 256 * 1024
"""Of one step's encoded result, and of a handler's return value."""

MAX_STEP_NAME: Final = 250
"""Characters. A name stands in a record key behind the run id."""


class Encoding(StrEnum):
    """How a result is recorded."""

    JSON = "json"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A step's completion as an attempt recorded it."""

    attempt: int
    encoding: str
    result: bytes

    def value(self) -> object:
        """What the step returned, as JSON carries it: a tuple comes back as a list."""
        return self.result if self.encoding == Encoding.BYTES else json.loads(self.result)


def record_result(step: str, result: object, attempt: int) -> Recorded:
    """The result as it will stand in the log. Raises StepError that names the step."""
    if isinstance(result, bytes | bytearray | memoryview):
        data, encoding = bytes(result), Encoding.BYTES
        if len(data) > MAX_RESULT_BYTES:
            raise StepError(f"step {step!r}: its result is {len(data):,} bytes, at most {MAX_RESULT_BYTES:,} are allowed: "
                            "store it elsewhere and return where it stands")  # fmt: skip
    else:
        data, encoding = json_result(f"step {step!r}: its result", result).encode(), Encoding.JSON
    return Recorded(attempt=attempt, encoding=encoding, result=data)


def json_result(what: str, value: object) -> str:
    """The JSON text of a value. Raises StepError that begins with `what`."""
    try:
        return canonical_json(value, MAX_RESULT_BYTES)
    except DefinitionError as error:
        raise StepError(f"{what} cannot be recorded: it {error.message}. Return JSON data or bytes") from error


def check_step_name(name: object, used: Iterable[str]) -> None:
    """Raise StepError unless the name may be used now; `used` are the names this attempt has used."""
    if not isinstance(name, str) or not name:
        raise StepError(f"step {name!r}: a name is text of 1 to {MAX_STEP_NAME} characters")
    if len(name) > MAX_STEP_NAME:
        raise StepError(f"step {name[:60]!r}...: its name has {len(name)} characters, at most {MAX_STEP_NAME} are allowed")
    if not name.isprintable():
        raise StepError(f"step {name!r}: its name holds a character that cannot be printed")
    if name in used:
        raise StepError(
            f"step {name!r}: its name was used before in this run. A name says which step is done already, so each step "
            "needs its own, e.g. 'send/<subscriber>'"
        )


def latest_of(steps: Iterable[Step], run: str) -> dict[str, Recorded]:
    """What is done of a run, by step name; the newest attempt wins."""
    done: dict[str, Recorded] = {}
    for step in steps:
        old = done.get(step.name)
        if step.run == run and (old is None or old.attempt <= step.attempt):
            done[step.name] = Recorded(attempt=step.attempt, encoding=step.encoding, result=step.result)
    return done
