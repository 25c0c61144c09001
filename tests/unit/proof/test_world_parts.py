"""Processes of a simulated world end, freeze and come back as real ones do; links and requests fail as planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dueline.schemas.codec import encode
from dueline.schemas.ledger import Barrier
from proof.history.acts import Bounds, Fault, Noted, Role
from proof.history.acts import Life as Lived
from proof.history.entry import Entry
from proof.history.history import History
from proof.simulation.archive import Archive
from proof.simulation.broker.cluster import Cluster
from proof.simulation.fence import broken_fence
from proof.simulation.kernel import Host, Kernel
from proof.simulation.network import Link, Network
from proof.simulation.plan import FaultKind, Planned
from proof.simulation.process import Action, Diary, Life, Point, Process
from proof.simulation.protocol import AddOffsets, Answer, EndTxn, Metadata, NewRecord, Request
from proof.simulation.wires import Wires


class Stand:
    """One process under a supervisor. Its program looks up once a second and notes when."""

    def __init__(self, main: Callable[[Life], int] | None = None) -> None:
        self.kernel, self.diary = Kernel(1), Diary()
        self.looks: list[float] = []
        self.process = Process(self.kernel, "s1", Role.SCHEDULER, main or self.look, self.diary)
        self.kernel.after(0.0, self.process.start)

    def look(self, life: Life) -> int:
        while not life.stop.wait(1.0):
            self.looks.append(self.kernel.now_s)
            self.process.reach("loop")
        return 0

    def at(self, at_s: float, act: Callable[[], None]) -> None:
        self.kernel.after(at_s, act)

    def run(self, until_s: float) -> list[str]:
        self.kernel.run(until_s)
        self.kernel.close()
        return [life.how for life in self.diary.lives]


def test_a_killed_process_does_nothing_more_until_it_is_started() -> None:
    stand = Stand()
    stand.at(2.5, stand.process.kill)
    stand.at(9.0, stand.process.start)
    assert stand.run(11.5) == ["SIGKILL"]
    assert stand.looks == [1, 2, 10, 11]
    assert stand.diary.pids == 2


def test_sigterm_ends_it_in_order_and_it_stays_down() -> None:
    stand = Stand()
    stand.at(2.5, stand.process.stop)
    assert stand.run(20) == ["exit 0"]
    assert stand.looks == [1, 2]


def test_a_frozen_process_goes_on_where_it_was() -> None:
    stand = Stand()
    stand.at(2.5, lambda: stand.process.freeze(10.0))
    assert stand.run(14) == []
    assert stand.looks == [1, 2, 12.5, 13.5]


def test_a_process_killed_while_frozen_does_not_thaw() -> None:
    stand = Stand()
    stand.at(2.5, lambda: stand.process.freeze(10.0))
    stand.at(5.0, stand.process.kill)
    assert stand.run(20) == ["SIGKILL"]
    assert stand.looks == [1, 2]


def test_an_exception_is_a_finding_and_the_supervisor_starts_it_again() -> None:
    def broken(_: Life) -> int:
        raise ValueError("no")

    stand = Stand(broken)
    assert stand.run(1.5) == ["ValueError: no", "ValueError: no"]
    assert [line.split(" at ")[0] for line in stand.diary.findings] == ["s1 ended with ValueError: no"] * 2


@pytest.mark.parametrize(
    ("action", "lives", "looks"),
    [(Action.KILL, ["SIGKILL at loop"], [1, 2, 4]), (Action.FREEZE, [], [1, 2, 6]), (Action.STICK, [], [1, 2, 6])],
)
def test_a_failpoint_fires_the_nth_time(action: Action, lives: list[str], looks: list[float]) -> None:
    stand = Stand()

    def arm() -> None:
        assert stand.process.life is not None
        stand.process.life.points["loop"] = Point(action=action, left=2, for_s=3.0)

    stand.at(0.5, arm)
    assert stand.run(6.5) == lives
    assert stand.looks[:3] == looks


def test_the_watchdog_may_end_a_process_that_hangs_and_no_other() -> None:
    stand = Stand()
    stand.at(2.5, stand.process.die)

    def hang() -> None:
        assert stand.process.life is not None
        stand.process.life.hung = True

    stand.at(4.0, hang)
    stand.at(5.0, stand.process.die)
    assert stand.run(5.5) == ["exit 70", "exit 70"]
    assert stand.diary.findings == ["the watchdog ended s1 at 2.5 s, though nothing hung"]


def test_a_clock_that_was_set_stays_so_in_the_next_life() -> None:
    stand, seen = Stand(), []

    def read() -> None:
        assert stand.process.life is not None
        seen.append(stand.kernel.wall_ms(stand.process.life) - stand.kernel.true_ms())

    stand.at(1.0, lambda: stand.process.set_clock(skew_ms=5000.0, drift=2.0))
    stand.at(11.0, read)
    stand.at(11.5, stand.process.kill)
    stand.at(12.0, stand.process.start)
    stand.at(21.0, read)
    stand.run(22)
    assert seen == [5020, 5040]


# --- links and requests -----------------------------------------------------------------------------------------------


class Always:
    """Brokers that answer everything and count it."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.kernel: Kernel

    def up(self, node: int) -> bool:
        return node > 0

    def handle(self, node: int, request: Request, answer: Callable[[Answer], None]) -> None:
        assert (node, bool(request)) == (1, True)
        self.asked.append(round(self.kernel.now_s))
        answer(Answer())


