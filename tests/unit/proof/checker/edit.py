"""A valid history, changed at one place: what every mutation is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from dueline.schemas.codec import Record, decode, encode
from dueline.schemas.command import Rejected
from dueline.schemas.errors import ContractError
from dueline.schemas.run import Run
from dueline.schemas.work import AttemptEvent
from proof.history.acts import Effect, Outcome
from proof.history.entry import Entry
from proof.history.history import History, Partition
from tests.unit.proof.checker.honest import REJECTED, RUNS

Broken = Iterator[tuple[str, History]]
LEDGER: Partition = (RUNS, 0)
HOUR_MS = 3_600_000


@lru_cache(maxsize=65_536)
def _decoded(value: bytes) -> Record:
    return decode(value)


def record_of(entry: Entry) -> Record:
    assert entry.value is not None
    return _decoded(entry.value)


def chains(history: History) -> dict[str, list[tuple[int, Run]]]:
    """Each judged run's records with their places in the ledger."""
    found: defaultdict[str, list[tuple[int, Run]]] = defaultdict(list)
    for place, entry in enumerate(history.log[LEDGER]):
        record = record_of(entry)
        if isinstance(record, Run) and record.due_ms <= history.judged_ms:
            found[record.key].append((place, record))
    return dict(found)


def with_entries(history: History, partition: Partition, entries: Sequence[Entry]) -> History:
    return replace(history, log={**history.log, partition: tuple(entries)})


def without(history: History, partition: Partition, *places: int) -> History:
    kept = [entry for place, entry in enumerate(history.log[partition]) if place not in places]
    return with_entries(history, partition, kept)


def changed(history: History, partition: Partition, place: int, record: Record | None = None, **fields: object) -> History:
    """Another record under its own key at this place, and other fields of the entry."""
    entries = list(history.log[partition])
    if record is not None:
        key = record.run if isinstance(record, AttemptEvent) else getattr(record, "key", None)
        fields = {"value": encode(record), "key": key.encode() if isinstance(key, str) else entries[place].key, **fields}
    entries[place] = replace(entries[place], **fields)  # type: ignore[arg-type]
    return with_entries(history, partition, entries)


def doubled(history: History, partition: Partition, place: int) -> History:
    """The record once more: right behind itself where offsets leave room, else at the end."""
    entries = list(history.log[partition])
    after = entries[place + 1].offset if place + 1 < len(entries) else 1 << 60
    if entries[place].offset + 1 < after:
        entries.insert(place + 1, replace(entries[place], offset=entries[place].offset + 1))
    else:
        entries.append(replace(entries[place], offset=entries[-1].offset + 1, append_ms=entries[-1].append_ms))
    return with_entries(history, partition, entries)


def swapped(history: History, partition: Partition, one: int, other: int) -> History:
    """What stands at one place stands at the other; offsets and append times stay."""
    entries = list(history.log[partition])
    a, b = entries[one], entries[other]
    entries[one] = replace(a, key=b.key, value=b.value)
    entries[other] = replace(b, key=a.key, value=a.value)
    return with_entries(history, partition, entries)


def cut_short(history: History, key: str, place: int, record: Run) -> History:
    """This record is the run's last one: nothing of later attempts, nor of its end, is there."""
    entries = list(history.log[LEDGER])
    later = [n for n in range(place + 1, len(entries)) if (entries[n].key or b"").decode() == key]
    broken = without(changed(history, LEDGER, place, record), LEDGER, *later)
    effects = [each for each in history.noted.effects if each.run != key or each.attempt <= record.attempt]
    for partition, of_it in history.log.items():
        if partition[0] not in (RUNS, REJECTED):
            gone = [n for n, entry in enumerate(of_it) if _is_later(entry, key, record.attempt)]
            broken = without(broken, partition, *gone) if gone else broken
    return with_effects(broken, effects)


def _is_later(entry: Entry, key: str, attempt: int) -> bool:
    if (entry.key or b"").decode(errors="replace").partition("/")[0] != key or entry.value is None:
        return False
    try:
        return bool(getattr(record_of(entry), "attempt", -1) > attempt)
    except ContractError:
        return False


def forgotten(history: History, key: str) -> History:
    """Nothing of this run was ever there."""
    broken = history
    for partition, entries in history.log.items():
        gone = [n for n, entry in enumerate(entries) if (entry.key or b"").decode(errors="replace").partition("/")[0] == key]
        broken = without(broken, partition, *gone) if gone else broken
    return with_effects(broken, [effect for effect in history.noted.effects if effect.run != key])


def refusing(history: History, source: tuple[str, int, int], word: str, leader_ms: int) -> History:
    """One more refusal, of the record that stands there."""
    entries = history.log.get((REJECTED, 0), ())
    terms = [record.term for record in map(record_of, entries) if isinstance(record, Rejected)]
    ledger = [record.term for record in map(record_of, history.log[LEDGER]) if isinstance(record, Run)]
    term = max([*terms, *ledger])
    topic, partition, place = source
    refusal = Rejected(
        topic=topic, partition=partition, offset=place, error=word, detail="", term=term, leader_ms=leader_ms
    )
    offset, append_ms = (entries[-1].offset + 1 if entries else 0), leader_ms + 1
    entry = Entry(topic=REJECTED, partition=0, offset=offset, append_ms=append_ms, key=b"", value=encode(refusal))
    return with_entries(history, (REJECTED, 0), [*entries, entry])


def with_effects(history: History, effects: Sequence[Effect]) -> History:
    return replace(history, noted=replace(history.noted, effects=tuple(effects)))


def effects_changed(history: History, change: Callable[[Effect], Effect]) -> Broken:
    """Each effect of a judged run, changed."""
    effects = history.noted.effects
    for place, effect in enumerate(effects):
        if effect.due_ms <= history.judged_ms:
            yield f"effect {place}", with_effects(history, [*effects[:place], change(effect), *effects[place + 1 :]])


def places_of(history: History, partition: Partition, kind: type) -> Iterator[tuple[int, Record]]:
    for place, entry in enumerate(history.log.get(partition, ())):
        if isinstance(record_of(entry), kind):
            yield place, record_of(entry)


def is_judged(history: History, record: Record) -> bool:
    due = {"Run": "due_ms", "Summary": "last_ms"}.get(type(record).__name__)
    return due is None or getattr(record, due) <= history.judged_ms


def of_topic(history: History, topic: str) -> Iterator[tuple[Partition, int]]:
    for partition, entries in history.log.items():
        if partition[0] == topic:
            yield from ((partition, place) for place in range(len(entries)))


def steps_of(history: History) -> Iterator[tuple[Partition, int, str]]:
    judged = chains(history)
    for partition, place in of_topic(history, RUNS.replace("runs", "steps")):
        run = getattr(record_of(history.log[partition][place]), "run", "")
        if run in judged:
            yield partition, place, run


def forget_answers(history: History) -> History:
    """Every publication landed, and nobody was told."""
    published = tuple(replace(each, outcome=Outcome.UNKNOWN, offset=-1) for each in history.noted.published)
    return replace(history, noted=replace(history.noted, published=published))
