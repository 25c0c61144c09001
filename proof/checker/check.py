"""`check(history)`: what was promised, held against what happened. The story; each chapter has a file of its own.

What is believed: the log of `jobs`, `control`, what publishers, handlers and the harness noted, and the brokers' append times.
What is judged: everything that schedulers and workers wrote. Nothing of the scheduler is used but the records' schemas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from proof.checker.bodies import check_bodies
from proof.checker.constants import check_constants
from proof.checker.contents import check_contents
from proof.checker.disturbance import Disturbances
from proof.checker.endings import check_endings
from proof.checker.expected import Expected, check_versions, expected_of
from proof.checker.fields import check_fields
from proof.checker.holding import check_holding
from proof.checker.identity import check_effects_in_time, check_identity, ends_of_due_times, first_lateness
from proof.checker.inputs import check_inputs
from proof.checker.limits import check_limits
from proof.checker.matching import check_matching
from proof.checker.offers import check_offers
from proof.checker.overtaken import check_overtaken
from proof.checker.passing import check_passing
from proof.checker.predecessors import check_predecessors
from proof.checker.processes import check_processes
from proof.checker.reading import Log, read
from proof.checker.spite import check_spite
from proof.checker.starts import check_starts, starts_of
from proof.checker.states import check_states
from proof.checker.steps import check_steps, executions, lost_attempts
from proof.checker.stopping import check_stopping
from proof.checker.takeover import take_overs, unled
from proof.checker.terms import Term, check_terms, terms_of
from proof.checker.waits import check_waits
from proof.checker.writers import check_writers
from proof.history.history import History
from proof.history.verdict import Verdict, Violation


def check(history: History) -> Verdict:
    """The verdict. Raises CannotJudge for what this checker does not understand, such as a kind of schedule."""
    log = read(history)
    expected = expected_of(log)
    terms = terms_of(log)
    violations = tuple(_violations(log, expected, terms))
    runs = [chain for chain in log.runs.values() if chain[0].record.due_ms <= history.judged_ms]
    executed, again = executions(log)
    changes, leaderless_ms, unmeasured = take_overs(history, terms)
    starts = starts_of(log)
    injected = [fault for fault in history.noted.faults if fault.injected]
    return Verdict(
        violations=violations,
        due_times=sum(due <= history.judged_ms for known in expected.values() for due in known.owner),
        runs=len(runs),
        runs_by_state=dict(sorted(Counter(chain[-1].record.state for chain in runs).items())),
        lateness_ms=tuple(first_lateness(log)),
        steps_executed=executed,
        steps_again=again,
        kills_in_flight=lost_attempts(log),
        take_overs=changes,
        leaderless_ms=leaderless_ms,
        unmeasured=unmeasured,
        ends=ends_of_due_times(log, expected),
        granted_ms=tuple(start.grant.entry.append_ms - start.due_ms for start in starts),
        begun_ms=tuple(start.effect_ms - start.due_ms for start in starts if start.effect_ms >= 0),
        terms=len(terms),
        terms_unled=unled(terms),
        faults=sum(fault.struck for fault in injected),
        faults_missed=sum(not fault.struck for fault in injected),
        troubles=history.noted.troubles,
    )


def _violations(log: Log, expected: dict[str, Expected], terms: list[Term]) -> Iterator[Violation]:
    yield from log.troubles
    yield from check_inputs(log)  # (a) what users wrote led to what it says
    yield from check_versions(log, expected)
    yield from check_constants(log, expected)
    yield from check_fields(log, expected)
    yield from check_predecessors(log, expected)
    yield from check_passing(log, expected)
    yield from check_holding(log)
    yield from check_spite(log, expected)
    yield from check_waits(log, expected)
    yield from check_endings(log)
    yield from check_identity(log, expected, Disturbances(log.history))  # (b) a record for each due time, in time
    yield from check_effects_in_time(log)
    yield from check_starts(log)
    yield from check_matching(log)  # (c) effects for each run, trusting no id
    yield from check_bodies(log)
    yield from check_writers(log)
    yield from check_stopping(log)
    yield from check_steps(log)  # (d) and with the ids: steps and what they produced
    yield from check_contents(log)
    yield from check_overtaken(log)
    yield from check_processes(log)
    yield from check_limits(log, expected)  # (e) never too many at one time
    yield from check_terms(log, terms)  # (f) one leader after the other
    yield from check_states(log)
    yield from check_offers(log)