class Net:
    def __init__(self) -> None:
        self.brokers = Always()
        self.kernel = self.brokers.kernel = Kernel(1)
        self.network = Network(self.kernel, self.brokers)
        self.wires = Wires(self.network, [1, 2], seed=1)
        self.host = Host("w1")

    def link(self, node: int) -> Link:
        return self.network.link(self.host, node)

    def ask(self, request: Request) -> list[object]:
        ended: list[object] = []
        self.network.call(self.host, 1, request, ended.append, 60.0)
        self.kernel.run(self.kernel.now_s + 100)
        return ended


def test_faults_of_one_link_add_up_and_end_one_by_one() -> None:
    net = Net()
    cut = Planned(kind=FaultKind.CUT, at_s=0, target="w1>1")
    loss = Planned(kind=FaultKind.LOSE_ANSWERS, at_s=0, target="w1>*")
    net.wires.begin(cut)
    net.wires.begin(loss)
    assert (net.link(1).cut, net.link(1).lose_answers, net.link(2).cut, net.link(2).lose_answers) == (True, True, False, True)
    net.wires.end(cut)
    assert (net.link(1).cut, net.link(1).lose_answers) == (False, True)
    net.wires.end(loss)
    assert net.link(1) == net.link(2) == Link()


def test_a_repeated_request_arrives_twice_and_others_once() -> None:
    net = Net()
    net.wires.begin(Planned(kind=FaultKind.END_REPEATED, at_s=0, target="w1", value=20.0))
    end = EndTxn(transactional_id="t", pid=1, epoch=0, commit=True)
    arrivals = []
    for _ in range(20):
        net.brokers.asked = []
        net.ask(end)
        arrivals.append(len(net.brokers.asked))
    assert set(arrivals) == {1, 2}
    net.brokers.asked = []
    net.ask(Metadata())
    net.ask(AddOffsets(transactional_id="t", pid=1, epoch=0, group="g"))
    assert len(net.brokers.asked) == 2


def test_of_a_retried_end_the_caller_loses_the_connection_and_the_broker_still_gets_it() -> None:
    net = Net()
    net.wires.begin(Planned(kind=FaultKind.END_RETRIED, at_s=0, target="w1", value=7.0))
    outcomes = [net.ask(EndTxn(transactional_id="t", pid=1, epoch=0, commit=False)) for _ in range(20)]
    assert {str(one) for [one] in outcomes} >= {"disconnected"}
    assert len(net.brokers.asked) == 20


def test_nobody_else_is_meddled_with() -> None:
    net = Net()
    net.wires.begin(Planned(kind=FaultKind.END_ANSWER_LOST, at_s=0, target="w2"))
    for _ in range(20):
        assert net.ask(EndTxn(transactional_id="t", pid=1, epoch=0, commit=True)) == [Answer()]


# --- what is said of the log ------------------------------------------------------------------------------------------


def test_the_archive_keeps_what_retention_and_compaction_take() -> None:
    cluster = Cluster(Kernel(1), 1)
    cluster.create_topic("t", 1)
    archive, place = Archive(cluster), ("t", 0)

    def write(key: bytes, value: bytes | None) -> None:
        cluster.log(place).append([NewRecord(key=key, value=value)], 1000)

    write(b"a", b"1")
    write(b"a", b"2")
    archive.compact(place)
    write(b"b", None)
    archive.expire(place)
    write(b"c", b"3")
    assert [(one.offset, one.key, one.value) for one in archive.records(["t"])[place]] == [
        (0, b"a", b"1"), (1, b"a", b"2"), (2, b"b", None), (3, b"c", b"3"),
    ]  # fmt: skip
    standing, _ = cluster.log(place).read(0, True, 100)
    assert [one.offset for one in standing] == [3]


