"""(a) What users published, and what became of it.

- A publication that was acknowledged stands in the log where the broker said. One of unknown (or failed) outcome may stand there
  or not: it counts if it does. A record that nobody noted is unexplained, if publications were noted at all.
- Each definition and deletion appended up to `judged_ms` became a version of its own, or was refused with its coordinates, or
  changed nothing: the same definition as the version that held, or the deletion of what did not exist.
- Each command became what it asks for: a version for pause, resume and delete, exactly one manual run for a trigger, a cancelled
  (or ended, or asked-back) run for a cancel; or it was refused. A repeated id asks for nothing new.
- Every version and every manual run goes back to such a record, and says of it what is true.
- Why something was refused is looked at in `refusals.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dueline.schemas.command import Command, CommandKind, Rejected
from dueline.schemas.job import Change, Job, JobVersion
from dueline.schemas.run import Run, RunState, run_key
from proof.checker.reading import Letter, Log, Placed, place
from proof.checker.refusals import Place, check_refusals
from proof.history.acts import Outcome, Published
from proof.history.verdict import Kind, Violation

ABSENT = "absent from jobs"
"""How a version says that its job was gone when `jobs` was read whole."""


def check_inputs(log: Log) -> Iterator[Violation]:
    """Everything that a user's record should have led to, and everything that no such record led to."""
    letters = {(each.entry.topic, each.entry.partition, each.entry.offset): each for each in (*log.jobs, *log.commands)}
    refused: defaultdict[Place, list[Placed[Rejected]]] = defaultdict(list)
    for placed in log.rejected:
        refused[placed.record.topic, placed.record.partition, placed.record.offset].append(placed)
    yield from _publications(log)
    yield from _definitions(log, refused)
    yield from _commands(log, refused)
    yield from _sources(log, letters)
    yield from _manual(log)
    yield from check_refusals(log, letters)


# --- publications -----------------------------------------------------------------------------------------------------


def _publications(log: Log) -> Iterator[Violation]:
    prefix, noted = log.history.prefix, log.history.noted.published
    entries = {(entry.topic, entry.offset): entry for each in (*log.jobs, *log.commands) for entry in (each.entry,)}
    known: set[tuple[str, bytes, bytes | None]] = set()
    for each in noted:
        topic = each.topic if "." in each.topic else f"{prefix}.{each.topic}"
        known.add((topic, each.key, each.value))
        if each.outcome == Outcome.ACKNOWLEDGED and not _stands(log, topic, each):
            entry = entries.get((topic, each.offset))
            what = "was acknowledged and does not stand in the log" if entry is None else "another record stands in its place"
            yield Violation(
                kind=Kind.LOST, subject=f"{topic}@{each.offset}", what=f"a record of {each.key!r} {what}",
                evidence=f"published at {each.sent_ms}",
            )  # fmt: skip
    for letter in (*log.jobs, *log.commands) if noted else ():
        entry = letter.entry
        if (entry.topic, entry.key or b"", entry.value) not in known:
            what = f"a record of {entry.key!r} that nobody noted to have published"
            yield Violation(kind=Kind.UNEXPLAINED, subject=entry.topic, what=what, evidence=place(entry))


def _stands(log: Log, topic: str, each: Published) -> bool:
    if not log.whole(topic):
        return True
    for (name, _), entries in log.history.log.items():
        if name != topic:
            continue
        for entry in entries:
            if (entry.key or b"", entry.value) == (each.key, each.value) and each.offset in (-1, entry.offset):
                return True
    return False


# --- definitions ------------------------------------------------------------------------------------------------------


def _definitions(log: Log, refused: dict[Place, list[Placed[Rejected]]]) -> Iterator[Violation]:
    made = {_source(placed.record): placed for found in log.by_job.values() for placed in found if not placed.record.command}
    for letter in log.jobs:
        entry = letter.entry
        here = (entry.topic, entry.partition, entry.offset)
        if here in made or here in refused or entry.append_ms > log.history.judged_ms:
            continue
        if letter.error:
            what = f"cannot be accepted ({letter.error:.200}) and was not refused"
            yield Violation(kind=Kind.LOST, subject=letter.key, what=what, evidence=place(entry))
        elif not _changes_nothing(log, letter):
            what = "a definition became no version" if letter.value else "a deletion became no version"
            yield Violation(kind=Kind.LOST, subject=letter.key, what=f"{what} and was not refused", evidence=place(entry))


def _changes_nothing(log: Log, letter: Letter) -> bool:
    """Whether one of the versions that may have held at its turn is what it says already. Which one did cannot be told exactly:
    the other input topic is read beside this one."""
    found = [placed.record for placed in log.by_job.get(letter.key, ())]
    own = [version.source_offset if version.source_topic == letter.entry.topic else -1 for version in found]
    offset = letter.entry.offset
    first = max((number for number, source in enumerate(own) if -1 < source < offset), default=-1)
    after = next((number for number, source in enumerate(own) if source >= offset), len(found))
    candidates: list[JobVersion | None] = [found[number] for number in range(max(first, 0), after)]
    if first < 0:
        candidates.append(None)
    if letter.value is None:
        return any(version is None or version.change == Change.DELETED for version in candidates)
    live = [version for version in candidates if version is not None and version.change != Change.DELETED]
    return any(version.definition == letter.value for version in live)


