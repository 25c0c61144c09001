"""A command that the leader has read, and of which neither an effect nor a refusal can be seen: it is never told as a success."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dueline.scheduler.cli.errors import ExitCode
from dueline.scheduler.cli.main import run
from dueline.scheduler.cli.session import Session
from dueline.scheduler.core.ports import Delivered, Outgoing, Partition, Received
from dueline.schemas.codec import decode, encode
from dueline.schemas.command import Command, Rejected
from dueline.schemas.definition import parse_job
from dueline.schemas.job import Change, JobVersion
from dueline.schemas.ledger import Position, Positions
from dueline.schemas.run import Run, RunJob, RunState, run_key
from dueline.schemas.topics import Namespace
from tests.unit.audit.worlds import EPOCH, make_version

NS = Namespace("t")
RUNNING = Run(
    job=RunJob(id="menu", version=1, queue="q", handler="h", payload=""), due_ms=EPOCH, state=RunState.RUNNING, term=1
)
Entry = JobVersion | Run | Rejected | Positions
Leader = Callable[[Command | None, Delivered], list[tuple[str, Entry]]]


class World:
    """A log in memory with a leader that answers at once: ports `Kafka`, `LogAdmin` and `PlainWriter`, as far as they are asked.

    It records that it has read what was sent, and whatever `leader` adds."""

    def __init__(self, leader: Leader = lambda _command, _at: []) -> None:
        self.logs: dict[str, list[Received]] = defaultdict(list)
        self.leader = leader
        self.held_from: dict[str, int] = {}  # a transaction that stands open there

    def put(self, topic: str, key: str, value: bytes) -> Delivered:
        log = self.logs[topic]
        log.append(Received(topic=topic, partition=0, offset=len(log), append_ms=EPOCH, key=key.encode(), value=value))
        return Delivered(topic=topic, partition=0, offset=len(log) - 1, append_ms=EPOCH)

    def send(self, record: Outgoing, on_delivery: Callable[[Delivered | None, str], None]) -> None:
        at = self.put(record.topic, "", record.value or b"")
        command = decode(record.value or b"")
        answers = self.leader(command if isinstance(command, Command) else None, at)
        read = Position(topic=at.topic, topic_id="id", partition=0, offset=at.offset + 1)
        for topic, answer in [*answers, (NS.runs, Positions(positions=[read]))]:
            self.put(topic, answer.key if not isinstance(answer, Rejected) else "", encode(answer))
        on_delivery(at, "")

    def admin(self) -> World:
        return self

    def plain_writer(self, _: str) -> World:
        return self

    def log_reader(self, _: str) -> Reader:
        return Reader(self)

    def flush(self, _: float) -> int:
        return 0

    def close(self) -> None:
        pass

    def partitions(self, _: str) -> int:
        return 1

    def start_offset(self, _: Partition) -> int:
        return 0

    def end_offset(self, partition: Partition) -> int:
        return len(self.logs[partition[0]])

    def read_range(self, partition: Partition, start: int, end: int, *, timeout_s: float) -> Iterator[Received]:  # noqa: ARG002
        return iter(self.logs[partition[0]][start:end])


class Reader:
    """Port `LogReader`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._positions: dict[Partition, int] = {}

    def assign(self, starts: Mapping[Partition, int]) -> None:
        self._positions = dict(starts)

    def poll(self, _timeout_s: float, _limit: int) -> list[Received]:
        found: list[Received] = []
        for (topic, number), position in self._positions.items():
            fresh = self._world.logs[topic][position : self._world.held_from.get(topic)]
            self._positions[topic, number] = position + len(fresh)
            found += fresh
        return found

    def position(self, partition: Partition) -> int:
        return self._positions[partition]

    def close(self) -> None:
        pass


