"""(d) Steps: none lost, none done again but what was in flight, each always under the same key, in their order.

With the run ids of effects and step records:

- An effect names a run of the ledger (its job and due time) and an attempt that was granted; none of the attempt that succeeded
  comes (more than the skew) after the end of its run.
- Its key is `<run>/<step>`, in every attempt.
- An attempt has a step's effect at most once, and no step that an earlier attempt recorded. A further effect of a step needs a
  fault (`again.py`). A step has one record.
- An attempt leaves at most one effect that no record of its own follows: the step in flight when it was stopped, or failed. One
  that told of its success or of a snooze leaves none, and no more steps are told of in its end than are recorded.
- Effects and records of an attempt come in the order of the handler's steps.
- A record of a step has its effect, of the same attempt; a run that succeeded has every step, as record and as effect.
- What an attempt recorded lies within what the next ones were told to read (`Run.earlier`).
- A record that a step produces stands in its topic exactly once if the step is recorded, and never if it is not.

Only runs due up to `judged_ms` are asked about. Where the retention of `steps` ran out (by the faults), missing records prove
nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dueline.schemas.run import Run, RunState
from dueline.schemas.work import EventKind, Outcome, Step
from proof.checker.again import cause
from proof.checker.giving_up import GivingUp, givings_up, waited_ms
from proof.checker.reading import Log, Placed, place
from proof.history.acts import Conduct, Effect
from proof.history.verdict import Kind, Violation

S = RunState


@dataclass(slots=True)
class Doing:
    """What is known of the steps of one run."""

    key: str
    chain: Sequence[Placed[Run]]
    effects: list[Effect]
    records: list[Placed[Step]]
    conduct: Conduct
    givings: dict[str, GivingUp]

    @property
    def last(self) -> Run:
        """The run's last record."""
        return self.chain[-1].record


def check_steps(log: Log) -> Iterator[Violation]:
    """Every run's steps, and what they produced."""
    effects: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in log.history.noted.effects:
        effects[effect.run].append(effect)
    records: defaultdict[str, list[Placed[Step]]] = defaultdict(list)
    for placed in log.steps:
        records[placed.record.run].append(placed)
    judged = log.history.judged_ms
    for key in sorted({*effects, *records} - set(log.runs)):
        for effect in effects[key]:
            if effect.due_ms <= judged:
                yield _of(Kind.UNEXPLAINED, key, "an effect of a run that the ledger does not have", effect)
        for placed in records[key]:
            if placed.entry.append_ms <= judged:
                what = f"step {placed.record.name!r} of a run that the ledger does not have"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)
    produced = _produced(log)
    yield from _unasked(log)
    givings = givings_up(log)
    for key, chain in log.runs.items():
        if chain[0].record.due_ms > judged:
            continue
        conduct = log.history.noted.conducts.get(chain[-1].record.job.handler, Conduct())
        doing = Doing(key, chain, sorted(effects[key], key=lambda effect: effect.at_ms), records[key], conduct, givings)
        yield from _named(doing)
        yield from _after_the_end(log, doing)
        yield from _once(log, doing)
        yield from _in_flight(log, doing)
        yield from _counted(log, doing)
        yield from _order(doing)
        yield from _complete(log, doing)
        yield from _told(doing)
        yield from _outcomes(log, doing, produced)


def executions(log: Log) -> tuple[int, tuple[tuple[str, int], ...]]:
    """How many effects of steps there were, and by fault how many of them were further ones of their step."""
    firsts: dict[tuple[str, str], Effect] = {}
    again: Counter[str] = Counter()
    count = 0
    givings = givings_up(log)
    for effect in sorted(log.history.noted.effects, key=lambda each: each.at_ms):
        if effect.step and effect.due_ms <= log.history.judged_ms:
            count += 1
            first = firsts.setdefault((effect.run, effect.step), effect)
            if first is not effect:
                again[_cause(log, givings, first, effect) or "none"] += 1
                firsts[effect.run, effect.step] = effect
    return count, tuple(sorted(again.items()))


def lost_attempts(log: Log) -> int:
    """Attempts that were granted and begun, and of whose end no worker told: those that a kill, a freeze or a fence stopped."""
    count = 0
    begun = {(effect.run, effect.attempt) for effect in log.history.noted.effects}
    for key, chain in log.runs.items():
        if chain[0].record.due_ms > log.history.judged_ms:
            continue
        for attempt in {placed.record.attempt for placed in chain if placed.record.state == S.RUNNING}:
            told = any(placed.record.kind != EventKind.CLAIMED for placed in log.finishes.get((key, attempt), ()))
            count += not told and (key, attempt) in begun
    return count


# --- effects ----------------------------------------------------------------------------------------------------------