def _source(version: JobVersion) -> Place:
    return version.source_topic, version.source_partition, version.source_offset


# --- commands ---------------------------------------------------------------------------------------------------------


def _commands(log: Log, refused: dict[Place, list[Placed[Rejected]]]) -> Iterator[Violation]:
    versions = {placed.record.command for found in log.by_job.values() for placed in found}
    for letter in log.commands:
        entry, command = letter.entry, letter.value
        if (entry.topic, entry.partition, entry.offset) in refused or entry.append_ms > log.history.judged_ms:
            continue
        if not isinstance(command, Command):
            what = f"cannot be accepted ({letter.error:.200}) and was not refused"
            yield Violation(kind=Kind.LOST, subject=letter.key, what=what, evidence=place(entry))
        elif not _heeded(log, letter, command, versions):
            what = f"{command.kind} of {command.job or command.run} led to nothing and was not refused"
            kind = Kind.MISSED if command.kind == CommandKind.TRIGGER else Kind.LOST
            yield Violation(kind=kind, subject=f"command {command.id}", what=what, evidence=place(entry))


def _heeded(log: Log, letter: Letter, command: Command, versions: set[str]) -> bool:
    match command.kind:
        case CommandKind.ACCEPT_POSITIONS:
            return True
        case CommandKind.TRIGGER:
            return run_key(command.job, 0, command.id) in log.runs
        case CommandKind.CANCEL:
            return any(_cancels(placed.record) for placed in log.runs.get(command.run, ()))
        case CommandKind.DELETE:
            return command.id in versions or any(
                placed.record.change == Change.DELETED and placed.record.source_offset >= letter.entry.offset
                for placed in log.by_job.get(command.job, ()) if placed.record.command
            )  # fmt: skip
    return command.id in versions


def _cancels(run: Run) -> bool:
    return run.state == RunState.CANCELLED or run.recall.startswith("cancel:")


# --- where versions and manual runs come from -------------------------------------------------------------------------


def _sources(log: Log, letters: dict[Place, Letter]) -> Iterator[Violation]:
    seen: dict[Place, str] = {}
    for found in log.by_job.values():
        reached: dict[str, int] = {}
        for placed in found:
            version = placed.record
            subject = f"{version.job}#{version.version}"
            wrong = _wrong_source(log, version, letters.get(_source(version)))
            if wrong:
                yield Violation(kind=Kind.UNEXPLAINED, subject=subject, what=wrong, evidence=placed.where)
            if version.change == Change.REZONED or version.by == ABSENT:
                continue
            if version.source_offset < reached.get(version.source_topic, -1):
                what = f"made of offset {version.source_offset}, after one made of {reached[version.source_topic]}"
                yield Violation(kind=Kind.ORDER, subject=subject, what=what, evidence=placed.where)
            reached[version.source_topic] = version.source_offset
            other = seen.setdefault(_source(version), placed.where)
            if other != placed.where:
                what = "a second version of the same record"
                yield Violation(kind=Kind.DOUBLED, subject=subject, what=what, evidence=f"{other}, {placed.where}")


def _wrong_source(log: Log, version: JobVersion, letter: Letter | None) -> str:
    """What the version says of its source that is not so; "" if all is."""
    if version.change == Change.REZONED:
        return ""
    if version.by == ABSENT:
        latest = [each for each in log.jobs if each.key == version.job]
        return "deleted as absent, though `jobs` has the job" if latest and latest[-1].entry.value is not None else ""
    if letter is None:
        return "" if not log.whole(version.source_topic) else "no such record stands where it says it comes from"
    if letter.entry.append_ms != version.source_ms:
        return f"says that its source was appended at {version.source_ms}, it was at {letter.entry.append_ms}"
    command = letter.value if isinstance(letter.value, Command) else None
    if bool(version.command) != (command is not None) or (command is not None and command.id != version.command):
        return f"names the command {version.command!r}, its source is another record"
    if command is not None:
        wanted = {"pause": Change.PAUSED, "resume": Change.RESUMED, "delete": Change.DELETED}.get(command.kind)
        right = wanted == version.change and command.job == version.job
        return "" if right else f"{version.change}, made by a command to {command.kind} {command.job}"
    if letter.error or letter.key != version.job:
        return f"made by a record of {letter.key!r}: {letter.error or 'another job'}"
    if isinstance(letter.value, Job):
        same = version.change == Change.DEFINED and version.definition == letter.value
        return "" if same else "is not the definition that its source holds"
    return "" if version.change == Change.DELETED else f"{version.change}, made by a deletion"


def _manual(log: Log) -> Iterator[Violation]:
    wanted: defaultdict[str, set[int]] = defaultdict(set)
    for letter in log.commands:
        if isinstance(letter.value, Command) and letter.value.kind == CommandKind.TRIGGER:
            wanted[run_key(letter.value.job, 0, letter.value.id)].add(letter.entry.append_ms)
    for key, chain in log.runs.items():
        run = chain[0].record
        if run.command and run.due_ms not in wanted.get(key, ()):
            what = "a manual run without the command that asked for it then"
            if log.whole("control"):
                yield Violation(kind=Kind.UNEXPLAINED, subject=key, what=what, evidence=chain[0].where)
