"""Commands in the friendly form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dueline.schemas.codec import encode
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.command_definition import MAY, NEEDS
from dueline.schemas.definition import parse_command
from dueline.schemas.errors import DecodeError, DefinitionError
from dueline.schemas.job import Job


def command(**fields: Any) -> bytes:
    return json.dumps({"id": "c-1", **fields}).encode()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "trigger", "job": "menu"}, Command(id="c-1", kind="trigger", job="menu")),
        ({"kind": "trigger", "job": "menu", "payload": None},
         Command(id="c-1", kind="trigger", job="menu", payload="null")),
        ({"kind": "pause", "job": "menu", "by": "ann", "reason": "holiday"},
         Command(id="c-1", kind="pause", job="menu", by="ann", reason="holiday")),
        ({"kind": "delete", "job": "menu", "version": 3}, Command(id="c-1", kind="delete", job="menu", version=3)),
        ({"kind": "cancel", "run": "menu@2026-11-30T06:00:00Z"},
         Command(id="c-1", kind="cancel", run="menu@2026-11-30T06:00:00Z")),
        ({"kind": "cancel", "run": "menu@!c-0", "job": "menu"},
         Command(id="c-1", kind="cancel", run="menu@!c-0", job="menu")),
        ({"kind": "accept-positions", "topic": "dueline.jobs"},
         Command(id="c-1", kind="accept-positions", topic="dueline.jobs")),
    ],
)  # fmt: skip
def test_taken_in_json_and_avro(fields: dict[str, Any], expected: Command) -> None:
    assert parse_command(command(**fields)) == expected
    assert parse_command(encode(expected)) == expected


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({}, "kind", "is missing"),
        ({"kind": "stop"}, "kind", "'stop' is no command; there are: trigger, pause, resume, delete, cancel"),
        ({"kind": "trigger"}, "job", "is missing: trigger needs it"),
        ({"kind": "cancel", "job": "menu"}, "run", "is missing: cancel needs it"),
        ({"kind": "cancel", "run": "menu"}, "run", "'menu' is no run id"),
        ({"kind": "cancel", "run": "menu@x", "job": "soup"}, "job", "is 'soup', but the run is of 'menu'"),
        ({"kind": "pause", "job": "menu", "version": 3}, "version", "means nothing for pause"),
        ({"kind": "pause", "job": "menu", "payload": {}}, "payload", "means nothing for pause"),
        ({"kind": "delete", "job": "menu", "version": 0}, "version", "is 0"),
        ({"kind": "pause", "jbo": "menu"}, "jbo", "unknown field (did you mean 'job'?)"),
        ({"kind": "pause", "job": "menu", "id": "a!b"}, "id", "holds '!'"),
    ],
)
def test_refused_with_place_and_reason(fields: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_command(command(**fields))
    assert caught.value.path == path
    assert message in caught.value.message


def test_avro_is_held_to_the_same_rules() -> None:
    with pytest.raises(DefinitionError, match="payload: must be JSON text"):
        parse_command(encode(Command(id="c", kind="trigger", job="menu", payload="{")))
    with pytest.raises(DefinitionError, match="command id is empty"):
        parse_command(encode(Command(id="", kind="pause", job="menu")))
    with pytest.raises(DecodeError, match="expected a command, got a Job"):
        parse_command(encode(Job(id="m", schedule="{}", handler="h")))


def test_every_kind_has_its_rules() -> None:
    assert set(NEEDS) == set(MAY) == set(CommandKind)
    assert all(NEEDS[kind] in MAY[kind] for kind in CommandKind)
