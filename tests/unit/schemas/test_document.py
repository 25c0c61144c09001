"""The pages of the contract are current and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from dueline.schemas.codec import TYPES
from dueline.schemas.command import CommandKind
from dueline.schemas.command_definition import MAY, NEEDS
from dueline.schemas.definition import JobDefinition, job_from, job_to_definition
from dueline.schemas.document import PAGES, pages
from dueline.schemas.document_text import COMMAND_FIELDS, JOB_FIELDS, KEYS

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_current(page: str) -> None:
    made = pages()[page]
    assert (DOCS / page).read_text(encoding="utf-8") == made, "run: python -m dueline.schemas.document docs"


def test_the_tables_know_every_field_and_type() -> None:
    assert [row[0].strip("`") for row in JOB_FIELDS] == list(JobDefinition.model_fields)
    assert set(KEYS) == set(TYPES)
    kinds = {row[0].strip("`"): row[1:] for row in COMMAND_FIELDS}
    assert list(kinds) == [kind.value for kind in CommandKind]
    for kind in CommandKind:
        needs, also = kinds[kind.value]
        assert needs == f"`{NEEDS[kind]}`"
        assert all(f"`{name}`" in also for name in MAY[kind] - {NEEDS[kind]})


def test_the_tables_defaults_are_those_of_the_definition() -> None:
    shown = {name.strip("`"): default.strip("`") for name, _, default in JOB_FIELDS}
    plain = {name: value for name, value in shown.items() if name not in ("payload", "retry") and value != "required"}
    required = {"id": "m", "schedule": "x", "handler": "h"}
    given = {name: int(value) if value.isdecimal() else value.strip('"') for name, value in plain.items()}
    assert job_to_definition(job_from({**required, **given})) == job_to_definition(job_from(required))
