"""`plan(state, inputs, settings, now)`: one round of the leader, decided. Pure: it changes neither the state nor the world.

The order matters. What workers did comes first, so that a slot that came free is used and a run that ended no longer
blocks; then what users want, since a version or a pause may already hold for what is due; then due times; last, offers.
"""

from __future__ import annotations

from collections import deque

from dueline.scheduler.core.commands import decide_command
from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.definitions import ask_back_all, decide_absences, decide_definition, decide_recalled
from dueline.scheduler.core.draft import Draft
from dueline.scheduler.core.dues import decide_dues, offer_ahead
from dueline.scheduler.core.events import answer_heartbeat, decide_dead, decide_event, decide_fenced, decide_undecided
from dueline.scheduler.core.guard import job_of
from dueline.scheduler.core.inputs import Inputs, Settings
from dueline.scheduler.core.offers import offer_backlog, renew_offers, run_timers, send_again, start_paced, wake_blocked
from dueline.scheduler.core.rezoning import rezone_all
from dueline.scheduler.core.state import State


def plan(state: State, inputs: Inputs, settings: Settings, now: int) -> Decision:
    """Decide one round at leader time `now` (ms). The records come back in the order in which they must be written."""
    draft = Draft(state, inputs, settings, now)
    decide(draft)
    return draft.decision()


def decide(draft: Draft) -> None:
    """The round, on a fresh draft. Each input, job and worker is decided under the draft's guard."""
    if draft.inputs.first:
        ask_back_all(draft)  # before a claim of what should have been taken back is granted
        send_again(draft)
    _what_workers_did(draft)
    _what_users_want(draft)
    if draft.inputs.firing:
        draft.begin_slice()
        _what_time_brings(draft)


def _what_time_brings(draft: Draft) -> None:
    """What was asked back comes first, since it was due first, and again after due times that it had to wait for. What waits for
    a worker has the room before what comes due now: else, under a load that takes all of it, the oldest would wait for ever."""
    rezone_all(draft)
    decide_recalled(draft)
    offer_backlog(draft)
    decide_dues(draft)
    decide_recalled(draft)
    run_timers(draft)
    wake_blocked(draft)
    start_paced(draft)
    renew_offers(draft)
    offer_backlog(draft)
    offer_ahead(draft)


def _what_workers_did(draft: Draft) -> None:
    guard = draft.guard
    for event in draft.inputs.events:
        guard.read(event, decide_event, draft, event)
    for read in draft.inputs.undecided:
        if read.value is not None and read.problem is not None:
            guard.job(job_of(read), decide_undecided, draft, read.value, read.problem.detail)
    for result in draft.inputs.fenced:
        guard.worker(result.incarnation, decide_fenced, draft, result)
    for worker in draft.inputs.dead:
        guard.worker(worker.incarnation, decide_dead, draft, worker)
    for heartbeat in draft.inputs.heartbeats:
        guard.worker(heartbeat.incarnation, answer_heartbeat, draft, heartbeat)


def _what_users_want(draft: Draft) -> None:
    """By append time across the two topics, so that a command sent after a definition finds it."""
    decide_absences(draft, draft.inputs.absent_jobs, draft.inputs.jobs_topic)
    jobs, commands = deque(draft.inputs.jobs), deque(draft.inputs.commands)
    while jobs or commands:
        if not commands or (jobs and jobs[0].append_ms <= commands[0].append_ms):
            definition = jobs.popleft()
            draft.guard.read(definition, decide_definition, draft, definition)
        else:
            command = commands.popleft()
            draft.guard.read(command, decide_command, draft, command)
