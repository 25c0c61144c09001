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


def outgoing(topic: str, key: str, record: Record, partition: int = 0, *, derived: bool = False) -> Outgoing:
    """One record for one partition."""
    return Outgoing(
        topic=topic, key=key.encode(), value=encode(record), headers=headers(record), partition=partition, derived=derived
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
        outgoing(namespace.dispatch(record.job.queue), record.run, record, partition, derived=True)
        for record, partition in zip(decision.dispatches, decision.partitions, strict=True)
    ]
    derived += [
        outgoing(namespace.signals, word.run or word.incarnation, word, home, derived=True)
        for word, home in zip(decision.signals, decision.homes, strict=True)
    ]
    derived += [letter_outgoing(namespace, letter) for letter in decision.rejected]
    return [group for group in (versions, ledger, derived) if group]


def without_letters(namespace: Namespace, records: Sequence[Sequence[Outgoing]]) -> Sequence[Sequence[Outgoing]]:
    """The groups without dead letters."""
    kept = [[record for record in group if record.topic != namespace.rejected] for group in records]
    return [group for group in kept if group]


def letter_outgoing(namespace: Namespace, letter: Rejected) -> Outgoing:
    """A dead letter, of a size that its topic takes."""
    detail = letter.detail[:REJECTED_PART].encode(errors="backslashreplace").decode()
    record = replace(letter, key=letter.key[:REJECTED_PART], detail=detail)
    return Outgoing(
        topic=namespace.rejected, key=record.key, value=encode(record), headers=headers(record), partition=0, derived=True
    )
