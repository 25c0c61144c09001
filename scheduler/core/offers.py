"""Runs that wait get their turn: timers that ran out, runs behind others, the backlog of each queue, unanswered offers."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.life import waiting
from dueline.scheduler.core.tables import Entry
from dueline.scheduler.core.waiting import Waiting, admits


def wake_blocked(draft: Draft) -> None:
    """Runs that waited for an earlier run of their job, in due-time order."""
    for (job_id,) in list(draft.state.wakeable.between()):
        draft.for_job(job_id, _wake_job, draft, job_id)
        if draft.full:
            return


def _wake_job(draft: Draft, job_id: str) -> None:
    for _, _, key in draft.state.blocked.prefixed(job_id):
        if (job_id,) not in draft.state.wakeable or draft.full:
            return
        draft.offer(draft.put_run(waiting(draft.state.runs[key], Waiting.NO_WORKER)))


def start_paced(draft: Draft) -> None:
    """Late runs whose job starts them one by one, so far apart: the next one, once it is time and there is room for it."""
    for _, job_id in list(draft.state.pace.between(None, (draft.now + 1,))):
        if draft.full:
            return
        draft.for_job(job_id, _start_next_paced, draft, job_id)


def _start_next_paced(draft: Draft, job_id: str) -> None:
    _, _, key = next(draft.state.paced.prefixed(job_id))
    run, job = draft.state.runs[key], draft.state.jobs.get(job_id)
    engaged, behind = draft.state.engaged.get(job_id) or 0, draft.state.behind.get(job_id) or 0
    admitted = not behind and (job is None or admits(job.latest.job, engaged))
    if admitted and draft.placement.has_room(run.job.queue, run.job.handler):
        draft.offer(run)


def run_timers(draft: Draft) -> None:
    """Retries, snoozes, rests and jitter that are over."""
    for _, key in list(draft.state.timers.between(None, (draft.now + 1,))):
        if draft.full:
            return
        _offer(draft, key)


def _offer(draft: Draft, key: str) -> None:
    run = draft.state.runs[key]
    draft.for_job(run.job.id, draft.offer, run)


def offer_backlog(draft: Draft) -> None:
    """Runs that wait for a worker, queue by queue in due-time order, while there is room."""
    if draft.state.ready.first() is None:
        return
    for queue in draft.inputs.fleet.queues:
        _offer_queue(draft, queue)


def _offer_queue(draft: Draft, queue: str) -> None:
    """The earliest first, of those whose handler has room: what no worker can do must not keep others waiting."""
    heads: list[tuple[int, str, str, Iterator[Entry]]] = []
    for handler in draft.placement.handlers(queue):
        _push_next(heads, handler, draft.state.ready.prefixed(queue, handler))
    while heads and not draft.full:
        _, key, handler, rest = heappop(heads)
        if draft.placement.has_room(queue, handler):
            _offer(draft, key)
            _push_next(heads, handler, rest)


def _push_next(heads: list[tuple[int, str, str, Iterator[Entry]]], handler: str, entries: Iterator[Entry]) -> None:
    entry = next(entries, None)
    if entry is not None:
        heappush(heads, (entry[2], entry[3], handler, entries))


def renew_offers(draft: Draft) -> None:
    """Offers nobody answered are made again, as the next attempt, once this term has waited long enough for an answer."""
    oldest = draft.now - draft.settings.offer_timeout_ms
    if draft.inputs.led_ms > oldest:
        return
    for _, key in list(draft.state.offered.between(None, (oldest,))):
        if draft.full:
            return
        _offer(draft, key)


def send_again(draft: Draft) -> None:
    """A new term sends every offer that stands again: its record in `dispatch` may be missing (W4)."""
    for _, key in draft.state.offered.between():
        run = draft.state.runs[key]
        draft.for_job(run.job.id, draft.send_dispatch, run, key)
