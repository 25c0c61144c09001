"""Where a handler's step may write. Asked before the step is committed: a record that Kafka refuses would abort the
transaction, which carries other attempts' steps as well.
"""

from __future__ import annotations

from dueline.scheduler.core.ports import LogAdmin, Unavailable
from dueline.schemas.topics import Namespace


class Targets:
    """Topics of users. Any thread: the set only grows, and a topic asked for twice costs a question more."""

    def __init__(self, admin: LogAdmin, namespace: Namespace) -> None:
        self._admin = admin
        self._namespace = namespace
        self._known: set[str] = set()

    def unwritable(self, topic: str) -> str:
        """Why a handler cannot produce there; "" when it can."""
        if topic in self._known:
            return ""
        if topic.startswith(f"{self._namespace.name}."):
            return f"it is in the namespace {self._namespace.name!r}, whose topics only dueline writes"
        try:
            if self._admin.partitions(topic) == 0:
                return "there is no such topic"
        except Unavailable as error:
            return f"the broker does not answer: {error}"
        self._known.add(topic)
        return ""
