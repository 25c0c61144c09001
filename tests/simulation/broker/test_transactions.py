"""Transactions: visibility, EndTxn and its copies, time-outs, fencing, expiry."""

from __future__ import annotations

import pytest

from proof.simulation.broker import codes
from proof.simulation.protocol import Answer, Fetch, InitProducerId, ProducerIdAnswer
from tests.simulation.broker.driver import P0, P1, Driver


def test_committed_readers_stop_at_the_first_open_transaction() -> None:
    """T13: of any producer."""
    driver = Driver()
    one, other = driver.writer("one"), driver.writer("other")
    driver.put("a")
    one.add()
    one.put("b")
    other.write("c")
    assert driver.values() == ["a"]
    assert driver.values(committed=False) == ["a", "b", "c"]
    assert (driver.end(committed=True), driver.end()) == (1, 4)
    one.end()
    assert driver.values() == ["a", "b", "c"]
    assert driver.read().next_offset == driver.end() == 5


def test_aborted_records_and_markers_are_passed_over() -> None:
    driver = Driver()
    writer = driver.writer()
    writer.write("a", commit=False)
    writer.write("b")
    writer.write("c", commit=False)
    answer = driver.read()
    assert ([record.offset for record in answer.records], answer.next_offset, answer.end) == ([2], 6, 6)
    assert driver.read(offset=4).next_offset == 6


def test_a_marker_answers_the_fetch_that_waits_for_it() -> None:
    driver = Driver()
    writer = driver.writer()
    writer.add()
    writer.put("a")
    asked = driver.send(Fetch(partition=P0, offset=0, committed_only=True, max_wait_s=10.0))
    driver.wait(1.0)
    assert not asked.answered()
    writer.end()
    assert asked.answered()


def test_a_partition_that_got_nothing_gets_a_marker_too() -> None:
    driver = Driver()
    writer = driver.writer()
    writer.add(P0, P1)
    writer.put("a")
    writer.end()
    assert (driver.end(P0), driver.end(P1)) == (2, 1)


def test_the_answer_comes_before_the_markers_and_the_next_transaction_has_to_wait() -> None:
    driver = Driver()
    writer = driver.writer()
    writer.add()
    writer.put("a")
    assert driver.ask(writer.ending(), Answer).code == 0
    assert driver.values() == []
    assert writer.add() == codes.CONCURRENT_TRANSACTIONS
    assert driver.ask(InitProducerId(transactional_id="id"), ProducerIdAnswer).code == codes.CONCURRENT_TRANSACTIONS
    driver.wait()
    assert driver.values() == ["a"]
    assert writer.add() == 0


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeated_end_is_answered_alike_and_the_other_one_refused(commit: bool) -> None:
    driver = Driver()
    writer = driver.writer()
    writer.write("a", commit=commit)
    assert writer.end(commit) == 0
    assert writer.end(not commit) == codes.INVALID_TXN_STATE
    assert driver.values() == (["a"] if commit else [])


def test_without_a_transaction_there_is_nothing_to_end() -> None:
    driver = Driver()
    assert driver.writer().end() == codes.INVALID_TXN_STATE


def test_a_delayed_commit_ends_half_of_the_next_transaction() -> None:
    """T11: what was produced before it is committed; after it a produce to that partition is refused, one to another is not."""
    driver = Driver()
    writer = driver.writer()
    writer.write("a")
    copy = writer.ending()
    writer.add()
    writer.put("b1")
    driver.ask(copy, Answer)
    driver.wait()
    assert driver.values() == ["a", "b1"]
    refused = writer.batch("b2", sequence=2)
    assert driver.send(refused).answers[0].code == codes.INVALID_TXN_STATE
    assert writer.add(P1) == 0
    assert writer.put("b3", partition=P1) == 0
    assert writer.end() == 0
    assert driver.values(P1) == ["b3"]


def test_a_delayed_abort_ends_the_next_transaction_while_its_commit_reports_success() -> None:
    """T11, the worst of it: the commit's answer is that of a transaction opened after the abort, here one without records."""
    driver = Driver()
    writer = driver.writer()
    writer.write("a", commit=False)
    copy = writer.ending(commit=False)
    writer.add()
    writer.put("b")
    driver.ask(copy, Answer)
    driver.wait()
    writer.add(P1)
    assert writer.end() == 0
    assert driver.values() == []