def _named(doing: Doing) -> Iterator[Violation]:
    granted = {placed.record.attempt for placed in doing.chain if placed.record.state == S.RUNNING}
    keys: set[str] = set()
    for effect in doing.effects:
        if (effect.job, effect.due_ms) != (doing.last.job.id, doing.last.due_ms):
            what = f"an effect that names job {effect.job} and due time {effect.due_ms}"
            yield _of(Kind.UNEXPLAINED, doing.key, what, effect)
        if effect.attempt not in granted:
            yield _of(Kind.UNEXPLAINED, doing.key, f"an effect of attempt {effect.attempt}, which was never granted", effect)
        if effect.step and effect.key != f"{doing.key}/{effect.step}":
            yield _of(Kind.DOUBLED, doing.key, f"step {effect.step!r} went out under the key {effect.key!r}", effect)
        elif not effect.step:
            keys.add(effect.key)
            if len(keys) > 1:
                yield _of(Kind.DOUBLED, doing.key, f"the key of its body changed to {effect.key!r}", effect)
        if effect.step and doing.conduct.steps and effect.step not in doing.conduct.steps:
            yield _of(Kind.UNEXPLAINED, doing.key, f"its handler has no step {effect.step!r}", effect)
    for placed in doing.records:
        if placed.record.attempt not in granted:
            what = f"step {placed.record.name!r} was recorded by attempt {placed.record.attempt}, which was never granted"
            yield Violation(kind=Kind.UNEXPLAINED, subject=doing.key, what=what, evidence=placed.where)


def _after_the_end(log: Log, doing: Doing) -> Iterator[Violation]:
    """Of the attempt that told of its success; others may wake up late."""
    ended = doing.chain[-1].entry.append_ms
    ended += log.skew.at(ended)
    for effect in doing.effects if doing.last.state == S.SUCCEEDED else ():
        if effect.attempt == doing.last.attempt and effect.at_ms > ended:
            what = f"step {effect.step!r} happened {effect.at_ms - ended} ms after the run had succeeded"
            yield _of(Kind.UNEXPLAINED, doing.key, what, effect)


def _cause(log: Log, givings: dict[str, GivingUp], first: Effect, again: Effect) -> str:
    return cause(log.history, log.blame, first, again, waited_ms=waited_ms(log, givings, first))


def _once(log: Log, doing: Doing) -> Iterator[Violation]:
    first_record: dict[str, Placed[Step]] = {}
    for placed in doing.records:
        other = first_record.setdefault(placed.record.name, placed)
        if other is not placed:
            what = f"step {placed.record.name!r} was recorded twice"
            yield Violation(kind=Kind.DOUBLED, subject=doing.key, what=what, evidence=f"{other.where}, {placed.where}")
    by_step: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in doing.effects:
        if effect.step:
            by_step[effect.step].append(effect)
    for step, effects in by_step.items():
        record = first_record.get(step)
        attempts: set[int] = set()
        for number, effect in enumerate(effects):
            if effect.attempt in attempts:
                yield _of(Kind.DOUBLED, doing.key, f"step {step!r} happened twice in attempt {effect.attempt}", effect)
            elif record is not None and record.record.attempt < effect.attempt:
                earlier = record.record.attempt
                what = f"step {step!r} happened in attempt {effect.attempt}, though attempt {earlier} had recorded it"
                yield _of(Kind.DOUBLED, doing.key, what, effect)
            elif number and not _cause(log, doing.givings, effects[number - 1], effect):
                yield _of(Kind.DOUBLED, doing.key, f"step {step!r} happened again, and no fault explains it", effect)
            attempts.add(effect.attempt)


def _in_flight(log: Log, doing: Doing) -> Iterator[Violation]:
    if not log.whole("steps"):
        return
    recorded = {(placed.record.attempt, placed.record.name) for placed in doing.records}
    lost: defaultdict[int, list[str]] = defaultdict(list)
    for effect in doing.effects:
        if effect.step and (effect.attempt, effect.step) not in recorded and effect.step not in lost[effect.attempt]:
            lost[effect.attempt].append(effect.step)
    for attempt, steps in lost.items():
        events = [placed.record for placed in log.finishes.get((doing.key, attempt), ())]
        whole = any(event.outcome in (Outcome.SUCCESS, Outcome.SNOOZE) for event in events)
        if len(steps) > (0 if whole else 1):
            what = f"attempt {attempt} did {', '.join(steps[:4])} and recorded none of it; {0 if whole else 1} may be in flight"
            yield Violation(kind=Kind.LOST, subject=doing.key, what=what, evidence=f"effects of attempt {attempt}")


def _counted(log: Log, doing: Doing) -> Iterator[Violation]:
    written = Counter(placed.record.attempt for placed in doing.records)
    for attempt in {placed.record.attempt for placed in doing.chain} if log.whole("steps") else ():
        for placed in log.finishes.get((doing.key, attempt), ()):
            if written[attempt] < placed.record.steps_done:
                what = f"attempt {attempt} told of {placed.record.steps_done} steps done, {written[attempt]} are recorded"
                yield Violation(kind=Kind.LOST, subject=doing.key, what=what, evidence=placed.where)


