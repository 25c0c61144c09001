"""Virtual threads keep the rules of the real ones, and take no time of the real clock."""

from __future__ import annotations

import time as real_time
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from queue import Empty
from typing import Any

import pytest

from proof.simulation.futures import Future, ThreadPoolExecutor
from proof.simulation.kernel import Host, Kernel
from proof.simulation.threads import SimpleQueue, Threading, Time


class World:
    """A kernel with one host, and what was uncaught there."""

    def __init__(self) -> None:
        self.kernel = Kernel(1)
        self.host = Host("h")
        self.uncaught: list[str] = []
        self.threading = Threading(self.kernel, self.note)
        self.time = Time(self.kernel)

    def note(self, thread: object, error: BaseException) -> None:
        self.uncaught.append(f"{thread}: {error}")

    def run(self, *mains: Callable[[], object], until_s: float = 1000.0) -> None:
        tasks = [self.kernel.spawn(self.host, lambda main=main: main(), f"main{number}") for number, main in enumerate(mains)]  # type: ignore[misc]
        self.kernel.run(until_s)
        for task in tasks:
            if task.error is not None:
                raise task.error


@pytest.fixture
def world() -> World:
    return World()


def test_sleep_takes_virtual_time_only(world: World) -> None:
    seen: list[float] = []

    def main() -> None:
        world.time.sleep(3600)
        seen.extend([world.time.monotonic(), world.time.clock_gettime(world.time.CLOCK_BOOTTIME)])

    began = real_time.monotonic()
    world.run(main, until_s=4000)
    assert seen == [3600, 3600]
    assert real_time.monotonic() - began < 5


def test_the_wall_clock_is_the_hosts(world: World) -> None:
    seen: list[int] = []
    world.host.skew_ms = 5000
    world.run(lambda: seen.append(world.time.time_ns()))
    assert seen == [(world.kernel.epoch_ms + 5000) * 1_000_000]


def test_an_event_wakes_all_who_wait_and_times_out_for_nobody_else(world: World) -> None:
    event, seen = world.threading.Event(), []

    def waiter(timeout: float) -> None:
        seen.append((event.wait(timeout), world.time.monotonic()))

    def setter() -> None:
        world.time.sleep(5)
        event.set()

    world.run(lambda: waiter(2), lambda: waiter(50), lambda: waiter(60), setter)
    assert seen == [(False, 2), (True, 5), (True, 5)]


def test_a_lock_lets_one_in(world: World) -> None:
    lock, inside, most = world.threading.Lock(), [0], [0]

    def main() -> None:
        for _ in range(3):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                world.time.sleep(1)
                inside[0] -= 1

    world.run(main, main, main)
    assert most == [1]
    assert world.time.monotonic() == 1000
    assert not lock.locked()


def test_a_lock_is_not_waited_for_longer_than_asked(world: World) -> None:
    lock, seen = world.threading.Lock(), []

    def holder() -> None:
        with lock:
            world.time.sleep(10)

    def other() -> None:
        world.time.sleep(1)
        seen.append((lock.acquire(blocking=False), lock.acquire(timeout=2), world.time.monotonic()))

    world.run(holder, other)
    assert seen == [(False, False, 3)]


def test_an_rlock_is_taken_again_by_its_owner_only(world: World) -> None:
    lock, order = world.threading.RLock(), []

    def owner() -> None:
        with lock, lock:
            world.time.sleep(5)
        order.append("owner")

    def other() -> None:
        with lock:
            order.append("other")

    world.run(owner, other)
    assert order == ["owner", "other"]


def test_a_queue_gives_in_order_and_once(world: World) -> None:
    queue: SimpleQueue[int] = SimpleQueue(world.kernel)
    seen: list[tuple[int, float]] = []

    def taker() -> None:
        for _ in range(2):
            seen.append((queue.get(timeout=100), world.time.monotonic()))

    def giver() -> None:
        for number in range(4):
            world.time.sleep(1)
            queue.put(number)

    world.run(taker, taker, giver)
    assert seen == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_an_empty_queue_says_so(world: World) -> None:
    queue: SimpleQueue[int] = SimpleQueue(world.kernel)

    def main() -> None:
        with pytest.raises(Empty):
            queue.get_nowait()
        with pytest.raises(Empty):
            queue.get(timeout=3)
        assert world.time.monotonic() == 3

    world.run(main)


