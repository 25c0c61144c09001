"""What the honest leader makes of versions and runs: due times, the constants of a run, a run that waits, is offered or granted,
or whose attempt has ended."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from croniter import croniter

from dueline.scheduler.core.schedule import compile_schedule
from dueline.schemas.job import JobVersion
from dueline.schemas.run import Run, RunJob, Summary
from dueline.schemas.work import AttemptEvent

FOREVER = 1 << 60


def dues(version: JobVersion, low: int, high: int) -> list[int]:
    """Due times in [low, high): `every` by arithmetic, cron by croniter, `at` as it stands."""
    if version.change == "deleted" or high <= low:
        return []
    value = json.loads(version.definition.schedule)
    if isinstance(value, str):
        found, ticks = [], croniter(value, datetime.fromtimestamp((low - 1) // 1000, UTC), ret_type=float)
        at = round(ticks.get_next() * 1000)
        while at < high:
            if at >= low:
                found.append(at)
            at = round(ticks.get_next() * 1000)
        return found
    if "at" in value:
        at = round(datetime.fromisoformat(value["at"]).timestamp() * 1000)
        return [at] if low <= at < high else []
    step = int(value["every"].removesuffix("s")) * 1000
    return list(range(-(-low // step) * step, high, step))


def run_job(version: JobVersion) -> RunJob:
    """What a run keeps of its version."""
    job = version.definition
    return RunJob(
        id=job.id, version=version.version, queue=job.queue, handler=job.handler, payload=job.payload, timeout_ms=job.timeout_ms,
        misfire_grace_ms=job.misfire_grace_ms, max_retries=job.max_retries, retry_backoff_ms=job.retry_backoff_ms,
        retry_backoff_factor=job.retry_backoff_factor, retry_backoff_max_ms=job.retry_backoff_max_ms,
        max_worker_losses=job.max_worker_losses,
    )  # fmt: skip


def waiting(run: Run, reason: str, until_ms: int = -1) -> Run:
    return replace(
        run, state="waiting", reason=reason, until_ms=until_ms, recall="", ahead=False, dispatch_term=-1, dispatch_seq=-1,
        incarnation="", worker="", claim=-1, home=-1, steps_from=-1, partition=-1, deadline_ms=-1,
    )  # fmt: skip


def offered(run: Run, now: int, term: int, seq: int) -> Run:
    return replace(
        run, state="dispatched", reason="", until_ms=-1, attempt=run.attempt + 1, recall="",
        ahead=run.trigger != "manual" and now < run.due_ms, partition=seq % 2, dispatch_term=term, dispatch_seq=seq,
        incarnation="", worker="", claim=-1, home=-1, steps_from=-1, deadline_ms=-1, dispatched_ms=now, granted_ms=-1,
        started_ms=-1, outcome="",
    )  # fmt: skip


def granted(run: Run, event: AttemptEvent, now: int) -> Run:
    deadline = max(now, run.due_ms) + run.job.timeout_ms if run.job.timeout_ms else -1
    return replace(
        run, state="running", incarnation=event.incarnation, worker=event.worker, claim=event.claim, home=event.home,
        steps_from=event.steps_from, granted_ms=now, deadline_ms=deadline,
    )  # fmt: skip


def told(run: Run, event: AttemptEvent) -> Run:
    return replace(run, outcome=event.outcome, error=event.error, started_ms=event.started_ms, begun=True)


def start_ms(version: JobVersion, due: int) -> int:
    """When a due time's run starts. By the product's engine: the checker's reading of `jitter` is held against it."""
    if "jitter" not in version.definition.schedule:
        return due
    return due + compile_schedule(version.definition.schedule, job_id=version.job).start_offset(due)


def by_job_and_due(record: Run | Summary) -> tuple[str, int]:
    return (record.job.id, record.due_ms) if isinstance(record, Run) else (record.job, record.first_ms)
