"""(a) Why users' records were refused: a word that is known, and that is so by what was published and by the versions that held.

| word | true if |
| --- | --- |
| `undecodable`, `invalid-job`, `invalid-command`, `empty` | the record, read here with the same schemas, has that trouble |
| `key-mismatch` | a definition under another key than its id |
| `unknown-queue` | a queue without a `dispatch` topic |
| `invalid-schedule` | this checker cannot read the schedule either |
| `never-due` | nothing is due from its append time on |
| `unknown-job` | no version of the job held, or it was deleted |
| `no-change` | to pause what was paused, to resume what was not |
| `version-changed` | to delete a version that was not the one that held |
| `not-active` | to cancel a run that the ledger did not have, or that had ended |
| `invalid-event` | a worker's event that names another home than its partition |

What held is asked only where the ledger says so plainly: a version made before the refusal was decided, none at that instant, and
none made of a later record of the same topic. A record that became a version was not refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from dueline.schemas.codec import decode
from dueline.schemas.command import Command, CommandKind, Rejected
from dueline.schemas.errors import ContractError
from dueline.schemas.job import Change, Job, JobVersion
from dueline.schemas.run import RunState
from dueline.schemas.work import AttemptEvent
from proof.checker.reading import Letter, Log, Placed
from proof.checker.schedule import FOREVER, schedule
from proof.checker.states import ENDS
from proof.history.entry import Entry
from proof.history.verdict import Kind, Violation

BUG: Final = "internal-error"
"""How a refusal says that nothing is wrong with the record: the leader could not decide it."""
OF_TEXT: Final = frozenset({"undecodable", "invalid-job", "invalid-command", "empty"})
OF_JOBS: Final = frozenset({"key-mismatch", "unknown-queue", "invalid-schedule", "never-due"})
OF_COMMANDS: Final = frozenset({"unknown-job", "no-change", "version-changed", "not-active"})

Place = tuple[str, int, int]


def check_refusals(log: Log, letters: dict[Place, Letter]) -> Iterator[Violation]:
    """Every refusal."""
    prefix = log.history.prefix
    made = {
        (version.source_topic, version.source_partition, version.source_offset)
        for found in log.by_job.values()
        for version in (placed.record for placed in found)
        if version.change != Change.REZONED and not version.by
    }
    events = {(entry.topic, entry.partition, entry.offset): entry for entry in _entries(log, f"{prefix}.attempts")}
    for placed in log.rejected:
        refusal = placed.record
        where = (refusal.topic, refusal.partition, refusal.offset)
        letter, kind, wrong = letters.get(where), Kind.UNEXPLAINED, ""
        if refusal.error == BUG:
            wrong = f"refused for a bug of the leader: {refusal.detail:.200}"
        elif refusal.topic == f"{prefix}.attempts":
            wrong = _wrong_event(log, refusal, events.get(where))
        elif letter is None:
            inputs = {f"{prefix}.jobs", f"{prefix}.control"}
            if refusal.topic not in inputs or log.whole(refusal.topic):
                wrong = "refuses a record that does not stand in the log"
        elif where in made:
            wrong = "refuses a record that became a version"
        else:
            wrong = _wrong_word(log, refusal, letter)
            kind = Kind.LOST if wrong else kind
        if wrong:
            yield Violation(kind=kind, subject=_subject(letter, placed), what=wrong, evidence=placed.where)


def _subject(letter: Letter | None, placed: Placed[Rejected]) -> str:
    if letter is not None and isinstance(letter.value, Command):
        return f"command {letter.value.id}"
    return letter.key if letter is not None else placed.where


def _entries(log: Log, topic: str) -> Iterator[Entry]:
    for (name, _), entries in log.history.log.items():
        if name == topic:
            yield from entries


def _wrong_event(log: Log, refusal: Rejected, entry: Entry | None) -> str:
    if entry is None:
        return "" if not log.whole("attempts") else "refuses an event that does not stand in the log"
    try:
        event = decode(entry.value or b"")
    except ContractError:
        return "" if refusal.error == "undecodable" else f"an event that cannot be read was refused as {refusal.error!r}"
    strange = not isinstance(event, AttemptEvent) or event.home != entry.partition
    true = strange and refusal.error in ("invalid-event", "undecodable")
    return "" if true else f"a worker's event was refused as {refusal.error!r}"


def _wrong_word(log: Log, refusal: Rejected, letter: Letter) -> str:
    """What is wrong with the word; "" if it is so."""
    word = refusal.error
    if word in OF_TEXT or letter.word:
        return "" if word == letter.word else f"refused as {word!r}, it is {letter.word or 'well formed'}"
    if isinstance(letter.value, Job) and word in OF_JOBS:
        return _wrong_of_job(log, word, letter, letter.value)
    if isinstance(letter.value, Command) and word in OF_COMMANDS:
        return _wrong_of_command(log, refusal, letter, letter.value)
    return f"refused as {word!r}, a word that no rule knows for such a record"


# --- definitions ------------------------------------------------------------------------------------------------------


def _wrong_of_job(log: Log, word: str, letter: Letter, job: Job) -> str:
    if word == "key-mismatch":
        return "" if letter.key != job.id else "refused as key-mismatch, its key is its id"
    if word == "unknown-queue":
        topics = {topic for topic, _ in log.history.log}
        there = f"{log.history.prefix}.dispatch.{job.queue}" in topics
        return f"refused as unknown-queue, though {job.queue!r} has its topic" if there else ""
    try:
        known = schedule(job.schedule)
    except ValueError:
        return ""
    if word == "invalid-schedule":
        return f"refused as invalid-schedule, which can be read: {job.schedule:.100}"
    due = next((due for entry in known.entries for due in islice(entry.between(letter.entry.append_ms, _far(letter)), 1)), None)
    return "" if due is None else f"refused as never-due, though it is due at {due}"


def _far(letter: Letter) -> int:
    """Five years on: what is due later is not looked for, and an expression without a date may name none."""
    return min(letter.entry.append_ms + 5 * 366 * 86_400_000, FOREVER)


# --- commands ---------------------------------------------------------------------------------------------------------


def _wrong_of_command(log: Log, refusal: Rejected, letter: Letter, command: Command) -> str:
    word = refusal.error
    if word == "not-active":
        return _wrong_of_cancel(log, refusal, command)
    fits = {
        "unknown-job": command.kind in (CommandKind.TRIGGER, CommandKind.PAUSE, CommandKind.RESUME, CommandKind.DELETE),
        "no-change": command.kind in (CommandKind.PAUSE, CommandKind.RESUME),
        "version-changed": command.kind == CommandKind.DELETE and command.version >= 0,
    }
    if not fits[word]:
        return f"refused as {word!r}, which says nothing of a command to {command.kind}"
    held = _held(log, letter, refusal)
    if word == "unknown-job":
        there = held is not None and held.change != Change.DELETED
        return f"refused as unknown, while version {held.version} held: {command.kind} {command.job}" if there and held else ""
    if not log.by_job.get(command.job):
        return f"refused as {word!r}, and there never was a job {command.job}"
    if held is None:
        return ""
    if word == "no-change":
        same = held.paused == (command.kind == CommandKind.PAUSE)
        return "" if same else f"refused as no-change: {command.kind}, paused was {held.paused}"
    return "" if held.version != command.version else f"refused as version-changed, though version {held.version} held"


def _wrong_of_cancel(log: Log, refusal: Rejected, command: Command) -> str:
    if command.kind != CommandKind.CANCEL:
        return f"refused as not-active, a command to {command.kind}"
    chain = [placed.record for placed in log.runs.get(command.run, ())]
    before = [run for run in chain if run.leader_ms < refusal.leader_ms]
    if not before or any(run.leader_ms == refusal.leader_ms for run in chain) or before[-1].state in ENDS:
        return ""
    state: str = RunState(before[-1].state)
    return f"refused as not-active, while {command.run} was {state}"


def _held(log: Log, letter: Letter, refusal: Rejected) -> JobVersion | None:
    """The version that the ledger had before the refusal was decided, and still had after it; None if that is not plain."""
    assert isinstance(letter.value, Command), "asked of commands only"
    found = [placed.record for placed in log.by_job.get(letter.value.job, ())]
    earlier = [version for version in found if version.leader_ms < refusal.leader_ms]
    if not earlier or any(version.leader_ms == refusal.leader_ms for version in found):
        return None
    held = earlier[-1]
    same_log = held.source_topic == letter.entry.topic and held.source_offset >= letter.entry.offset
    return None if same_log else held
