"""A ledger without faults is clean, whatever the versions; and every way of spoiling it is found where it was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from dueline.scheduler.audit.findings import Audit, Finding, Verdict
from dueline.schemas.base import NONE
from dueline.schemas.run import Run, RunState, Summary
from dueline.schemas.work import AttemptEvent, Outcome
from tests.unit.audit.worlds import EPOCH, MINUTE, Entry, World, random_world

WORLDS = st.builds(random_world, st.integers(0, 2**32), versions=st.integers(0, 6), hours=st.integers(1, 12))


@settings(deadline=None, max_examples=150)
@given(world=WORLDS)
def test_a_ledger_without_faults_is_explained(world: World) -> None:
    result = world.audit()
    assert [finding for finding in result.findings if finding.problem] == []


@settings(deadline=None, max_examples=60)
@given(world=WORLDS)
def test_every_due_time_and_every_record_is_counted_once(world: World) -> None:
    result = world.audit()
    covered = sum(entry.record.count for entry in world.summaries() if isinstance(entry.record, Summary))
    assert sum(finding.count for finding in result.scheduled) == covered + len(world.runs())


@settings(deadline=None, max_examples=60)
@given(world=WORLDS, hours=st.tuples(st.integers(0, 12), st.integers(1, 12)))
def test_any_window_of_a_clean_ledger_is_explained(world: World, hours: tuple[int, int]) -> None:
    start = EPOCH + hours[0] * 60 * MINUTE + 17
    result = world.audit(from_ms=start, to_ms=start + hours[1] * 60 * MINUTE)
    assert result.explained


def on(result: Audit, due_ms: int, verdict: Verdict) -> list[Finding]:
    return [f for f in result.findings if f.due_ms <= due_ms <= f.last_ms and f.verdict == verdict]


Spoil = Callable[[World, Entry], tuple[World, int, Verdict] | None]
"""Spoils one run: the world, and the due time and verdict that must be found; None: this run can't be spoiled so."""


