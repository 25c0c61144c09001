"""What the workload sends: definitions that stand, cancels of what is alive, records that must be refused."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from dueline.scheduler.core.schedule.compile import compile_schedule
from dueline.scheduler.core.schedule.errors import ScheduleError
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.definition import parse_command, parse_job
from dueline.schemas.errors import ContractError
from dueline.schemas.topics import Namespace
from proof.faults import handlers, workload
from proof.faults.crew import HANDLERS
from proof.faults.workload import NOBODY, Workload, absurd_commands, absurd_definitions, fixed_jobs

ACTS = 600


class Sink:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes | None, bytes | None]] = []

    def send(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self.sent.append((topic, key, value))


def commands(sink: Sink) -> list[Command]:
    found = []
    for topic, _, value in sink.sent:
        if topic == "p.control" and value is not None:
            try:
                found.append(parse_command(value))
            except ContractError:
                continue
    return found


def worked(alive: list[str], seed: int = 1) -> Sink:
    sink: Any = Sink()
    made = Workload(Random(seed), sink, Namespace("p"), lambda: alive)
    made.begin()
    for _ in range(ACTS):
        made.act()
    return sink


def test_every_job_can_be_accepted_and_every_handler_is_used() -> None:
    definitions = [parse_job(json.dumps({"id": job.id, "schedule": job.schedule, "handler": job.handler, **job.fields}).encode())
                   for job in fixed_jobs()]  # fmt: skip
    for job in definitions:
        compile_schedule(job.schedule, job_id=job.id)
    assert {job.handler for job in definitions} == set(HANDLERS)
    assert all(callable(vars(handlers)[name]) for name in HANDLERS)
    assert {job.max_worker_losses for job in definitions} >= {0, 1, 1000}
    assert any(job.timeout_ms == 2_000 for job in definitions)


def test_the_same_seed_sends_the_same() -> None:
    assert commands(worked(["trek@x"])) == commands(worked(["trek@x"]))
    assert commands(worked(["trek@x"], seed=2)) != commands(worked(["trek@x"]))


def test_only_what_is_alive_and_may_be_cancelled_is() -> None:
    sent = commands(worked(["tick@1", "trek@1", "sleepy@2"]))
    cancels = [command.run for command in sent if command.kind == CommandKind.CANCEL]
    assert set(cancels) - {"by-hand@1999-01-01T00:00:00Z"} == {"trek@1", "sleepy@2"}
    none = [command.run for command in commands(worked([])) if command.kind == CommandKind.CANCEL]
    assert set(none) == {"by-hand@1999-01-01T00:00:00Z"}, "the absurd one"


def test_a_trigger_is_sent_twice_under_one_id() -> None:
    ids = [command.id for command in commands(worked([])) if command.kind == CommandKind.TRIGGER and command.job == "by-hand"]
    assert len(set(ids)) < len(ids)


def test_what_nobody_can_do_is_let_go_until_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    sink: Any = Sink()
    alive, now_s = [f"{NOBODY}-1@x", "trek@x"], [100.0]
    monkeypatch.setattr(f"{workload.__name__}.time.monotonic", lambda: now_s[0])
    made = Workload(Random(1), sink, Namespace("p"), lambda: alive)
    for after_s in (0.0, 1.0, 5.0):
        now_s[0] = 100.0 + after_s
        made.let_go()
    alive.clear()
    now_s[0] = 200.0
    made.let_go()
    assert [command.run for command in commands(sink)] == [f"{NOBODY}-1@x"] * 2


@pytest.mark.parametrize("number", range(len(absurd_definitions())))
def test_an_absurd_definition_cannot_be_accepted(number: int) -> None:
    key, value = absurd_definitions()[number]
    try:
        job = parse_job(value)
    except ContractError:
        return
    if job.id.encode() == key:
        with pytest.raises(ScheduleError):
            compile_schedule(job.schedule, job_id=job.id)


def test_an_absurd_command_cannot_be_obeyed() -> None:
    read = []
    for value in absurd_commands("c1"):
        try:
            read.append(parse_command(value))
        except ContractError:
            continue
    assert {command.job or command.run for command in read} == {"no-such-job", "by-hand@1999-01-01T00:00:00Z"}
