"""What stands open in `rejected`, on a real broker: a stranger's transaction looks like one that a broker forgot to end."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from dueline.scheduler.core.ports import Unavailable
from dueline.schemas.ledger import Barrier
from tests.broker import TestBroker
from tests.integration.leader.rig import DEADLINE_S, Rig

LOOK_S = 0.5


@pytest.fixture
def stranger(broker: TestBroker, rig: Rig) -> Producer:
    """A client with a record in an open transaction in `rejected`."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{rig.namespace.name}.stranger"}
    producer = Producer(settings)
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(rig.namespace.rejected, b"open", b"open", 0)
    assert producer.flush(DEADLINE_S) == 0
    return producer


def test_barriers_follow_what_stands_open_in_rejected_and_letters_are_heard_when_it_has_ended(
    rig: Rig, stranger: Producer
) -> None:
    """Given a transaction that stands open in `rejected`, then two barriers follow it and due times go on; what is refused is
    heard as soon as nothing is open any more."""
    rejected, admin, letters = (rig.namespace.rejected, 0), rig.cluster.admin(), rig.watch(rig.namespace.rejected)
    begins = admin.open_from(rejected)
    assert begins is not None
    with rig.scheduler(rejected_look_s=LOOK_S):
        rig.publish("often", {"every": "1s"})
        refused = rig.send(rig.namespace.control, None, b"no command")
        ledger = rig.ledger()
        ledger.until(lambda _: admin.end_offset(rejected) >= begins + 1 + 2 * 3, "a letter and two barriers, each with its end")
        ledger.until(lambda seen: len(seen.runs("often")) >= 3, "due times")
        letters.poll(1.0)
        assert letters.records == []
        assert admin.open_from(rejected) == begins
        stranger.abort_transaction(DEADLINE_S)
        letters.until(lambda seen: len(seen.records) >= 3, "a letter and two barriers")
        barriers = [record for record in letters.records if isinstance(record, Barrier)]
        assert len({barrier.id for barrier in barriers}) == len(barriers) == 2
        assert [(letter.topic, letter.offset) for letter in letters.rejected()] == [(refused.topic, refused.offset)]
        assert admin.open_from(rejected) is None


def test_without_topic_or_partition_nobody_can_tell_what_stands_open(rig: Rig) -> None:
    admin = rig.cluster.admin()
    assert admin.open_from((rig.namespace.rejected, 0)) is None
    for nowhere in ((rig.namespace.rejected, 7), (f"{rig.namespace.name}.nowhere", 0)):
        with pytest.raises(Unavailable, match="missing or has no leader"):
            admin.open_from(nowhere)
