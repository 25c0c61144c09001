"""A decision as records to write, group by group in the order of L5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dueline.scheduler.core.decision import Decision
from dueline.scheduler.core.ports import Outgoing
from dueline.schemas.codec import Record, encode, headers
from dueline.schemas.command import Rejected
from dueline.schemas.ledger import Barrier
from dueline.schemas.topics import Namespace

REJECTED_PART = 8_192
"""Characters of a dead letter's detail and bytes of its key: a refused key of a megabyte stands in it more than once, and a
letter over the topic's limit would abort every transaction that carries it."""


def outgoing(topic: str, key: str, record: Record, partition: int = 0) -> Outgoing:
    """One record for one partition."""
    return Outgoing(
        topic=topic, key=key.encode(), value=encode(record), headers=headers(record), partition=partition
    )


def barrier_groups(namespace: Namespace, barrier: Barrier) -> list[list[Outgoing]]:
    """A take-over's marker in both topics."""
    return [
        [outgoing(namespace.job_versions, barrier.key, barrier)],
        [outgoing(namespace.runs, barrier.key, barrier)],
    ]


def groups(namespace: Namespace, decision: Decision) -> Sequence[Sequence[Outgoing]]:
    """`job-versions`; `runs`, positions last; then what is derived."""
    versions = [outgoing(namespace.job_versions, version.key, version) for version in decision.versions]
    ledger = [outgoing(namespace.runs, record.key, record) for record in decision.ledger]
    derived = [
        outgoing(namespace.dispatch(record.job.queue), record.run, record, partition)
        for record, partition in zip(decision.dispatches, decision.partitions, strict=True)
    ]
    derived += [
        outgoing(namespace.signals, word.run or word.incarnation, word, home)
        for word, home in zip(decision.signals, decision.homes, strict=True)
    ]
    derived += [
        Outgoing(topic=namespace.rejected, key=record.key, value=encode(record), headers=headers(record), partition=0)
        for record in map(_fitting, decision.rejected)
    ]
    return [group for group in (versions, ledger, derived) if group]


def _fitting(letter: Rejected) -> Rejected:
    detail = letter.detail[:REJECTED_PART].encode(errors="backslashreplace").decode()
    return replace(letter, key=letter.key[:REJECTED_PART], detail=detail)


def too_early(decision: Decision, append_ms: Sequence[tuple[str, int]]) -> str | None:
    """The first ledger record that stands before its due time by the clock of `runs`, as a reason to abort; or None."""
    for key, appended in append_ms:
        due = decision.not_before.get(key)
        if due is not None and appended < due:
            return f"{key} would stand in the ledger {due - appended} ms before its due time: the clock of `runs` went back"
    return None
