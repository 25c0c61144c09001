"""What waits to be served by the application's thread: log lines, error events, delivery reports.

The client's threads only put things in; callbacks run inside poll, flush and the transaction calls, never elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from dueline.scheduler.kafka.vocabulary import KafkaException
from proof.simulation.kernel import Kernel, Waiters

Event = Callable[[], None]


class Events:
    """One client's queue. An event may raise; those behind it wait for the next call."""

    def __init__(self, kernel: Kernel) -> None:
        self._events: deque[tuple[Event, Event | None]] = deque()
        self.changed = Waiters(kernel)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event, swallowed: Event | None = None) -> None:
        """Put one in, and wake who waits for it. `swallowed`: what happens in its place when one before it raised."""
        self._events.append((event, swallowed))
        self.changed.wake_all()

    def serve(self) -> int:
        """All that are there; how many."""
        if not self._events:
            return 0
        count = 0
        while self._events:
            event, _ = self._events.popleft()
            try:
                event()
            except KafkaException:
                self._swallow()
                raise
            count += 1
        return count

    def _swallow(self) -> None:
        """A fatal error was raised: delivery reports that stand behind it reach nobody, as in the real client."""
        left, self._events = self._events, deque()
        for event, swallowed in left:
            if swallowed is None:
                self._events.append((event, None))
            else:
                swallowed()
