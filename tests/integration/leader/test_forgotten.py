"""What stands open in `rejected` when a term begins, on a real broker: a stranger's transaction looks like a forgotten one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from dueline.schemas.ledger import Barrier
from tests.broker import TestBroker
from tests.integration.leader.rig import DEADLINE_S, Rig


@pytest.fixture
def stranger(broker: TestBroker, rig: Rig) -> Iterator[Producer]:
    """A client with a record in an open transaction in `rejected`."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{rig.namespace.name}.stranger"}
    producer = Producer(settings)
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(rig.namespace.rejected, b"open", b"open", 0)
    assert producer.flush(DEADLINE_S) == 0
    yield producer
    producer.flush(DEADLINE_S)


def test_a_barrier_of_each_producer_follows_it_and_letters_are_heard_when_it_has_ended(rig: Rig, stranger: Producer) -> None:
    """Given a transaction that stands open in `rejected`, when a term begins, then both of the leader's ids commit something
    there, once; due times go on, and what is refused is heard as soon as nothing is open any more."""
    letters = rig.watch(rig.namespace.rejected)
    admin = rig.cluster.admin()
    assert admin.stands_open((rig.namespace.rejected, 0)) is True
    before = admin.end_offset((rig.namespace.rejected, 0))
    with rig.scheduler():
        rig.publish("often", {"every": "1s"})
        rig.send(rig.namespace.control, None, b"no command")
        ledger = rig.ledger()
        ledger.until(lambda seen: len(seen.runs("often")) >= 3, "due times")
        ledger.until(
            lambda _: admin.end_offset((rig.namespace.rejected, 0)) >= before + 6, "a letter, two barriers and their ends"
        )
        assert letters.records == []
        stranger.abort_transaction(DEADLINE_S)
        letters.until(lambda seen: len(seen.records) >= 3, "a letter and two barriers")
        barriers = [record for record in letters.records if isinstance(record, Barrier)]
        assert len({barrier.id for barrier in barriers}) == len(barriers) == 2
        assert len(letters.rejected()) == 1
        assert admin.stands_open((rig.namespace.rejected, 0)) is False


def test_where_nobody_can_tell_what_stands_open_nothing_is_raised(rig: Rig) -> None:
    admin = rig.cluster.admin()
    assert admin.stands_open((rig.namespace.rejected, 0)) is False
    assert admin.stands_open((rig.namespace.rejected, 7)) is None
    assert admin.stands_open((f"{rig.namespace.name}.nowhere", 0)) is None
