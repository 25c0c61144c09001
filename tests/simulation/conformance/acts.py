"""What a puppet can do: functions of its bench and of the clients it holds. Arguments and results are plain JSON."""

from __future__ import annotations

from typing import Any

from dueline.scheduler.kafka.capture import Metadata
from tests.simulation.conformance.bench import Bench
from tests.simulation.conformance.member import Member
from tests.simulation.conformance.writer import Writer

Held = dict[str, Any]


def join(bench: Bench, held: Held, group: str, topic: str, session_ms: int) -> list[str]:
    """Become a member and poll until the first assignment; the events so far."""
    member = held["member"] = Member(bench, group, topic, session_timeout_ms=session_ms, max_poll_interval_ms=30_000)
    member.until_assigned()
    return member.take()


def poll(_bench: Bench, held: Held, seconds: float) -> list[str]:
    """Poll for so long; the events since the last question."""
    held["member"].poll_for(seconds)
    return held["member"].take()


def captured(_bench: Bench, held: Held) -> list[Any]:
    """What was captured in the last assign callback: the raw bytes, in hexadecimal."""
    raw = held["member"].captured
    return [raw.hex(), Metadata.parse(raw).generation]


def begin(bench: Bench, held: Held, transactional_id: str, topic: str, value: str, timeout_ms: int) -> str:
    """Initialise the id, begin, and flush one record."""
    writer = held["writer"] = Writer(bench, transactional_id, timeout_ms=timeout_ms)
    return " ".join([writer.begin(), *writer.write(topic, value)])


def commit(_bench: Bench, held: Held) -> str:
    """Commit what is open."""
    return held["writer"].commit()