def _order(doing: Doing) -> Iterator[Violation]:
    places = {name: number for number, name in enumerate(doing.conduct.steps)}
    reached: dict[int, int] = {}
    for effect in doing.effects:
        number = places.get(effect.step)
        if number is None:
            continue
        if number < reached.get(effect.attempt, -1) and not _tied(doing, effect):
            what = f"step {effect.step!r} happened after a later one of attempt {effect.attempt}"
            yield _of(Kind.ORDER, doing.key, what, effect)
        reached[effect.attempt] = max(number, reached.get(effect.attempt, -1))
    written: dict[int, int] = {}
    for placed in doing.records:
        step = placed.record
        number = places.get(step.name)
        if number is None:
            continue
        if number < written.get(step.attempt, -1):
            what = f"step {step.name!r} was recorded after a later one of attempt {step.attempt}"
            yield Violation(kind=Kind.ORDER, subject=doing.key, what=what, evidence=placed.where)
        written[step.attempt] = max(number, written.get(step.attempt, -1))


def _tied(doing: Doing, effect: Effect) -> bool:
    """Whether another effect of its attempt has the same millisecond: then their order was not noted."""
    return sum(1 for other in doing.effects if (other.attempt, other.at_ms) == (effect.attempt, effect.at_ms)) > 1


# --- records ----------------------------------------------------------------------------------------------------------


def _complete(log: Log, doing: Doing) -> Iterator[Violation]:
    happened = {(effect.attempt, effect.step) for effect in doing.effects}
    steps = {step for _, step in happened}
    recorded = {placed.record.name for placed in doing.records}
    for placed in doing.records if doing.conduct.effects else ():
        step = placed.record
        if (step.attempt, step.name) not in happened and step.name in doing.conduct.steps:
            what = f"step {step.name!r} is recorded by attempt {step.attempt}, in which it never happened"
            yield Violation(kind=Kind.LOST, subject=doing.key, what=what, evidence=placed.where)
    if doing.last.state != S.SUCCEEDED:
        return
    evidence = doing.chain[-1].where
    for name in doing.conduct.steps:
        if name not in recorded and log.whole("steps"):
            what = f"succeeded, and its step {name!r} is not recorded"
            yield Violation(kind=Kind.LOST, subject=doing.key, what=what, evidence=evidence)
        if name not in steps and doing.conduct.effects:
            what = f"succeeded, and its step {name!r} never happened"
            yield Violation(kind=Kind.LOST, subject=doing.key, what=what, evidence=evidence)


def _told(doing: Doing) -> Iterator[Violation]:
    ranges = doing.last.earlier
    for placed in doing.records:
        step, entry = placed.record, placed.entry
        if step.attempt >= doing.last.attempt:
            continue
        if not any(part.home == entry.partition and part.start <= entry.offset < part.end for part in ranges):
            what = f"step {step.name!r} of attempt {step.attempt} lies outside what later attempts were told to read"
            yield Violation(kind=Kind.LOST, subject=doing.key, what=what, evidence=placed.where)


def _unasked(log: Log) -> Iterator[Violation]:
    """Records in a topic that steps produce to, of no run of the ledger."""
    for topic in {conduct.produces for conduct in log.history.noted.conducts.values()} - {""}:
        for (name, _), entries in log.history.log.items():
            for entry in entries if name == topic else ():
                run = (entry.key or b"").decode(errors="replace").partition("/")[0]
                if run not in log.runs and entry.append_ms <= log.history.judged_ms:
                    what = f"a record of {entry.key!r} that no run of the ledger produced"
                    yield Violation(kind=Kind.UNEXPLAINED, subject=run, what=what, evidence=place(entry))


def _produced(log: Log) -> dict[str, dict[bytes, list[str]]]:
    """By topic and key, where records stand."""
    found: dict[str, dict[bytes, list[str]]] = {}
    for topic in {conduct.produces for conduct in log.history.noted.conducts.values()} - {""}:
        places: defaultdict[bytes, list[str]] = defaultdict(list)
        for (name, partition), entries in log.history.log.items():
            for entry in entries if name == topic else ():
                places[entry.key or b""].append(f"{topic}[{partition}]@{entry.offset}")
        found[topic] = places
    return found


def _outcomes(log: Log, doing: Doing, produced: dict[str, dict[bytes, list[str]]]) -> Iterator[Violation]:
    topic = doing.conduct.produces
    if not topic or not log.whole(topic):
        return
    recorded = {placed.record.name: placed.where for placed in doing.records}
    for name in doing.conduct.steps:
        places = produced[topic].get(f"{doing.key}/{name}".encode(), [])
        if name in recorded and not places:
            what = f"step {name!r} is recorded, and the record that it produced is not in {topic}"
            yield Violation(kind=Kind.LOST, subject=doing.key, what=what, evidence=recorded[name])
        elif len(places) > 1:
            what = f"step {name!r} produced {len(places)} records"
            yield Violation(kind=Kind.DOUBLED, subject=doing.key, what=what, evidence=", ".join(places))
        elif places and name not in recorded and log.whole("steps"):
            what = f"step {name!r} is not recorded, and what it produced is in {topic}"
            yield Violation(kind=Kind.UNEXPLAINED, subject=doing.key, what=what, evidence=places[0])


def _of(kind: Kind, subject: str, what: str, effect: Effect) -> Violation:
    return Violation(kind=kind, subject=subject, what=what, evidence=f"effect at {effect.at_ms} in {effect.process}")
