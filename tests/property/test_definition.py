"""Whatever stands on a user's topic: a job or command, DecodeError or DefinitionError. Durations and jobs read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.schemas.codec import encode
from dueline.schemas.definition import (
    CommandDefinition,
    JobDefinition,
    job_from,
    job_to_definition,
    parse_command,
    parse_job,
)
from dueline.schemas.duration import MAX_DURATION_MS, format_duration, parse_duration
from dueline.schemas.errors import DecodeError, DefinitionError
from dueline.schemas.job import Job, Misfire, Overlap

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
DURATIONS = st.integers(0, MAX_DURATION_MS)
NAMES = st.from_regex(r"\A[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}\Z")
PARSERS = [(parse_job, JobDefinition), (parse_command, CommandDefinition)]


def accepted(parse: Callable[[bytes], object], value: bytes) -> object:
    try:
        return parse(value)
    except (DecodeError, DefinitionError) as error:
        str(error).encode()  # it can be written to `rejected`
        return None


@pytest.mark.parametrize(("parse", "model"), PARSERS)
def test_nothing_else_escapes(parse: Callable[[bytes], object], model: type[JobDefinition]) -> None:
    fields = st.sampled_from(list(model.model_fields)) | st.text(max_size=5)

    documents = st.dictionaries(fields, JSON, max_size=6).map(lambda value: json.dumps(value).encode())

    @given(st.binary(max_size=60) | documents)
    def holds(value: bytes) -> None:
        accepted(parse, value)

    holds()


@given(DURATIONS)
def test_durations_read_back(duration_ms: int) -> None:
    assert parse_duration(format_duration(duration_ms)) == duration_ms


@given(st.text(max_size=20) | st.from_regex(r"\A[PT0-9.wdhms -]{0,12}\Z"))
def test_a_duration_is_a_bounded_number_or_a_value_error(text: str) -> None:
    try:
        duration_ms = parse_duration(text)
    except ValueError:
        return
    assert 0 <= duration_ms <= MAX_DURATION_MS


JOBS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"id": NAMES, "handler": NAMES, "schedule": st.text(min_size=1, max_size=9).filter(str.strip)},
    optional={
        "queue": NAMES,
        "payload": st.recursive(
            st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=9)
            | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=8,
        ),
        "misfire": st.sampled_from(Misfire).map(lambda member: member.value),
        "overlap": st.sampled_from(Overlap).map(lambda member: member.value),
        "timeout": DURATIONS.map(format_duration),
        "misfire_grace": DURATIONS.map(format_duration),
        "max_concurrent": st.integers(0, 50),
        "retry": st.fixed_dictionaries({}, optional={"max": st.integers(0, 9), "factor": st.floats(1, 100)}),
    },
)  # fmt: skip


@given(JOBS)
def test_a_job_reads_back_from_its_friendly_form_from_json_and_from_avro(definition: dict[str, Any]) -> None:
    job = job_from(definition)
    assert isinstance(job, Job)
    assert job_from(job_to_definition(job)) == job
    assert parse_job(json.dumps(definition).encode()) == job
    assert parse_job(encode(job)) == job
