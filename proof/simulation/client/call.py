"""librdkafka's rule for the transaction calls: one at a time, each may be called again to go on after its time ran out."""

from __future__ import annotations

from collections.abc import Callable

from dueline.scheduler.kafka.vocabulary import KafkaError
from proof.simulation.client.errors import kafka_error
from proof.simulation.kernel import Kernel, Waiters

RETRY, PERMANENT, FATAL = "retry", "permanent", "fatal"


class Call:
    """The call under way. Its work goes on in the background when the caller's time is over, and its result waits for the next
    call of the same name."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._ended = Waiters(kernel)
        self.name = ""
        self._calling = False
        self._has_result = False
        self._error: KafkaError | None = None

    def begin(self, name: str) -> KafkaError | None:
        """Why it may not be called now."""
        if self.name and self.name != name:
            return kafka_error(
                KafkaError._CONFLICT, f"Conflicting {self.name} API call is already in progress", retriable=True
            )
        if self._calling:
            return kafka_error(
                KafkaError._PREV_IN_PROGRESS, f"Simultaneous {self.name} API calls not allowed", retriable=True
            )
        self.name, self._calling = name, True
        return None

    def wait(self, operation: Callable[[], None], until_s: float) -> KafkaError | None:
        """Start the operation, unless a result waits already; its result, or `_TIMED_OUT`."""
        if not self._has_result:
            operation()
        while not self._has_result:
            left_s = until_s - self._kernel.now_s
            if left_s <= 0:
                return kafka_error(
                    KafkaError._TIMED_OUT, "Timed out waiting for operation to finish, retry call to resume", retriable=True
                )
            self._ended.wait(left_s)
        self._has_result = False
        error, self._error = self._error, None
        return error

    def end(self, error: KafkaError | None, *, resumable: bool) -> KafkaError | None:
        """Return from the call. A resumable one that failed retriably stays the one under way."""
        self._calling = False
        if not resumable or error is None or not error.retriable():
            self.name, self._error = "", None
        return error

    def pause(self) -> None:
        """Leave the call because something was raised inside: it stays the one under way."""
        self._calling = False

    def finish(self, error: KafkaError | None = None, action: str = "") -> None:
        """The operation's result."""
        if not self.name:
            return
        self._has_result = True
        if self._error is not None:
            return
        if error is not None and action:
            error = kafka_error(
                error.code(),
                error.str(),
                fatal=action == FATAL,
                requires_abort=action == PERMANENT,
                retriable=action == RETRY,
            )
        self._error = error
        self._ended.wake_all()