def dropped(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    return world.without(entry.key), run.due_ms, Verdict.MISSED


def doubled_under_a_shifted_key(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    shifted = replace(run, due_ms=run.due_ms + 1_000)
    return world.plus(replace(entry, key=shifted.key)), run.due_ms, Verdict.DUPLICATED


def doubled_a_second_later(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    shifted = replace(run, due_ms=run.due_ms + 1_000)
    return world.plus(replace(entry, key=shifted.key, record=shifted)), shifted.due_ms, Verdict.UNEXPLAINED


def shifted(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    moved = replace(run, due_ms=run.due_ms - 1_000)
    return world.without(entry.key).plus(replace(entry, key=moved.key, record=moved)), run.due_ms, Verdict.MISSED


def of_a_wrong_version(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    return world.changed(entry.key, job=replace(run.job, version=len(world.versions) + 1)), run.due_ms, Verdict.UNEXPLAINED


def succeeded_twice(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    if run.state != RunState.SUCCEEDED:
        return None
    event = next(e for e in world.entries if e.key == entry.key and isinstance(e.record, AttemptEvent))
    assert isinstance(event.record, AttemptEvent)
    again = replace(event.record, attempt=run.attempt + 1, claim=10**6, outcome=Outcome.SUCCESS)
    return world.plus(replace(event, record=again)), run.due_ms, Verdict.DUPLICATED


def succeeded_without_a_finish(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    if run.state != RunState.SUCCEEDED:
        return None
    kept = [e for e in world.entries if not (e.key == entry.key and isinstance(e.record, AttemptEvent))]
    return replace(world, entries=kept), run.due_ms, Verdict.UNEXPLAINED


def begun_early(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    if run.started_ms == NONE:
        return None
    early = replace(run, started_ms=run.due_ms - 1_001)
    return world.plus(replace(entry, record=early)), run.due_ms, Verdict.EARLY


def granted_early(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    entries = [
        replace(e, append_ms=run.due_ms - 1)
        if e.key == entry.key and isinstance(e.record, Run) and e.record.state == RunState.RUNNING and not e.record.ahead
        else e
        for e in world.entries
    ]
    return None if entries == world.entries else (replace(world, entries=entries), run.due_ms, Verdict.EARLY)


def ended_twice(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    if run.state not in (RunState.SUCCEEDED, RunState.FAILED):
        return None
    other = RunState.CANCELLED if run.state == RunState.SUCCEEDED else RunState.SUCCEEDED
    return world.plus(replace(entry, record=replace(run, state=other))), run.due_ms, Verdict.UNEXPLAINED


def chained_past_its_predecessor(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    before = [e.record.due_ms for e in world.runs() if isinstance(e.record, Run) and e.record.due_ms < run.due_ms]
    if len(before) < 2 or run.previous_due_ms != before[-1] or any(v.taken for v in world.versions):
        return None
    if owner_of(world, before[-1]) != run.job.version:
        return None  # a new version's first run may name any due time of an earlier one
    return world.changed(entry.key, previous_due_ms=before[-2]), run.due_ms, Verdict.UNEXPLAINED


def under_a_summary_too(world: World, entry: Entry) -> tuple[World, int, Verdict] | None:
    run = run_of(entry)
    if (run.state == RunState.SKIPPED and run.reason == "paused") or owner_of(world, run.due_ms) != run.job.version:
        return None
    summary = Summary(
        job=run.job.id, version=run.job.version, reason="later-due-time", first_ms=run.due_ms, last_ms=run.due_ms,
        count=1, previous_due_ms=run.previous_due_ms,
    )  # fmt: skip
    extra = Entry(topic="runs", key=summary.key, record=summary, append_ms=run.due_ms + 1)
    return world.plus(extra), run.due_ms, Verdict.DUPLICATED


@pytest.mark.parametrize(
    "spoil",
    [
        dropped,
        doubled_under_a_shifted_key,
        doubled_a_second_later,
        shifted,
        of_a_wrong_version,
        succeeded_twice,
        succeeded_without_a_finish,
        begun_early,
        granted_early,
        ended_twice,
        chained_past_its_predecessor,
        under_a_summary_too,
    ],
    ids=lambda spoil: spoil.__name__,
)
@settings(deadline=None, max_examples=40)
@given(world=WORLDS, which=st.integers(0, 10**6))
def test_a_spoilt_run_is_found(spoil: Spoil, world: World, which: int) -> None:
    runs = world.runs()
    # From a random place on, the first run that can be spoilt in this way and is old enough to be missed.
    for turn in range(len(runs)):
        entry = runs[(which + turn) % len(runs)]
        if run_of(entry).due_ms > world.now_ms - MINUTE:
            continue
        spoilt = spoil(world, entry)
        if spoilt is not None:
            break
    else:
        reject()
    changed, due_ms, verdict = spoilt
    result = changed.audit()
    assert not result.explained
    assert on(result, due_ms, verdict), [finding for finding in result.findings if finding.problem]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda summary: {"count": summary.count + 1}, Verdict.UNEXPLAINED),
        (lambda summary: {"count": summary.count - 1}, Verdict.UNEXPLAINED),
        (lambda summary: {"version": summary.version + 100}, Verdict.UNEXPLAINED),
        (lambda summary: {"last_ms": summary.last_ms + 1_000}, Verdict.EARLY),  # it was written before that
        (lambda summary: {"first_ms": summary.first_ms - 1_000}, Verdict.UNEXPLAINED),
        (lambda summary: {"reason": "paused" if summary.reason != "paused" else "overlap"}, Verdict.UNEXPLAINED),
    ],
)
@settings(deadline=None, max_examples=40)
@given(world=WORLDS)
def test_a_spoilt_summary_is_found(change: Callable[[Summary], dict[str, object]], verdict: Verdict, world: World) -> None:
    summaries = world.summaries()
    assume(summaries)
    entry = summaries[0]
    assert isinstance(entry.record, Summary)
    result = world.changed(entry.key, **change(entry.record)).audit()
    assert not result.explained
    assert on(result, entry.record.first_ms, verdict)


@settings(deadline=None, max_examples=40)
@given(world=WORLDS)
def test_a_dropped_summary_leaves_each_of_its_due_times_missed(world: World) -> None:
    summaries = [e for e in world.summaries() if isinstance(e.record, Summary) and e.record.last_ms < world.now_ms - MINUTE]
    assume(summaries)
    summary = summaries[0].record
    assert isinstance(summary, Summary)
    result = world.without(summaries[0].key).audit()
    assert result.totals()[Verdict.MISSED] == summary.count


@settings(deadline=None, max_examples=40)
@given(world=WORLDS)
def test_a_missing_version_is_found(world: World) -> None:
    assume(len(world.versions) >= 2)
    result = replace(
        world, versions=[world.versions[0], *world.versions[2:]] if len(world.versions) > 2 else world.versions[1:]
    ).audit()
    assert any("follows version" in finding.detail for finding in result.problems)


# --- steps ------------------------------------------------------------------------------------------------------------


def run_of(entry: Entry) -> Run:
    assert isinstance(entry.record, Run)
    return entry.record


def owner_of(world: World, due_ms: int) -> int:
    """The number of the version whose span holds the instant."""
    return max(v.version for v in world.versions if v.effective_ms <= due_ms)
