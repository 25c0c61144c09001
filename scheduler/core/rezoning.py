"""The zone data changed: each job with a zone gets a version whose due times follow the new rules, and nothing runs twice.

The new version holds from right after the last due time that has a record, since nothing after it is decided yet. What
has a record and is no due time any more has only moved: the due time that takes its place does not run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.spans import JobState, Span
from dueline.schemas.base import NONE
from dueline.schemas.job import Change, JobVersion

FURTHEST_MS: Final = 3 * 3_600_000
"""How far zone data moves an occurrence at most. Changes of a zone's rules are of an hour, seldom of two or three."""


def rezone_all(draft: Draft) -> None:
    """Every job whose due times were last worked out with other zone data; in slices, and before anything is due."""
    for job_id in list(_outdated(draft)):
        if draft.full:
            return
        draft.for_job(job_id, _rezone_job, draft, job_id)


def _rezone_job(draft: Draft, job_id: str) -> None:
    rezone(draft, draft.state.jobs[job_id])


def rezone(draft: Draft, job: JobState) -> JobState:
    """The job as it stands once its due times follow the present zone data; the same if they do."""
    before = job.latest
    if not before.zoned or before.tzdata == draft.settings.tzdata or not draft.settings.tzdata:
        return job
    cursors = draft.state.cursors.get(job.id) or {}
    effective = max(before.from_ms, max(cursors.values(), default=NONE) + 1)
    topic, partition, offset = before.source
    draft.put_version(
        JobVersion(
            job=job.id,
            version=before.version + 1,
            change=Change.REZONED,
            effective_ms=effective,
            paused=before.paused,
            definition=before.job,
            source_topic=topic,
            source_partition=partition,
            source_offset=offset,
            source_ms=before.source_ms,
            by=f"zone data {draft.settings.tzdata}",
            taken=_moved(job, cursors, effective),
        )
    )
    return draft.state.jobs[job.id]


def _outdated(draft: Draft) -> Iterator[str]:
    present, zones = draft.settings.tzdata, draft.state.zones
    if present:
        for _, job_id in chain(zones.between(None, (present,)), zones.between((present + "\0",))):
            yield str(job_id)


def _moved(job: JobState, cursors: dict[int, int], effective: int) -> list[int]:
    """The due time to which the job's last decided one moved, if it moved."""
    span = job.latest
    last = max((cursors.get(each.version, NONE) for each in _same_schedule(job)), default=NONE)
    if last == NONE or span.schedule is None or span.has(last):
        return []
    following = span.schedule.next_after(last)
    return [following] if following is not None and effective <= following <= last + FURTHEST_MS else []


def _same_schedule(job: JobState) -> Iterator[Span]:
    """The latest versions that share the latest one's schedule."""
    for span in reversed(job.spans):
        if span.deleted or span.job.schedule != job.latest.job.schedule:
            return
        yield span
