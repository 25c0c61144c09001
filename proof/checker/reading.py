"""What stands in the log, each record decoded once and put where the checks look for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from dueline.schemas.codec import decode
from dueline.schemas.command import Command, Rejected
from dueline.schemas.definition import parse_command, parse_job
from dueline.schemas.errors import ContractError, DecodeError
from dueline.schemas.job import Job, JobVersion
from dueline.schemas.ledger import Barrier, Fence, Positions
from dueline.schemas.run import Run, Summary
from dueline.schemas.work import AttemptEvent, Heartbeat, Step
from proof.checker.blame import Blame
from proof.checker.skew import Skew
from proof.history.acts import Effect, Role
from proof.history.entry import Entry
from proof.history.history import History
from proof.history.verdict import Kind, Violation

T = TypeVar("T")

LedgerRecord = Run | Summary | Barrier | Positions | Fence


@dataclass(frozen=True, slots=True)
class Placed(Generic[T]):
    """A decoded record and the entry it stands in."""

    record: T
    entry: Entry

    @property
    def where(self) -> str:
        """`topic[partition]@offset`, for evidence."""
        return place(self.entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A user's input as the checker reads it. `value` None: a deletion, or (with `error`) something unreadable. `word`: how a
    refusal names that trouble."""

    entry: Entry
    value: Job | Command | None
    error: str = ""
    word: str = ""

    @property
    def key(self) -> str:
        """The record's key as text."""
        return (self.entry.key or b"").decode(errors="replace")


@dataclass(kw_only=True)
class Log:
    """The log of one namespace. `ledger` and `versions` in offset order; so are all lists of one partition."""

    history: History
    jobs: list[Letter] = field(default_factory=list)
    commands: list[Letter] = field(default_factory=list)
    versions: list[Placed[JobVersion | Barrier]] = field(default_factory=list)
    ledger: list[Placed[LedgerRecord]] = field(default_factory=list)
    events: list[Placed[AttemptEvent]] = field(default_factory=list)
    steps: list[Placed[Step]] = field(default_factory=list)
    rejected: list[Placed[Rejected]] = field(default_factory=list)
    troubles: list[Violation] = field(default_factory=list)

    @cached_property
    def skew(self) -> Skew:
        """What comparisons of times are allowed."""
        return Skew(self.history)

    @cached_property
    def blame(self) -> Blame:
        """Which faults explain what."""
        return Blame(self.history)

    @cached_property
    def runs(self) -> dict[str, list[Placed[Run]]]:
        """Each run's records in order, by the record's own key."""
        found: defaultdict[str, list[Placed[Run]]] = defaultdict(list)
        for placed in self.ledger:
            if isinstance(placed.record, Run):
                found[(placed.entry.key or b"").decode(errors="replace")].append(placed)  # type: ignore[arg-type]
        return dict(found)

    @cached_property
    def summaries(self) -> dict[str, list[Placed[Summary]]]:
        """By job, in order."""
        found: defaultdict[str, list[Placed[Summary]]] = defaultdict(list)
        for placed in self.ledger:
            if isinstance(placed.record, Summary):
                found[placed.record.job].append(placed)  # type: ignore[arg-type]
        return dict(found)

    @cached_property
    def by_job(self) -> dict[str, list[Placed[JobVersion]]]:
        """Each job's versions in order of the log."""
        found: defaultdict[str, list[Placed[JobVersion]]] = defaultdict(list)
        for placed in self.versions:
            if isinstance(placed.record, JobVersion):
                found[placed.record.job].append(placed)  # type: ignore[arg-type]
        return dict(found)

    @cached_property
    def finishes(self) -> dict[tuple[str, int], list[Placed[AttemptEvent]]]:
        """Events by run and attempt."""
        found: defaultdict[tuple[str, int], list[Placed[AttemptEvent]]] = defaultdict(list)
        for placed in self.events:
            found[placed.record.run, placed.record.attempt].append(placed)
        return dict(found)

    @cached_property
    def recorded(self) -> dict[tuple[str, str], list[Placed[Step]]]:
        """Step records by run and name."""
        found: defaultdict[tuple[str, str], list[Placed[Step]]] = defaultdict(list)
        for placed in self.steps:
            found[placed.record.run, placed.record.name].append(placed)
        return dict(found)

    @cached_property
    def beats(self) -> list[Placed[Heartbeat]]:
        """Heartbeats; those of one incarnation in order."""
        return records(self, "workers", Heartbeat)

    @cached_property
    def effects(self) -> dict[str, list[Effect]]:
        """What handlers noted, by the run that they named, in order of time."""
        found: defaultdict[str, list[Effect]] = defaultdict(list)
        for effect in sorted(self.history.noted.effects, key=lambda each: each.at_ms):
            found[effect.run].append(effect)
        return dict(found)

    @cached_property
    def last_ms(self) -> int:
        """The latest append time of the ledger."""
        return max((placed.entry.append_ms for placed in self.ledger), default=0)

    @cached_property
    def expired(self) -> frozenset[str]:
        """Words of the topics whose retention ran out in this history, by its faults: `retention` or `compaction` in a fault's
        kind, and the topic in its target ("" or "*": any)."""
        words = {f.target for f in self.history.noted.struck if "retention" in f.kind or "compaction" in f.kind}
        return frozenset(words)

    def whole(self, name: str) -> bool:
        """Whether nothing of this topic has expired, as far as the faults say."""
        return not any(word in ("", "*") or name in word for word in self.expired)

    def was_cut(self, name: str) -> bool:
        """Whether the processes may have found records of this topic gone, though the history may have them all: a fault of the
        kind `records-expired` names it in its detail."""
        faults = (fault for fault in self.history.noted.struck if fault.kind == "records-expired")
        return not self.whole(name) or any(name in fault.detail for fault in faults)


