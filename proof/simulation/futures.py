"""`concurrent.futures` on the kernel's tasks: same names, same rules, virtual time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, InvalidStateError
from types import TracebackType
from typing import Any, Generic, TypeVar

from greenlet import GreenletExit

from proof.simulation.kernel import Kernel
from proof.simulation.threads import Event, SimpleQueue, Thread, Uncaught

T = TypeVar("T")


class Future(Generic[T]):
    """`concurrent.futures.Future`."""

    __slots__ = ("_callbacks", "_cancelled", "_done", "_error", "_result", "_running")

    def __init__(self, kernel: Kernel) -> None:
        self._done = Event(kernel)
        self._result: T | None = None
        self._error: BaseException | None = None
        self._running = self._cancelled = False
        self._callbacks: list[Callable[[Future[T]], object]] = []

    def done(self) -> bool:
        """Whether it has a result, an exception, or was cancelled."""
        return self._done.is_set()

    def cancelled(self) -> bool:
        """Whether it was."""
        return self._cancelled

    def running(self) -> bool:
        """Whether somebody is at it."""
        return self._running and not self.done()

    def cancel(self) -> bool:
        """Whether nobody had begun."""
        if self._running or (self.done() and not self._cancelled):
            return False
        if not self._cancelled:
            self._cancelled = True
            self._end(None, CancelledError())
        return True

    def set_running_or_notify_cancel(self) -> bool:
        """Whether to go on."""
        self._running = not self._cancelled
        return self._running

    def set_result(self, result: T) -> None:
        """Raises InvalidStateError when it has one."""
        self._end(result, None)

    def set_exception(self, error: BaseException | None) -> None:
        """Raises InvalidStateError when it has a result."""
        self._end(None, error)

    def result(self, timeout: float | None = None) -> T:
        """Raises what was set, or TimeoutError."""
        if not self._done.wait(timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value] # it is done: this is the result, which may be None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Raises TimeoutError."""
        if not self._done.wait(timeout):
            raise TimeoutError
        return self._error

    def add_done_callback(self, call: Callable[[Future[T]], object]) -> None:
        """Called when it is done, at once if it is."""
        if self.done():
            call(self)
        else:
            self._callbacks.append(call)

    def _end(self, result: T | None, error: BaseException | None) -> None:
        if self.done():
            raise InvalidStateError("this future is done")
        self._result, self._error = result, error
        self._done.set()
        for call in self._callbacks:
            call(self)


class ThreadPoolExecutor:
    """`concurrent.futures.ThreadPoolExecutor`: threads start with the work they are needed for."""

    def __init__(self, kernel: Kernel, uncaught: Uncaught, max_workers: int, thread_name_prefix: str = "pool") -> None:
        self._kernel, self._uncaught = kernel, uncaught
        self._most, self._prefix = max_workers, thread_name_prefix
        self._threads: list[Thread] = []
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue(kernel)
        self._idle = 0
        self._closed = False

    def submit(self, call: Callable[..., T], /, *args: Any) -> Future[T]:
        """Raises RuntimeError after `shutdown`."""
        if self._closed:
            raise RuntimeError("the pool takes nothing more")
        future: Future[T] = Future(self._kernel)
        self._queue.put((future, lambda: call(*args)))
        if self._idle < self._queue.qsize() and len(self._threads) < self._most:
            thread = Thread(self._kernel, self._uncaught, self._run, name=f"{self._prefix}_{len(self._threads)}")
            self._threads.append(thread)
            thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more; what waits is carried out, or cancelled."""
        self._closed = True
        while cancel_futures and not self._queue.empty():
            item = self._queue.get_nowait()
            if item is not None:
                item[0].cancel()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def __enter__(self) -> ThreadPoolExecutor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.shutdown()

    def _run(self) -> None:
        while True:
            self._idle += 1
            item = self._queue.get()
            self._idle -= 1
            if item is None:
                return
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except GreenletExit:
                raise
            except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(error)
