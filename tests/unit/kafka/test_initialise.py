"""Producers are initialised side by side; what fails leaves no client behind."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import cast

import pytest

from dueline.scheduler.core.ports import Unavailable
from dueline.scheduler.kafka.transaction import TransactionalProducer
from dueline.scheduler.kafka.writers import initialise


class Client:
    """What a call into the client holds while it runs."""


class Producer:
    """Of a TransactionalProducer only what is asked here. `fails`: its `init` does."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.initialised = False
        self.client: weakref.ref[Client] | None = None

    def init(self) -> None:
        client = Client()
        self.client = weakref.ref(client)
        if self.fails:
            raise Unavailable("no answer")
        self.initialised = True


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Only references count: the collector may come late, and in any thread."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
def test_a_failure_is_raised_after_all_have_ended_and_keeps_no_client() -> None:
    producers = [Producer(fails=True), Producer(fails=False)]
    with pytest.raises(Unavailable):
        initialise(cast(list[TransactionalProducer], producers))
    assert producers[1].initialised
    clients = [producer.client for producer in producers]
    assert [client is not None and client() for client in clients] == [None, None]
