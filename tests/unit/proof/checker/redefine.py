"""A valid history whose user asked for something else: definition, versions and all constants say so; what happened stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields as fields_of
from dataclasses import replace

from dueline.schemas.codec import Record, encode
from dueline.schemas.job import JobVersion
from dueline.schemas.run import Run, RunJob
from dueline.schemas.work import Dispatch, Signal
from proof.history.entry import Entry
from proof.history.history import History
from tests.unit.proof.checker.edit import record_of
from tests.unit.proof.checker.honest import JOBS, RUNS, VERSIONS
from tests.unit.proof.checker.whispers import DISPATCH, SIGNALS

CONSTANTS = {field.name for field in fields_of(RunJob)}


def redefined(history: History, job: str, asked: dict[str, object], **fields: object) -> History:
    """`asked`: as a user writes it; `fields`: the same of Job."""
    kept = {name: value for name, value in fields.items() if name in CONSTANTS}

    def defined(value: bytes | None) -> bytes | None:
        if value is None or not value.startswith(b"{") or json.loads(value).get("id") != job:
            return value
        return json.dumps({**json.loads(value), **asked}).encode()

    def record(found: Record) -> Record:
        if isinstance(found, JobVersion) and found.job == job:
            return replace(found, definition=replace(found.definition, **fields))  # type: ignore[arg-type]
        if isinstance(found, Run) and found.job.id == job:
            run = replace(found, job=replace(found.job, **kept))  # type: ignore[arg-type]
            shift = run.job.timeout_ms - found.job.timeout_ms
            return replace(run, deadline_ms=run.deadline_ms + shift) if run.deadline_ms >= 0 else run
        if isinstance(found, Dispatch) and found.job.id == job:
            return replace(found, job=replace(found.job, **kept))  # type: ignore[arg-type]
        if isinstance(found, Signal) and found.run.startswith(f"{job}@") and "timeout_ms" in fields:
            known = next(run for run in map(record_of, history.log[RUNS, 0]) if isinstance(run, Run) and run.key == found.run)
            return replace(found, deadline_ms=found.deadline_ms + int(str(fields["timeout_ms"])) - known.job.timeout_ms)
        return found

    broken = mapped(history, {VERSIONS, RUNS, DISPATCH, SIGNALS}, record)
    log = {place: tuple(replace(each, value=defined(each.value)) if place[0] == JOBS else each for each in entries)
           for place, entries in broken.log.items()}  # fmt: skip
    sent = history.noted.published
    published = tuple(replace(each, value=defined(each.value)) if each.topic == JOBS else each for each in sent)
    return replace(broken, log=log, noted=replace(history.noted, published=published))


def mapped(history: History, topics: set[str], record: Callable[[Record], Record]) -> History:
    """Each record of these topics, changed where it stands."""

    def changed(entry: Entry) -> Entry:
        before = record_of(entry)
        after = record(before)
        return entry if after is before else replace(entry, value=encode(after))

    log = {place: tuple(map(changed, entries)) if place[0] in topics else entries for place, entries in history.log.items()}
    return replace(history, log=log)


def run_mapped(history: History, key: str, change: Callable[[Run], Run]) -> History:
    """Each record of one run in the ledger, changed."""
    return mapped(history, {RUNS}, lambda found: change(found) if isinstance(found, Run) and found.key == key else found)
