"""Nodes die, stop, return; partitions and coordinators move; nothing acknowledged is lost."""

from __future__ import annotations

import pytest

from proof.simulation.broker import codes
from proof.simulation.kernel import Host
from proof.simulation.network import Network
from proof.simulation.protocol import (
    Answer,
    CoordinatorAnswer,
    Fetch,
    FetchAnswer,
    FindCoordinator,
    InitProducerId,
    Metadata,
    MetadataAnswer,
    NewRecord,
    Produce,
    ProduceAnswer,
    ProducerIdAnswer,
)
from tests.simulation.broker.driver import P0, P1, Driver, join, settle


def plain(value: str) -> Produce:
    record = NewRecord(key=None, value=value.encode())
    return Produce(partition=P0, records=(record,), pid=-1, epoch=-1, sequence=-1, transactional=False)


def test_one_node_comes_back_with_everything_it_had() -> None:
    driver = Driver()
    member, writer = driver.member(), driver.writer()
    settle(member)
    writer.write("a")
    writer.add()
    writer.put("b")
    driver.cluster.kill(1)
    assert not driver.cluster.up(1)
    assert not driver.send(plain("x"), node=1).answered()
    driver.wait(60.0)
    driver.cluster.start(1)
    driver.wait(1.0)
    assert not driver.cluster.up(1)
    driver.wait(4.0)
    assert driver.cluster.up(1)
    assert driver.values() == ["a"]
    assert writer.end() == 0
    assert driver.values() == ["a", "b"]


def test_sessions_begin_anew_after_a_restart() -> None:
    driver = Driver(start_s=(1.0, 1.0), load_s=(0.2, 0.2))
    member = driver.member(session_s=6.0)
    settle(member)
    driver.cluster.kill(1)
    driver.wait(60.0)
    driver.cluster.start(1)
    driver.wait(1.1)
    assert member.beat() == codes.COORDINATOR_LOAD_IN_PROGRESS
    driver.wait(0.2)
    assert member.beat() == 0
    driver.wait(6.1)
    assert member.beat() == codes.UNKNOWN_MEMBER_ID


def test_a_join_that_nobody_synced_is_forgotten_and_its_generation_given_again() -> None:
    driver = Driver()
    one, two = driver.member(session_s=6.0), driver.member(session_s=6.0)
    settle(one)
    join(one, two)
    assert (one.joined(), two.joined(), one.generation) == (0, 0, 2)
    driver.cluster.kill(1)
    driver.cluster.start(1)
    driver.wait(5.0)
    assert one.beat() == codes.ILLEGAL_GENERATION
    assert two.beat() == codes.UNKNOWN_MEMBER_ID
    writer = driver.writer()
    writer.add_offsets()
    assert writer.offsets(1, 1, one.name) == 0
    one.join()
    assert (one.joined(), one.generation) == (0, 2)


def test_a_transaction_that_was_decided_is_completed_after_the_restart() -> None:
    """T19."""
    driver = Driver()
    writer = driver.writer()
    writer.add()
    writer.put("a")
    assert driver.ask(writer.ending(), Answer).code == 0
    driver.cluster.kill(1)
    driver.cluster.start(1)
    driver.wait(5.0)
    assert driver.values() == ["a"]
    assert writer.end() == 0


def test_a_frozen_node_answers_when_it_goes_on() -> None:
    driver = Driver()
    waiting = driver.send(Fetch(partition=P0, offset=0, committed_only=True, max_wait_s=1.0))
    driver.cluster.freeze(1)
    asked = driver.send(plain("a"))
    driver.wait(30.0)
    assert not asked.answered()
    assert not waiting.answered()
    driver.cluster.thaw(1)
    driver.wait(0.01)
    assert asked.answered()
    assert waiting.answered()
    assert driver.values() == ["a"]