def test_what_was_replaced_before_anybody_read_it_has_never_been() -> None:
    cluster = Cluster(Kernel(1), 1)
    cluster.create_topic("t", 1)
    archive, place = Archive(cluster), ("t", 0)
    for key, value in ((b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"b", None), (b"b", b"3"), (b"c", None)):
        cluster.log(place).append([NewRecord(key=key, value=value)], 1000)
    assert archive.compact(place, read_to=1) == 2
    assert [one.offset for one in archive.records(["t"])[place]] == [0, 1, 4, 5]


def barriers(*of: tuple[int, str], deleted_ms: int = -1) -> History:
    entries = []
    for offset, (generation, process) in enumerate(of):
        barrier = Barrier(id=str(offset), process=process, generation=generation)
        entries.append(
            Entry(topic="d.runs", partition=0, offset=offset, append_ms=1000 * offset, key=barrier.key.encode(),
                  value=encode(barrier))
        )  # fmt: skip
    faults = [] if deleted_ms < 0 else [Fault(kind="group-deleted", target="", began_ms=deleted_ms, ended_ms=deleted_ms)]
    return History(
        title="", seed=0, prefix="d", began_ms=0, judged_ms=0, log={("d.runs", 0): entries}, noted=Noted(faults=tuple(faults)),
        bounds=Bounds(lateness_ms=0, skew_ms=10, worker_timeout_ms=0, session_ms=0),
    )  # fmt: skip


def test_generations_of_leaders_grow_and_each_is_one_process_s() -> None:
    assert broken_fence(barriers((1, "s1"), (1, "s1"), (3, "s2"), (4, "s1"))) == []
    assert len(broken_fence(barriers((1, "s1"), (3, "s2"), (1, "s1")))) == 1
    assert len(broken_fence(barriers((1, "s1"), (3, "s2"), (3, "s1")))) == 1


def test_a_group_that_was_not_deleted_after_all_goes_on() -> None:
    told = barriers((7, "s1"), (1, "s2"), deleted_ms=500)
    missed = replace(told, noted=Noted(faults=tuple(replace(fault, struck=False) for fault in told.noted.faults)))
    assert len(broken_fence(missed)) == 1


def test_a_group_may_be_deleted_at_any_time_of_a_fault_that_lasts() -> None:
    told = barriers((7, "s1"), (8, "s2"), (1, "s2"))
    lasting = replace(told, noted=Noted(faults=(Fault(kind="group-deleted", target="", began_ms=500, ended_ms=1_500),)))
    assert (len(broken_fence(told)), broken_fence(lasting)) == (1, [])


def test_a_deleted_group_begins_anew() -> None:
    assert broken_fence(barriers((7, "s1"), (1, "s2"), deleted_ms=500)) == []
    assert len(broken_fence(barriers((7, "s1"), (1, "s2"), (7, "s1"), (1, "s2"), deleted_ms=500))) == 1


@pytest.mark.parametrize(
    ("expired_ms", "alone_ms", "begins_anew"),
    [
        (400, (300, 900), True),
        (200, (300, 900), True),
        (400, None, False),  # somebody was there all the time
        (1_200, (300, 900), False),  # its offsets stood while nobody was there
        (-500, (300, 900), False),  # a leader has committed others since
    ],
)
def test_a_group_without_members_whose_offsets_expired_begins_anew(
    expired_ms: int, alone_ms: tuple[int, int] | None, begins_anew: bool
) -> None:
    """A barrier at 0, another one of a lower generation at 1,000."""

    def lived(began_ms: int, ended_ms: int) -> Lived:
        return Lived(process="s1", role=Role.SCHEDULER, pid=1, began_ms=began_ms, ended_ms=ended_ms, how="")

    lives = (lived(-900, -1),) if alone_ms is None else (lived(-900, alone_ms[0]), lived(alone_ms[1], -1))
    faults = (Fault(kind="offsets-expired", target="", began_ms=expired_ms, ended_ms=expired_ms),)
    told = replace(barriers((7, "s1"), (1, "s1")), noted=Noted(faults=faults, lives=lives))
    assert (broken_fence(told) == []) is begins_anew