def test_a_new_owner_aborts_the_open_transaction_and_the_zombies_commit_is_refused() -> None:
    """T5."""
    driver = Driver()
    zombie = driver.writer()
    zombie.add()
    zombie.put("a")
    owner = driver.writer()
    assert zombie.end() == codes.INVALID_PRODUCER_EPOCH
    assert zombie.add() == codes.INVALID_PRODUCER_EPOCH
    owner.write("b")
    assert driver.values() == ["b"]


def test_init_of_an_open_transaction_says_wait() -> None:
    driver = Driver()
    writer = driver.writer()
    writer.add()
    request = InitProducerId(transactional_id="id")
    assert driver.ask(request, ProducerIdAnswer).code == codes.CONCURRENT_TRANSACTIONS
    driver.wait()
    answer = driver.ask(request, ProducerIdAnswer)
    assert (answer.code, answer.pid, answer.epoch) == (0, writer.pid, writer.epoch + 2)


def test_the_owner_may_ask_for_its_next_epoch_and_a_fenced_one_not() -> None:
    driver = Driver()
    writer = driver.writer()
    request = InitProducerId(transactional_id="id", pid=writer.pid, epoch=writer.epoch)
    assert [driver.ask(request, ProducerIdAnswer).epoch for _ in range(2)] == [writer.epoch + 1] * 2
    driver.writer()
    assert driver.ask(request, ProducerIdAnswer).code == codes.PRODUCER_FENCED


@pytest.mark.parametrize("sweep_s", [0.5, 10.0])
def test_a_transaction_that_takes_too_long_is_swept_away(sweep_s: float) -> None:
    """T15, T14: whoever stalls beyond the time-out has lost, and readers wait at most time-out and sweep."""
    driver = Driver(transaction_sweep_s=sweep_s)
    writer = driver.writer(timeout_s=2.0)
    writer.add()
    writer.put("a")
    driver.wait(1.9)
    assert driver.end(committed=True) == 0
    driver.wait(0.1 + sweep_s + 0.1)
    assert driver.end(committed=True) == 2
    assert driver.values() == []
    assert writer.end() == codes.INVALID_PRODUCER_EPOCH
    assert writer.put("b") == codes.INVALID_PRODUCER_EPOCH
    driver.writer().write("c")
    assert driver.values() == ["c"]


def test_a_broker_clock_that_leaps_times_transactions_out() -> None:
    driver = Driver(transaction_sweep_s=0.5)
    writer = driver.writer(timeout_s=60.0)
    writer.add()
    driver.cluster.set_clock(1, 3_600_000)
    driver.wait(1.0)
    assert writer.end() == codes.INVALID_PRODUCER_EPOCH


def test_an_idle_id_is_forgotten() -> None:
    """T23."""
    driver = Driver(id_expiry_s=100.0, id_sweep_s=10.0)
    writer = driver.writer()
    writer.write("a")
    driver.wait(200.0)
    assert writer.add() == codes.INVALID_PRODUCER_ID_MAPPING
    assert driver.writer().pid != writer.pid


def test_too_long_a_timeout_is_refused() -> None:
    driver = Driver()
    request = InitProducerId(transactional_id="id", timeout_s=901.0)
    assert driver.ask(request, ProducerIdAnswer).code == codes.INVALID_TRANSACTION_TIMEOUT


def test_partitions_that_do_not_exist_cannot_be_added() -> None:
    driver = Driver()
    assert driver.writer().add(("nowhere", 0)) == codes.UNKNOWN_TOPIC_OR_PART


def test_a_produce_without_its_partition_added_is_refused() -> None:
    driver = Driver()
    writer = driver.writer()
    assert writer.put("a") == codes.INVALID_TXN_STATE
    assert writer.add(P1) == 0
    assert writer.put("a") == codes.INVALID_TXN_STATE


def test_a_topic_deleted_under_a_transaction_does_not_hold_it_up() -> None:
    driver = Driver()
    writer = driver.writer()
    writer.add()
    writer.put("a")
    old = driver.cluster.storage.topics["t"].id
    driver.cluster.delete_topic("t")
    assert writer.end() == 0
    driver.cluster.create_topic("t", 2)
    assert driver.cluster.storage.topics["t"].id != old
    writer.sequences.clear()
    writer.write("b")
    assert driver.values() == ["b"]
