"""What kinds of faults note when they strike and when they do not, without a broker and without processes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from dueline.scheduler.kafka.vocabulary import KafkaError, KafkaException
from proof.faults.endings import AnswerLost, Delayed, Repeated, Trick
from proof.faults.kinds import kills, outages, settings, stalls, transactions
from proof.faults.kinds.kind import Attack, free_child, free_leader
from proof.faults.notes import Notebook
from proof.history.acts import Fault, Role


class Puppet:
    """A process that reaches an armed failpoint or does not."""

    def __init__(self, name: str, *, reaches: bool) -> None:
        self.name, self.role, self.pid, self._reaches = name, Role.SCHEDULER, 7, reaches
        self.runs, self.killed, self.stopped = True, False, False

    def arm(self, text: str) -> None:
        if self._reaches and "=kill" in text:
            self.runs, self.killed = False, True
        self.stopped = self._reaches and "=stop" in text

    def signal(self, _: object) -> None:
        self.stopped = False


class Stage:
    """As much of a world as these kinds touch. Waiting takes no time: what has not happened when it begins does not happen."""

    def __init__(self, *, reaches: bool = True) -> None:
        self.notes = Notebook()
        self.child = Puppet("s1", reaches=reaches)
        self.held: set[str] = set()
        self.healing = False
        self.plan = SimpleNamespace(session_s=1.0, scheduler_fields={"transaction_timeout_s": 5.0})
        self.trick: Trick | None = None
        self.crew = SimpleNamespace(
            expected_dead=set(), back=lambda _: None, kill=lambda _: None, schedulers=[self.child], workers=[], all=[self.child]
        )
        self.links = SimpleNamespace(meddle=self._meddle, do=lambda work: work())

    def leader(self) -> Puppet:
        return self.child

    def hold(self, _: float) -> Generator[float, None, None]:
        yield 0.0

    def until(self, happened: Callable[[], object], _: float) -> Generator[float, None, bool]:
        yield 0.0
        return bool(happened())

    def aside(self, work: Callable[[], Any]) -> Generator[float, None, Any]:
        yield 0.0
        return work()

    def _meddle(self, _: str, make: Callable[[object], Trick | None]) -> None:
        self.trick = make(None) or self.trick


def acted(stage: Any, begin: Callable[[Any, Random], Attack | None]) -> list[Fault]:
    attack = begin(stage, Random(1))
    assert attack is not None
    for _ in attack.acts:
        pass
    return list(stage.notes.faults)


@pytest.mark.parametrize("begin", [kills.kill_leader_inside, stalls.stop_leader_inside, stalls.stop_leader_transaction])
def test_a_failpoint_that_is_not_reached_struck_nothing(begin: Callable[[Any, Random], Attack | None]) -> None:
    [struck] = acted(Stage(reaches=True), begin)
    [missed] = acted(Stage(reaches=False), begin)
    assert (struck.struck, missed.struck) == (True, False)
    assert struck.kind == missed.kind
    assert "was not reached" in missed.detail


def test_a_request_that_does_not_come_is_nothing_to_meddle_with() -> None:
    stage = Stage()
    [missed] = acted(stage, transactions._attack("endtxn-answer-lost", AnswerLost))
    assert (missed.kind, missed.struck) == ("endtxn-answer-lost", False)
    assert stage.trick is not None
    assert stage.trick.done.is_set(), "it was called off"


@pytest.mark.parametrize("struck", [True, False])
def test_a_copy_that_the_broker_refuses_is_noted_as_the_lost_request_that_it_was(struck: bool) -> None:
    def delayed(_: int) -> Trick:
        return played(Delayed(), struck=struck)

    faults = acted(Stage(), transactions._attack("endtxn-delayed", delayed))
    assert [(fault.kind, fault.struck) for fault in faults] == (
        [("endtxn-delayed", True)] if struck else [("endtxn-request-lost", True), ("endtxn-delayed", False)]
    )


@pytest.mark.parametrize("struck", [True, False])
def test_a_repetition_that_the_broker_refuses_struck_nothing(struck: bool) -> None:
    [fault] = acted(Stage(), transactions._attack("endtxn-repeated", lambda _: played(Repeated(), struck=struck)))
    assert (fault.kind, fault.struck, fault.detail) == ("endtxn-repeated", struck, "so it went")


def played(trick: Trick, *, struck: bool) -> Trick:
    trick.begun_ms, trick.struck = 1, struck
    trick.tell("so it went")
    trick.done.set()
    return trick


@pytest.mark.parametrize(
    ("answer", "noted"),
    [
        (None, [("group-deleted", True)]),
        (KafkaError.GROUP_ID_NOT_FOUND, [("group-deleted", True)]),
        (KafkaError.NON_EMPTY_GROUP, [("schedulers-stopped", True), ("group-deleted", False)]),
        (KafkaError._TIMED_OUT, [("group-deleted", True)]),
    ],
)
def test_a_group_counts_as_deleted_unless_the_broker_refuses(
    monkeypatch: pytest.MonkeyPatch, answer: int | None, noted: list[tuple[str, bool]]
) -> None:
    class Admin:
        def delete_consumer_groups(self, groups: list[str], **_: object) -> dict[str, object]:
            return {groups[0]: self}

        def result(self, _: float) -> None:
            if answer is not None:
                raise KafkaException(KafkaError(answer))

    monkeypatch.setattr(f"{settings.__name__}.GROUP_EMPTY_S", 0.05)
    monkeypatch.setattr(f"{settings.__name__}.terminate", lambda *_: iter(()))
    stage: Any = Stage()
    stage.namespace, stage.admin = SimpleNamespace(scheduler_group="g"), Admin
    faults = acted(stage, settings.delete_group)
    assert [(fault.kind, fault.struck) for fault in faults] == noted
    assert ("perhaps" in faults[0].detail) == (answer == KafkaError._TIMED_OUT)


@pytest.mark.parametrize(("count", "struck"), [(2, True), (0, False), (None, False)])
def test_retention_strikes_if_anything_was_there(monkeypatch: pytest.MonkeyPatch, count: int | None, struck: bool) -> None:
    def log(_: object, partitions: list[tuple[str, int]], **__: object) -> dict[tuple[str, int], list[Any]]:
        if count is None:
            raise TimeoutError
        return {where: [SimpleNamespace(offset=offset) for offset in range(count)] for where in partitions[:1]}

    class Admin:
        def delete_records(self, asked: list[Any], **_: object) -> dict[Any, object]:
            return {one: SimpleNamespace(result=lambda _, one=one: SimpleNamespace(low_watermark=one.offset)) for one in asked}

    monkeypatch.setattr(f"{settings.__name__}.ends_of", lambda _, partitions: dict.fromkeys(partitions, 9))
    monkeypatch.setattr(f"{settings.__name__}.read_log", log)
    stage: Any = Stage()
    stage.namespace, stage.admin, stage.kept_log = SimpleNamespace(dispatch=lambda queue: queue, signals="signals"), Admin, {}
    stage.brokers = SimpleNamespace(servers="")
    [fault] = acted(stage, settings.run_out)
    assert (fault.kind, fault.struck) == ("retention-over", struck)
    assert sum(map(len, stage.kept_log.values())) == (count or 0)
    acted(stage, settings.run_out)
    assert sum(map(len, stage.kept_log.values())) == (count or 0), "what is read again is kept once"
    stage.held.add("signals")
    assert settings.run_out(stage, Random(1)) is None, "one at a time"


@pytest.mark.parametrize("leads", [-1, 1])
def test_a_coordinator_that_nobody_names_is_not_moved(monkeypatch: pytest.MonkeyPatch, leads: int) -> None:
    monkeypatch.setattr(f"{outages.__name__}.leader_of", lambda *_: leads)
    monkeypatch.setattr(f"{outages.__name__}.back", lambda *_: iter(()))
    stage: Any = Stage()
    end = lambda _: None  # noqa: E731 - of a broker
    stage.brokers = SimpleNamespace(nodes={1: None}, down=set(), name=lambda node: f"b{node}", kill=end, stop=end)
    [fault] = acted(stage, outages.move_coordinator)
    assert (fault.struck, fault.target) == ((True, "b1") if leads == 1 else (False, ""))


def test_what_a_fault_added_is_hit_by_no_other_fault() -> None:
    """Given a start storm, one of whose standbys leads, then no other fault takes it: it shares links, and goes with its own."""
    stage: Any = Stage()
    added = Puppet("x5", reaches=True)
    stage.crew.all.append(added)
    stage.crew.extras = [added]
    assert {child.name for seed in range(40) if (child := free_child(stage, Random(seed))) is not None} == {"s1"}
    stage.leader = lambda: added
    assert free_leader(stage) is None
    assert {child.name for seed in range(40) if (child := free_child(stage, Random(seed))) is not None} == {"s1"}