def letter(command: Command | None, at: Delivered) -> list[tuple[str, Entry]]:
    """The leader refuses it, in the transaction that records that it was read."""
    detail = f"there is no job {command.job!r}" if command else "not this one"
    refused = Rejected(
        topic=at.topic, partition=0, offset=at.offset, error="unknown-job", detail=detail, key=b"", value=b"", term=1, leader_ms=1
    )
    return [(NS.rejected, refused)]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in a world: exit code and what it said."""

    def call(world: World, *line: str) -> tuple[int, str, str]:
        @contextmanager
        def cluster(_: Session) -> Iterator[World]:
            yield world

        monkeypatch.setattr(Session, "cluster", cluster)
        code = run(["-n", "t", *line])
        streams = capsys.readouterr()
        return int(code), streams.out, streams.err

    return call


LINES = [
    *("jobs pause NOBODY", "jobs resume NOBODY", "jobs delete NOBODY"),
    *("trigger NOBODY", "trigger NOBODY --wait", "cancel NOBODY@x"),
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("where", ["not written yet", "behind an open transaction"])
def test_a_refusal_that_cannot_be_read_yet_is_no_success(line: str, where: str, command: Any) -> None:
    world = World()
    if where == "behind an open transaction":
        world.leader, world.held_from = letter, {NS.rejected: 0}
    code, out, err = command(world, *line.split(), "--wait-timeout", "0.1")
    assert (code, out) == (ExitCode.NO_ANSWER, "")
    assert "was read by the leader; no effect and no refusal seen yet" in err
    assert "dueline rejected" in err
    code, out, _ = command(world, *line.split(), "--wait-timeout", "0.1", "--json")
    assert (code, json.loads(out)["outcome"]) == (ExitCode.NO_ANSWER, "unconfirmed")


@pytest.mark.parametrize("line", LINES)
def test_one_that_can_be_read_is_told(line: str, command: Any) -> None:
    code, out, err = command(World(letter), *line.split(), "--wait-timeout", "5")
    assert (code, out) == (ExitCode.PROBLEM, "")
    assert "was refused (unknown-job)" in err


def test_a_command_that_nobody_read_is_told_apart(command: Any) -> None:
    world = World()
    world.held_from = {NS.runs: 0}
    code, _, err = command(world, "jobs", "pause", "menu", "--wait-timeout", "0.1")
    assert code == ExitCode.NO_ANSWER
    assert "no scheduler took it up" in err


def test_accepted_positions_need_no_other_sign_than_that_they_were_read(command: Any) -> None:
    code, out, _ = command(World(), "accept-positions", "t.jobs", "--json")
    assert (code, json.loads(out)["outcome"]) == (ExitCode.OK, "taken-up")


def test_what_an_earlier_command_did_stands_in_the_ledger(command: Any) -> None:
    """The leader writes nothing the second time."""
    world = World()
    made = replace(RUNNING, due_ms=0, command="deploy-7", state=RunState.WAITING)
    asked = replace(RUNNING, recall="cancel:by ann")
    assert made.key == run_key("menu", 0, "deploy-7")
    for one in (made, asked):
        world.put(NS.runs, one.key, encode(one))
    code, out, _ = command(world, "trigger", "menu", "--id", "deploy-7", "--json")
    assert (code, json.loads(out)["run"], json.loads(out)["outcome"]) == (ExitCode.OK, made.key, "made")
    assert command(world, "trigger", "menu", "--id", "deploy-8")[0] == ExitCode.NO_ANSWER
    code, out, _ = command(world, "cancel", asked.key, "--json")
    assert (code, json.loads(out)["outcome"]) == (ExitCode.OK, "asked")


def test_a_run_that_an_earlier_command_made_and_that_has_ended_is_not_waited_for(command: Any) -> None:
    world = World()
    ended = replace(RUNNING, due_ms=0, command="deploy-7", state=RunState.SUCCEEDED, finished_ms=EPOCH)
    world.put(NS.runs, ended.key, encode(ended))
    code, out, err = command(world, "trigger", "menu", "--id", "deploy-7", "--wait")
    assert (code, out.strip(), err.strip()) == (ExitCode.OK, ended.key, "succeeded")


def test_a_definition_without_a_version_or_a_refusal_is_unconfirmed_unless_it_holds(tmp_path: Path, command: Any) -> None:
    text = '{"id": "menu", "schedule": {"every": "1m"}, "handler": "h"}'
    file = tmp_path / "jobs.yaml"
    file.write_text(text)
    line = ("jobs", "apply", str(file), "--json", "--wait-timeout", "0.1")
    code, out, err = command(World(), *line)
    assert (code, json.loads(out)[0]["result"]) == (ExitCode.NO_ANSWER, "unconfirmed")
    assert "no effect and no refusal seen yet: menu" in err

    def by_another(_: Command | None, __: Delivered) -> list[tuple[str, Entry]]:
        version = replace(make_version(3, EPOCH, "", change=Change.DEFINED), definition=parse_job(text.encode()), source_offset=7)
        return [(NS.job_versions, version)]

    code, out, _ = command(World(by_another), *line)
    assert (code, json.loads(out)[0]["result"], json.loads(out)[0]["version"]) == (ExitCode.OK, "unchanged", 3)
