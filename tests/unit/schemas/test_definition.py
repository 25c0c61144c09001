"""Job definitions in the friendly form: what is taken, what is refused and in which words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dueline.schemas.codec import encode
from dueline.schemas.definition import (
    MAX_PAYLOAD_BYTES,
    MAX_SCHEDULE_BYTES,
    JobDefinition,
    job_from,
    job_to_definition,
    parse_job,
)
from dueline.schemas.errors import DecodeError, DefinitionError
from dueline.schemas.job import Job
from dueline.schemas.ledger import Barrier

MENU: dict[str, Any] = {"id": "menu", "schedule": "0 6 * * *", "handler": "menu"}
FULL: dict[str, Any] = {
    **MENU, "schedule": {"cron": "0 6 * * *", "tz": "Europe/Vienna"}, "queue": "kitchen",
    "payload": {"b": 1, "a": ["ü"]}, "description": "the daily menu",
    "misfire": "all", "misfire_grace": "90s", "catch_up_window": "PT12H",
    "overlap": "allow", "max_concurrent": 2,
    "retry": {"max": 5, "backoff": "1m30s", "factor": 1.5, "max_backoff": "1h"},
    "timeout": "30m", "dispatch_ahead": 0, "max_worker_losses": 0,
}  # fmt: skip


def job_with(**changes: Any) -> bytes:
    return json.dumps({**MENU, **changes}).encode()


def test_a_minimal_definition_has_the_defaults_of_the_record() -> None:
    assert parse_job(job_with()) == Job(id="menu", schedule='"0 6 * * *"', handler="menu")


def test_a_full_definition() -> None:
    assert parse_job(json.dumps(FULL).encode()) == Job(
        id="menu", schedule='{"cron":"0 6 * * *","tz":"Europe/Vienna"}', handler="menu", queue="kitchen",
        payload='{"a":["ü"],"b":1}', description="the daily menu", misfire="all", misfire_grace_ms=90_000,
        catch_up_window_ms=43_200_000, overlap="allow", max_concurrent=2, max_retries=5, retry_backoff_ms=90_000,
        retry_backoff_factor=1.5, retry_backoff_max_ms=3_600_000, max_worker_losses=0, timeout_ms=1_800_000,
        dispatch_ahead_ms=0,
    )  # fmt: skip


@pytest.mark.parametrize("definition", [MENU, FULL])
def test_shown_and_read_again_it_is_the_same(definition: dict[str, Any]) -> None:
    job = job_from(definition)
    assert job_from(job_to_definition(job)) == job
    assert parse_job(encode(job)) == job
    assert set(job_to_definition(job)) == set(JobDefinition.model_fields)


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"tiemout": "5s"}, "tiemout", "unknown field (did you mean 'timeout'?); known fields: id, schedule"),
        ({"retry": {"mx": 3}}, "retry.mx", "unknown field (did you mean 'max'?); known fields: max, backoff, factor"),
        ({"retry": 5}, "retry", "must be a mapping of fields, not the number 5"),
        ({"retry": {"max": -1}}, "retry.max", "is -1, must be from 0 to 1000"),
        ({"retry": {"factor": 0.5}}, "retry.factor", "is 0.5, must be from 1 to 100"),
        ({"retry": {"backoff": "1h", "max_backoff": "5m"}}, "retry.max_backoff", "is shorter than backoff, 1h"),
        ({"misfire": "latests"}, "misfire", "is no policy for late runs; there are: latest, all, skip (did you mean"),
        ({"overlap": "buffer"}, "overlap", "'buffer' is no overlap policy; there are: skip, allow"),
        ({"misfire": "{x}"}, "misfire", "'{x}' is no policy"),
        ({"timeout": 90}, "timeout", "90 of which unit?"),
        ({"timeout": "90"}, "timeout", "90 of which unit?"),
        ({"timeout": "-5s"}, "timeout", "is negative"),
        ({"timeout": "4000d"}, "timeout", "more than ten years"),
        ({"timeout": "P1M"}, "timeout", "years and months differ in length"),
        ({"timeout": None}, "timeout", "a duration is text"),
        ({"timeout": True}, "timeout", "a duration is text"),
        ({"dispatch_ahead": "61s"}, "dispatch_ahead", "must be at most 60s"),
        ({"max_concurrent": True}, "max_concurrent", "must be a whole number, not true"),
        ({"max_concurrent": 1.0}, "max_concurrent", "must be a whole number, not the number 1.0"),
        ({"max_concurrent": 10**30}, "max_concurrent", "must be from 0 to"),
        ({"max_worker_losses": -1}, "max_worker_losses", "is -1"),
        ({"queue": None}, "queue", "must be text, not null"),
        ({"queue": "a/b"}, "queue", "queue 'a/b' holds '/'"),
        ({"queue": ".."}, "queue", "refused by Kafka"),
        ({"id": "menu@home"}, "id", "holds '@': only A-Z a-z 0-9 . _ - are allowed"),
        ({"id": "menü"}, "id", "holds 'ü'"),
        ({"id": "menu\n"}, "id", "holds '\\n'"),
        ({"id": ""}, "id", "is empty"),
        ({"id": "x" * 129}, "id", "has 129 characters: at most 128"),
        ({"schedule": 5}, "schedule", "must be a cron expression as text, a mapping, or a list of mappings"),
        ({"schedule": ""}, "schedule", "must be a cron expression"),
        ({"schedule": []}, "schedule", "is an empty list"),
        ({"schedule": [{}, "x"]}, "schedule", "entry 1 of the list is not"),
        ({"schedule": {"cron": "x" * MAX_SCHEDULE_BYTES}}, "schedule", "bytes of JSON, at most 65,536"),
        ({"description": "x" * 4_097}, "description", "has 4,097 characters"),
        ({"description": "\ud800"}, "description", "half of a surrogate pair"),
        ({"payload": "x" * (MAX_PAYLOAD_BYTES - 1)}, "payload", "is 262,145 bytes of JSON, at most 262,144 bytes"),
        ({"payload": "ü" * (MAX_PAYLOAD_BYTES // 2)}, "payload", "at most 262,144 bytes"),
        ({"payload": ["\ud800"]}, "payload", "half of a surrogate pair"),
    ],
)  # fmt: skip
def test_what_is_refused_says_where_and_why(changes: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_job(job_with(**changes))
    assert caught.value.path == path
    assert message in caught.value.message


def test_a_payload_at_the_limit_is_taken() -> None:
    text = "x" * (MAX_PAYLOAD_BYTES - 2)
    assert parse_job(job_with(payload=text)).payload == f'"{text}"'


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        job_from({"id": "a b", "retry": {"max": "x"}})
    assert [fault.where for fault in caught.value.faults] == ["id", "schedule", "handler", "retry.max"]
    assert caught.value.faults[3].path == ("retry", "max")
    assert "handler: is missing: it is required" in str(caught.value)


def test_a_flood_of_faults_stays_short_and_can_be_written_down() -> None:
    with pytest.raises(DefinitionError) as caught:
        job_from({**MENU, **{f"{number}\ud800" + "x" * 500: 1 for number in range(1_000)}})
    assert len(str(caught.value).encode()) < 20_000


def test_a_longer_backoff_takes_the_limit_along() -> None:
    assert parse_job(job_with(retry={"backoff": "1h"})).retry_backoff_max_ms == 3_600_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "not JSON: line 1, column 1"),
        (b'{"id": "x",\n ]', "not JSON: line 2"),
        (b"[]", "expected a job definition, got a list"),
        (b"\xff\xfe", "neither Avro nor JSON: not utf-8 at byte 0"),
        (b"\xc3\x01junk", "truncated within the schema fingerprint"),
        (encode(Barrier(id="a", process="b", generation=1)), "expected a job definition, got a Barrier"),
    ],
)
def test_what_cannot_be_read_is_a_decode_error(value: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        parse_job(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'{"id": "a", "id": "b"}', "id: the key 'id' stands twice"),
        (b'{"payload": {"x": NaN}}', "NaN is not JSON"),
        (b'{"payload": -Infinity}', "-Infinity is not JSON"),
        (b'{"payload": 1e999}', "1e999 is too large"),
        (b'{"payload": ' + b"1" * 5_000 + b"}", "5,000 digits"),
        (b"[" * 100_000, "nested more than 64 deep"),
        (json.dumps({**MENU, "payload": None}).encode().replace(b"null", b"[" * 65 + b"]" * 65), "payload: is nested"),
    ],
)
def test_ambiguous_or_hostile_json_is_refused(value: bytes, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        parse_job(value)


def test_nesting_up_to_the_limit_is_taken() -> None:
    value = json.dumps({**MENU, "payload": None}).encode().replace(b"null", b"[" * 64 + b"]" * 64)
    assert parse_job(value).payload == "[" * 64 + "]" * 64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "0 6 * * *"}, "schedule: must be JSON text: not JSON"),
        ({"payload": ""}, "payload: must be JSON text"),
        ({"timeout_ms": -5}, "timeout: '-5ms' is negative"),
        ({"misfire": "never"}, "there are: latest, all, skip"),
        ({"retry_backoff_factor": float("nan")}, "retry.factor: is nan"),
        ({"id": "a@b"}, "holds '@'"),
    ],
)
def test_avro_is_held_to_the_same_rules(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        parse_job(encode(replace(job_from(MENU), **changes)))


def test_what_yaml_brings_beyond_json_is_refused() -> None:
    with pytest.raises(DefinitionError, match="payload: holds a set, which JSON cannot carry"):
        job_from({**MENU, "payload": {"when": {1, 2}}})
    with pytest.raises(DefinitionError, match="payload: holds the key 1: keys of JSON are text"):
        job_from({**MENU, "payload": {1: "x"}})
    with pytest.raises(DefinitionError, match="must be a mapping of fields, not a list"):
        job_from([MENU])


def test_an_alias_bomb_is_refused_before_it_is_written_out() -> None:
    bomb: list[Any] = ["x"]
    for _ in range(40):
        bomb = [bomb] * 10
    with pytest.raises(DefinitionError, match="payload: is too large"):
        job_from({**MENU, "payload": bomb})
    bomb.append(bomb)
    with pytest.raises(DefinitionError, match="payload: is too large"):
        job_from({**MENU, "payload": bomb})