def test_a_thread_runs_beside_and_can_be_waited_for(world: World) -> None:
    seen: list[Any] = []

    def work(seconds: float) -> None:
        world.time.sleep(seconds)
        seen.append(world.threading.current_thread().name)

    def main() -> None:
        thread = world.threading.Thread(target=work, args=(5,), name="w", daemon=True)
        thread.start()
        thread.join(1)
        seen.append(thread.is_alive())
        thread.join()
        seen.append((thread.is_alive(), world.time.monotonic()))
        seen.append(world.threading.current_thread() is world.threading.current_thread())

    world.run(main)
    assert seen == [True, "w", (False, 5), True]


def test_an_exception_ends_a_thread_and_is_told(world: World) -> None:
    def broken() -> None:
        raise ValueError("no")

    def main() -> None:
        thread = world.threading.Thread(target=broken, name="b")
        thread.start()
        thread.join()

    world.run(main)
    assert world.uncaught == ["<thread b>: no"]


def test_a_future_has_one_outcome(world: World) -> None:
    future: Future[int] = Future(world.kernel)

    def setter() -> None:
        world.time.sleep(2)
        future.set_result(7)
        with pytest.raises(InvalidStateError):
            future.set_result(8)
        assert not future.cancel()

    def main() -> None:
        with pytest.raises(TimeoutError):
            future.result(1)
        assert future.result(5) == 7
        assert future.exception() is None

    world.run(main, setter)


def test_a_future_raises_what_was_set(world: World) -> None:
    future: Future[int] = Future(world.kernel)
    future.set_exception(KeyError("k"))
    with pytest.raises(KeyError):
        future.result()


def test_a_pool_works_side_by_side_up_to_its_size(world: World) -> None:
    seen: list[tuple[int, float]] = []

    def work(number: int) -> int:
        world.time.sleep(10)
        seen.append((number, world.time.monotonic()))
        if number == 2:
            raise ValueError(number)
        return number

    def main() -> None:
        with ThreadPoolExecutor(world.kernel, world.note, max_workers=2) as pool:
            futures = [pool.submit(work, number) for number in range(3)]
        assert world.time.monotonic() == 20
        assert [future.result() for future in futures[:2]] == [0, 1]
        with pytest.raises(ValueError):
            futures[2].result()

    world.run(main)
    assert seen == [(0, 10), (1, 10), (2, 20)]
    assert world.uncaught == []


def test_a_pool_that_closes_may_cancel_what_waits(world: World) -> None:
    def main() -> None:
        pool = ThreadPoolExecutor(world.kernel, world.note, max_workers=1)
        first, second = pool.submit(world.time.sleep, 5), pool.submit(world.time.sleep, 5)
        world.time.sleep(1)
        pool.shutdown(wait=False, cancel_futures=True)
        assert world.time.monotonic() == 1
        assert second.cancelled()
        with pytest.raises(RuntimeError):
            pool.submit(world.time.sleep, 5)
        first.result()
        assert world.time.monotonic() == 5

    world.run(main)


def test_a_frozen_host_waits_as_a_whole_and_is_woken_as_one(world: World) -> None:
    event, seen = world.threading.Event(), []

    def waiter(timeout: float) -> None:
        seen.append((event.wait(timeout), world.time.monotonic()))

    world.kernel.after(1, lambda: world.kernel.freeze(world.host))
    world.kernel.after(3, event.set)
    world.kernel.after(9, lambda: world.kernel.thaw(world.host))
    world.run(lambda: waiter(2), lambda: waiter(50))
    assert seen == [(True, 9), (True, 9)]
