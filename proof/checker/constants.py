"""(a) What run records carry of their definition: queue, handler, payload, limits and retries are those of the version they name.

The payload of a manual run is its command's, if that has one. A run that nothing is published for is looked at elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from dueline.schemas.command import Command, CommandKind
from dueline.schemas.job import Job
from dueline.schemas.run import RunJob, run_key
from proof.checker.expected import Expected
from proof.checker.reading import Log
from proof.history.verdict import Kind, Violation


def check_constants(log: Log, expected: dict[str, Expected]) -> Iterator[Violation]:
    """Every record of every run."""
    payloads = {
        run_key(letter.value.job, 0, letter.value.id): letter.value.payload
        for letter in log.commands
        if isinstance(letter.value, Command) and letter.value.kind == CommandKind.TRIGGER
    }
    wanted: dict[tuple[str, int, str], RunJob] = {}
    for key, chain in log.runs.items():
        known = expected.get(chain[0].record.job.id)
        for placed in chain if known is not None else ():
            assert known is not None, "asked of known jobs only"
            said = placed.record.job
            span = known.number(said.version)
            if span is None:
                what = f"names version {said.version} of {said.id}, which does not exist"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)
                continue
            payload = payloads.get(key, "")
            place = (said.id, said.version, payload)
            if place not in wanted:
                wanted[place] = constants_of(span.version.definition, said.version, payload)
            if said != wanted[place]:
                what = f"is not what version {said.version} says: {', '.join(_differ(said, wanted[place]))}"
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=placed.where)


def constants_of(job: Job, version: int, payload: str) -> RunJob:
    """What runs of a version carry. `payload`: the command's, "" if it has none."""
    names = set(RunJob.__dataclass_fields__) - {"id", "version", "payload"}
    fields = {name: getattr(job, name) for name in names}
    return RunJob(id=job.id, version=version, payload=payload or job.payload, **fields)


def _differ(said: RunJob, wanted: RunJob) -> Iterator[str]:
    is_said, is_wanted = asdict(said), asdict(wanted)
    for name, value in is_said.items():
        if value != is_wanted[name]:
            yield f"{name} {value!r:.60}, not {is_wanted[name]!r:.60}"
