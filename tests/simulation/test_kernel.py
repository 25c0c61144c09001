"""Virtual time: order, waiting and waking, and what freezing, sticking and killing a host does to its tasks and timers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proof.simulation.kernel import Host, Kernel, Waiters


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel(1)
    yield made
    made.close()


def test_time_jumps_to_what_happens_next_and_stands_still_meanwhile(kernel: Kernel) -> None:
    host, seen = Host("h"), list[tuple[str, float]]()

    def task(name: str, pause_s: float) -> None:
        for _ in range(2):
            kernel.wait(pause_s)
            seen.append((name, kernel.now_s))

    kernel.spawn(host, lambda: task("slow", 3600.0), "slow")
    kernel.spawn(host, lambda: task("quick", 0.5), "quick")
    kernel.run(10_000.0)
    assert seen == [("quick", 0.5), ("quick", 1.0), ("slow", 3600.0), ("slow", 7200.0)]
    assert kernel.now_s == 10_000.0


def test_a_wait_ends_by_waking_or_by_time_and_says_which(kernel: Kernel) -> None:
    host, ends = Host("h"), list[tuple[bool, float]]()
    door = Waiters(kernel)

    def wait_twice() -> None:
        ends.append((door.wait(5.0), kernel.now_s))
        ends.append((door.wait(5.0), kernel.now_s))

    kernel.spawn(host, wait_twice, "waiter")
    kernel.after(2.0, door.wake_all)
    kernel.run(60.0)
    assert ends == [(True, 2.0), (False, 7.0)]


def test_a_wake_that_comes_with_the_end_of_time_counts_once(kernel: Kernel) -> None:
    host, rounds = Host("h"), list[bool]()
    door = Waiters(kernel)

    def waiter() -> None:
        while kernel.now_s < 3.0:
            rounds.append(door.wait(1.0))

    kernel.spawn(host, waiter, "waiter")
    for moment in (1.0, 2.0):
        kernel.after(moment, door.wake_all)
    kernel.run(60.0)
    assert len(rounds) == 3  # at 1, 2 and 3 s, by whatever woke it; never twice for one moment


def test_a_frozen_host_does_nothing_and_catches_up_when_it_is_woken(kernel: Kernel) -> None:
    host, seen = Host("h"), list[tuple[str, float]]()

    def task() -> None:
        while True:
            kernel.wait(1.0)
            seen.append(("task", kernel.now_s))

    kernel.spawn(host, task, "task")
    kernel.after(1.5, lambda: seen.append(("timer", kernel.now_s)), host)
    kernel.after(1.2, lambda: kernel.freeze(host))
    kernel.after(10.0, lambda: kernel.thaw(host))
    kernel.run(11.5)
    assert seen == [("task", 1.0), ("timer", 10.0), ("task", 10.0), ("task", 11.0)]


def test_in_a_stuck_host_only_the_clients_threads_go_on(kernel: Kernel) -> None:
    host, seen = Host("h"), list[tuple[str, float]]()

    def task() -> None:
        kernel.wait(1.0)
        seen.append(("task", kernel.now_s))

    kernel.spawn(host, task, "task")
    kernel.after(1.5, lambda: seen.append(("timer", kernel.now_s)), host)
    kernel.after(0.5, lambda: kernel.stick(host))
    kernel.after(5.0, lambda: kernel.unstick(host))
    kernel.run(10.0)
    assert seen == [("timer", 1.5), ("task", 5.0)]


def test_of_a_killed_host_nothing_runs_any_more_not_even_its_finally(kernel: Kernel) -> None:
    host, seen, deaths = Host("h"), list[str](), list[str]()
    host.on_death.append(lambda: deaths.append(host.name))

    def task() -> None:
        try:
            kernel.wait(100.0)
        finally:
            seen.append("finally")

    kernel.spawn(host, task, "task")
    kernel.after(2.0, lambda: seen.append("timer"), host)
    kernel.after(1.0, lambda: kernel.kill(host))
    kernel.run(200.0)
    assert (seen, deaths) == ([], ["h"])


def test_a_task_that_kills_or_freezes_its_own_host_stops_at_that_line(kernel: Kernel) -> None:
    killed, frozen, seen = Host("killed"), Host("frozen"), list[str]()

    def suicide() -> None:
        kernel.kill(killed)
        seen.append("killed went on")

    def stop() -> None:
        kernel.freeze(frozen)
        seen.append(f"frozen went on at {kernel.now_s}")

    kernel.spawn(killed, suicide, "suicide")
    kernel.spawn(frozen, stop, "stop")
    kernel.after(3.0, lambda: kernel.thaw(frozen))
    kernel.run(10.0)
    assert seen == ["frozen went on at 3.0"]


def test_each_host_has_a_clock_of_its_own(kernel: Kernel) -> None:
    host = Host("h")
    host.skew_ms, host.drift = 3_600_000, 10.0
    kernel.run(60.0)
    assert kernel.wall_ms(host) - kernel.true_ms() == 3_600_000 + 600


def test_an_error_is_kept_with_its_task_and_its_end_is_told(kernel: Kernel) -> None:
    def fail() -> None:
        raise LookupError("gone")

    ends = list[float]()
    task = kernel.spawn(Host("h"), fail, "fails")
    task.enders.append(lambda: ends.append(kernel.now_s))
    kernel.run(1.0)
    assert isinstance(task.error, LookupError)
    assert ends == [0.0]


def test_closing_ends_every_task_whatever_it_waits_for() -> None:
    kernel, left = Kernel(2), list[str]()

    def task() -> None:
        try:
            kernel.wait(None)
        finally:
            left.append("left")
            kernel.wait(1.0)  # a `finally` that wants to wait ends there
            left.append("waited")

    kernel.spawn(Host("h"), task, "task")
    kernel.run(1.0)
    kernel.close()
    assert left == ["left"]
