"""Questions that are asked again: one bound for all tries together, and a rest between two of them."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from dueline.scheduler.core.ports import Unavailable
from dueline.scheduler.kafka import admin as module
from dueline.scheduler.kafka.admin import ANSWER_S, FIRST_S, PAUSE_S, KafkaAdmin
from dueline.scheduler.kafka.config import KafkaConfig

SOON_S = 0.001


class Client:
    """A client on a clock of the test's. `slow`: each question takes its whole time-out; else it is answered at once, by the
    wrong broker."""

    def __init__(self, *, slow: bool) -> None:
        self.now_s = 0.0
        self.slow = slow
        self.asked = 0

    def poll(self, timeout_s: float) -> int:
        self.now_s += timeout_s
        return 0

    def _pass(self, bound_s: float) -> None:
        self.asked += 1
        self.now_s += bound_s if self.slow else SOON_S

    def list_topics(self, *, timeout: float) -> Any:
        self._pass(timeout)
        return SimpleNamespace(topics={})

    def list_offsets(self, asked: dict[Any, Any], *, isolation_level: object, request_timeout: float) -> Any:
        assert isolation_level is not None
        self._pass(request_timeout)
        code = KafkaError.LEADER_NOT_AVAILABLE if self.slow else KafkaError.NOT_LEADER_FOR_PARTITION
        return {one: failed(code) for one in asked}

    def describe_topics(self, asked: Any, *, request_timeout: float) -> Any:
        self._pass(request_timeout)
        return {name: failed(KafkaError._TIMED_OUT) for name in asked.topic_names}


def failed(code: int) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


def asking(monkeypatch: pytest.MonkeyPatch, client: Client) -> KafkaAdmin:
    admin = KafkaAdmin(KafkaConfig(bootstrap_servers="127.0.0.1:9"), "test")
    monkeypatch.setattr(admin, "client", client)
    monkeypatch.setattr(module, "monotonic_s", lambda: client.now_s)
    return admin


def test_an_offset_that_no_broker_tells_in_time_is_unavailable_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(slow=True)
    with pytest.raises(Unavailable):
        asking(monkeypatch, client).end_offset(("runs", 0))
    assert client.now_s <= ANSWER_S + 3 * PAUSE_S


def test_a_leader_that_moved_is_looked_for_with_a_rest_between_two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(slow=False)
    with pytest.raises(Unavailable):
        asking(monkeypatch, client).end_offset(("runs", 0))
    assert client.asked <= 2 * (ANSWER_S / PAUSE_S + 2)
    assert client.now_s == pytest.approx(ANSWER_S, abs=0.2)


def test_a_topic_that_no_broker_describes_is_unavailable_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(slow=True)
    with pytest.raises(Unavailable):
        asking(monkeypatch, client).partitions("runs")
    assert (client.now_s, client.asked) == (ANSWER_S, 3)
    assert ANSWER_S > 2 * FIRST_S