def test_three_nodes_take_over_from_a_dead_leader() -> None:
    driver = Driver(nodes=3)
    driver.put("a")
    leader = driver.cluster.leader(P0)
    driver.cluster.kill(leader)
    assert driver.cluster.leader(P0) == leader
    driver.wait(2.1)
    successor = driver.cluster.leader(P0)
    assert successor not in (leader, -1)
    assert driver.send(plain("b"), node=6 - leader - successor).answers[0].code == codes.NOT_LEADER_FOR_PARTITION
    driver.put("b")
    assert driver.values() == ["a", "b"]
    nodes = driver.ask(Metadata(), MetadataAnswer)
    assert leader not in nodes.nodes
    assert nodes.leaders[P0] == successor


def test_with_one_of_three_left_nothing_is_written() -> None:
    driver = Driver(nodes=3)
    driver.put("a")
    leader = driver.cluster.leader(P0)
    for node in (1, 2, 3):
        if node != leader:
            driver.cluster.kill(node)
    stuck = driver.send(plain("b"))
    driver.wait(2.1)
    assert [answer.code for answer in stuck.answers] == [codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    assert driver.ask(plain("c"), ProduceAnswer).code == codes.NOT_ENOUGH_REPLICAS
    assert driver.ask(InitProducerId(transactional_id="id"), ProducerIdAnswer).code == codes.COORDINATOR_NOT_AVAILABLE
    assert driver.values() == ["a"]
    driver.cluster.start(1)
    driver.cluster.start(2)
    driver.cluster.start(3)
    driver.wait(8.0)
    driver.put("d")
    assert driver.values() == ["a", "b", "d"]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_acknowledged_is_lost_nor_written_twice(seed: int) -> None:
    """A producer repeats what was not acknowledged, while nodes come and go; the log has each batch once, in order."""
    driver = Driver(nodes=3, seed=seed)
    writer = driver.writer(timeout_s=600.0)
    writer.add()
    chance = driver.kernel.random
    for number in range(60):
        if number % 6 == 0 and len(driver.cluster.controller.seats[P0].in_sync) == 3:
            victim = chance.choice([1, 2, 3])
            driver.cluster.kill(victim)
            driver.cluster.start(victim)
        batch = writer.batch(f"{number}")
        code = -1
        while code:
            leader = driver.cluster.leader(P0)
            asked = driver.send(batch, node=leader) if driver.cluster.up(leader) else None
            driver.wait(chance.uniform(0.001, 0.2))
            code = asked.answers[0].code if asked is not None and asked.answered() else -1
            assert code in (-1, 0, codes.NOT_LEADER_FOR_PARTITION, *_TOO_FEW)
    driver.wait(10.0)
    while writer.end() not in (0, codes.INVALID_TXN_STATE):
        driver.wait(0.5)
    assert driver.values() == [str(number) for number in range(60)]


def test_what_was_not_acknowledged_may_or_may_not_be_there() -> None:
    seen = set()
    for seed in range(20):
        driver = Driver(nodes=3, seed=seed)
        asked = driver.send(plain("a"))
        driver.cluster.kill(driver.cluster.leader(P0))
        driver.wait(3.0)
        assert not asked.answered()
        seen.add(tuple(driver.values()))
    assert seen == {(), ("a",)}


def test_coordinators_move_and_remember() -> None:
    driver = Driver(nodes=3)
    member, writer = driver.member(session_s=6.0), driver.writer()
    settle(member)
    writer.add()
    writer.add_offsets()
    writer.put("a")
    writer.offsets(5, member.generation, member.name)
    before = {}
    for key, transactional in (("g", False), ("id", True)):
        old = before[key] = driver.cluster.coordinator(key, transactional=transactional)
        driver.cluster.move_coordinator(key, transactional=transactional, node=old % 3 + 1)
        answer = driver.ask(FindCoordinator(key=key, transactional=transactional), CoordinatorAnswer)
        assert answer.node == old % 3 + 1
    assert driver.send(writer.ending(), node=before["id"]).answers[0].code == codes.NOT_COORDINATOR
    assert driver.send(writer.ending()).answers[0].code == codes.COORDINATOR_LOAD_IN_PROGRESS
    driver.wait(0.31)
    assert member.beat() == 0
    assert writer.end() == 0
    assert driver.values() == ["a"]
    assert driver.committed() == 5


def test_only_who_was_in_sync_to_the_last_may_lead() -> None:
    driver = Driver(nodes=3)
    driver.put("a")
    for node in (1, 2):
        driver.cluster.kill(node)
        driver.wait(2.1)
    driver.cluster.kill(3)
    driver.cluster.start(1)
    driver.wait(10.0)
    question = FindCoordinator(key="g", transactional=False)
    assert driver.ask(question, CoordinatorAnswer, node=1).code == codes.COORDINATOR_NOT_AVAILABLE
    assert driver.ask(Metadata(), MetadataAnswer, node=1).leaders[P0] == -1
    driver.cluster.start(3)
    driver.wait(10.0)
    assert driver.ask(question, CoordinatorAnswer, node=1).node == 3
    assert driver.cluster.controller.seats[P0].in_sync == {1, 3}
    driver.put("b")
    assert driver.values() == ["a", "b"]


def test_a_stop_in_order_hands_over_first() -> None:
    driver = Driver(nodes=3)
    leader = driver.cluster.leader(P0)
    driver.cluster.shut_down(leader)
    assert driver.cluster.leader(P0) not in (leader, -1)
    assert driver.cluster.up(leader)
    driver.put("a")
    driver.wait(0.6)
    assert not driver.cluster.up(leader)
    driver.wait(2.1)
    driver.put("b")
    assert driver.values() == ["a", "b"]


def test_a_frozen_leader_of_three_is_replaced_and_finds_out() -> None:
    driver = Driver(nodes=3)
    leader = driver.cluster.leader(P0)
    driver.cluster.freeze(leader)
    asked = driver.send(plain("a"), node=leader)
    driver.wait(2.1)
    assert driver.cluster.leader(P0) not in (leader, -1)
    driver.put("b")
    driver.cluster.thaw(leader)
    driver.wait(0.01)
    assert [answer.code for answer in asked.answers] == [codes.NOT_LEADER_FOR_PARTITION]
    driver.wait(3.0)
    assert driver.cluster.controller.seats[P0].in_sync == {1, 2, 3}
    assert driver.values() == ["b"]


def test_a_marker_waits_for_the_leader_of_its_partition() -> None:
    for seed in range(5):
        driver = Driver(nodes=3, seed=seed)
        writer = driver.writer()
        writer.add(P0, P1)
        writer.put("a", partition=P0)
        writer.put("b", partition=P1)
        asked = driver.send(writer.ending())
        driver.wait(0.0031)
        driver.cluster.kill(driver.cluster.leader(P0))
        driver.wait(5.0)
        if not (asked.answered() and asked.answers[0].code == 0):
            assert writer.end() == 0
        driver.wait(1.0)
        assert (driver.values(P0), driver.values(P1)) == (["a"], ["b"])


def test_the_network_hears_of_a_death() -> None:
    driver = Driver()
    network = Network(driver.kernel, driver.cluster)
    driver.cluster.controller.on_death.append(network.node_died)
    ends: list[object] = []
    host = Host("client")
    network.call(host, 1, Fetch(partition=P0, offset=0, committed_only=True, max_wait_s=60.0), ends.append, 120.0)
    driver.wait(1.0)
    assert ends == []
    driver.cluster.kill(1)
    driver.wait(0.1)
    assert ends == ["disconnected"]
    network.call(host, 1, Metadata(), ends.append, 120.0)
    driver.wait(0.1)
    assert ends == ["disconnected", "refused"]


def test_a_fetch_that_waits_is_sent_away_when_the_leader_moves() -> None:
    driver = Driver(nodes=3)
    asked = driver.send(Fetch(partition=P0, offset=0, committed_only=True, max_wait_s=60.0))
    driver.cluster.move(P0, driver.cluster.leader(P0) % 3 + 1)
    [answer] = asked.answers
    assert isinstance(answer, FetchAnswer)
    assert answer.code == codes.NOT_LEADER_FOR_PARTITION


_TOO_FEW = (codes.NOT_ENOUGH_REPLICAS, codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
