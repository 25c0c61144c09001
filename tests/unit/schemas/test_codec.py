"""The codec's bytes by hand, its errors in words, its headers."""

from __future__ import annotations

import tracemalloc

import pytest

from dueline.schemas.codec import decode, decode_as, encode, headers
from dueline.schemas.command import Command, Rejected
from dueline.schemas.errors import DecodeError
from dueline.schemas.job import Job, JobVersion, Misfire
from dueline.schemas.ledger import Barrier, Fence
from dueline.schemas.registry import released
from dueline.schemas.run import Run, RunJob, RunState
from dueline.schemas.work import Dispatch, Heartbeat, Signal

PREFIX = {name: known.prefix for name, known in released().current.items()}
RUN_JOB = RunJob(id="menu", version=3, queue="kitchen", handler="menu", payload="null")


def test_body_is_plain_avro() -> None:
    # Strings: zigzag length, then utf-8. 300 is zigzag 600 = 0b100_1011000.
    body = b"\x02a" + b"\x04\xc3\xa9" + b"\xd8\x04"
    assert encode(Barrier(id="a", process="é", generation=300)) == PREFIX["Barrier"] + body
    assert decode(PREFIX["Barrier"] + body) == Barrier(id="a", process="é", generation=300)


def test_enum_members_are_written_as_their_values() -> None:
    with_member = Run(job=RUN_JOB, due_ms=0, state=RunState.RUNNING)
    assert encode(with_member) == encode(Run(job=RUN_JOB, due_ms=0, state="running"))
    assert type(decode_as(Run, encode(with_member)).state) is str


def test_decode_as_refuses_another_type() -> None:
    with pytest.raises(DecodeError, match="expected a record of type Run, got a Barrier"):
        decode_as(Run, encode(Barrier(id="a", process="b", generation=1)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "no bytes"),
        (b"{}", "starts with 7b7d, not c301"),
        (b"\xc3\x01abc", "truncated within the schema fingerprint: 5 bytes"),
        (b"\xc3\x01" + bytes(8), "unknown schema fingerprint 0000000000000000"),
        (PREFIX["Barrier"], "damaged record of type Barrier"),
        (PREFIX["Barrier"] + b"\x02\xff\x00\x00", "utf-8"),
        (PREFIX["Barrier"] + b"\x01\x00\x00", "damaged"),  # a length of -1
        (PREFIX["Barrier"] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "damaged"),  # a length of 2**63 - 1
        (PREFIX["Barrier"] + b"\xff" * 40, "damaged"),  # a number that does not end
        (PREFIX["Barrier"] + b"\x00\x00\x00\x00", "followed by 1 bytes"),
    ],
)  # fmt: skip
def test_damage_is_told(value: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(value)


@pytest.mark.parametrize("count", [b"\xfe" + b"\xff" * 8 + b"\x01", b"\xfd" + b"\xff" * 8 + b"\x01"])
def test_an_absurd_count_costs_no_more_memory_than_the_bytes_that_are_there(count: bytes) -> None:
    # Heartbeat: incarnation, worker, queue, home, state, seq, slots, prefetch, handlers, partitions, then claims.
    value = PREFIX["Heartbeat"] + bytes(10) + count + bytes(400_000)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(value)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(value)


def test_headers_let_a_reader_skip() -> None:
    run = Run(job=RUN_JOB, due_ms=0, state=RunState.RUNNING, term=12)
    assert headers(run) == (("type", b"Run"), ("term", b"12"), ("state", b"running"), ("queue", b"kitchen"))
    dispatch = Dispatch(job=RUN_JOB, run="r", due_ms=0, trigger="schedule", attempt=1, term=12, seq=1, ahead=False)
    assert headers(dispatch) == (("type", b"Dispatch"), ("term", b"12"), ("queue", b"kitchen"))
    fence = Fence(incarnation="w.1", worker="w", queue="q", home=1, phase="done", reason="silent", term=-1)
    assert headers(fence) == (("type", b"Fence"), ("term", b"-1"), ("queue", b"q"))
    assert headers(Signal(kind="grant", incarnation="w.1", term=4)) == (("type", b"Signal"), ("term", b"4"))
    assert headers(Rejected(topic="t", partition=0, offset=0, error="e", detail="d"))[0] == ("type", b"Rejected")
    job = Job(id="menu", schedule='"x"', handler="h", queue="kitchen")
    version = JobVersion(job="menu", version=1, change="defined", effective_ms=0, paused=False, definition=job,
                         source_topic="t", source_partition=0, source_offset=0, source_ms=0, term=5)  # fmt: skip
    assert headers(version) == (("type", b"JobVersion"), ("term", b"5"), ("queue", b"kitchen"))


def test_headers_of_what_users_and_workers_write_name_the_type_only() -> None:
    beat = Heartbeat(incarnation="w.1", worker="w", queue="q", home=0, state="running", seq=1, slots=1)
    assert headers(beat) == (("type", b"Heartbeat"),)
    assert headers(Command(id="1", kind="pause")) == (("type", b"Command"),)
    assert headers(Job(id="a", schedule="", handler="h", misfire=Misfire.ALL)) == (("type", b"Job"),)