def place(entry: Entry) -> str:
    """`topic[partition]@offset`."""
    return f"{entry.topic}[{entry.partition}]@{entry.offset}"


def read(history: History) -> Log:
    """Decode what the checks need. What cannot be decoded in a topic that only dueline writes is a violation."""
    log = Log(history=history)
    prefix = history.prefix
    for (topic, _), entries in sorted(history.log.items()):
        name = topic.removeprefix(f"{prefix}.") if topic.startswith(f"{prefix}.") else ""
        _order(log, entries)
        if name == "jobs":
            log.jobs += [_job(entry) for entry in entries]
        elif name == "control":
            log.commands += [_command(entry) for entry in entries]
        elif name in _OURS:
            _read_ours(log, name, entries)
    log.rejected.sort(key=lambda placed: placed.entry.offset)
    return log


_OURS: dict[str, tuple[type, ...]] = {
    "job-versions": (JobVersion, Barrier),
    "runs": (Run, Summary, Barrier, Positions, Fence),
    "attempts": (AttemptEvent,),
    "steps": (Step,),
    "rejected": (Rejected, Barrier),
}


def records(log: Log, name: str, kind: type[T]) -> list[Placed[T]]:
    """All of the topics that begin so, as far as they can be read: what cannot is another client's."""
    found: list[Placed[T]] = []
    for (topic, _), entries in log.history.log.items():
        for entry in entries if topic.startswith(f"{log.history.prefix}.{name}") else ():
            try:
                record: object = decode(entry.value or b"")
            except ContractError:
                continue
            if isinstance(record, kind):
                found.append(Placed(record, entry))
    return found


def _order(log: Log, entries: Sequence[Entry]) -> None:
    before = -1
    for entry in entries:
        if entry.offset <= before:
            what = f"offset {entry.offset} follows {before}: the history is not in offset order"
            log.troubles.append(Violation(kind=Kind.ORDER, subject=entry.topic, what=what, evidence=place(entry)))
        before = entry.offset


def _read_ours(log: Log, name: str, entries: Iterable[Entry]) -> None:
    lists: dict[str, list[Any]] = {
        "job-versions": log.versions, "runs": log.ledger, "attempts": log.events, "steps": log.steps,
        "rejected": log.rejected,
    }  # fmt: skip
    target = lists[name]
    kinds = _OURS[name]
    for entry in entries:
        if entry.value is None:
            if name in ("attempts", "steps") and entry.key == b"forgotten":
                _ends_what_stood_open(log, entry, Role.WORKER)
            else:
                _trouble(log, entry, "a record without value")
            continue
        try:
            record = decode(entry.value)
        except ContractError as error:
            _trouble(log, entry, f"cannot be read: {error}")
            continue
        if not isinstance(record, kinds):
            _trouble(log, entry, f"a {type(record).__name__} does not belong here")
            continue
        expected = record.run if isinstance(record, AttemptEvent) else getattr(record, "key", None)
        if not isinstance(record, Rejected) and (entry.key or b"").decode(errors="replace") != expected:
            _trouble(log, entry, f"stands under the key {entry.key!r}, its content is that of {expected}")
        if name == "rejected" and isinstance(record, Barrier):
            _ends_what_stood_open(log, entry, Role.SCHEDULER)
            continue
        target.append(Placed(record, entry))


def _ends_what_stood_open(log: Log, entry: Entry, writers: Role) -> None:
    """It says nothing itself. Something stood open before: a broker forgot to end it, however long ago, or it was a user's or of
    one of those who write there, which a fault had struck."""
    until_ms = entry.append_ms + log.skew.at(entry.append_ms)
    names = {life.process for life in log.history.noted.lives if life.role == writers}
    if not log.blame.explains(names, 0, until_ms):
        _trouble(log, entry, "ends an open transaction, and no fault had left one")


def _trouble(log: Log, entry: Entry, what: str) -> None:
    log.troubles.append(Violation(kind=Kind.UNEXPLAINED, subject=entry.topic, what=what, evidence=place(entry)))


def _job(entry: Entry) -> Letter:
    if entry.value is None:
        return Letter(entry=entry, value=None)
    try:
        return Letter(entry=entry, value=parse_job(entry.value))
    except ContractError as error:
        return Letter(entry=entry, value=None, error=str(error), word=_word(error, "invalid-job"))


def _command(entry: Entry) -> Letter:
    if entry.value is None:
        return Letter(entry=entry, value=None, error="no value", word="empty")
    try:
        return Letter(entry=entry, value=parse_command(entry.value))
    except ContractError as error:
        return Letter(entry=entry, value=None, error=str(error), word=_word(error, "invalid-command"))


def _word(error: ContractError, invalid: str) -> str:
    return "undecodable" if isinstance(error, DecodeError) else invalid
