"""Groups: generations, rebalances, sessions, and the fence of offsets in a transaction."""

from __future__ import annotations

from proof.simulation.broker import codes
from proof.simulation.broker.assignment import Claim, cooperative_sticky
from proof.simulation.protocol import DescribeGroup, GroupAnswer, JoinAnswer, JoinGroup, OffsetFetch, OffsetsAnswer, SyncAnswer
from tests.simulation.broker.driver import P0, P1, Driver, Member, join, settle

WEEK_S = 7 * 86400.0


def keep_alive(driver: Driver, seconds: float, *members: Member) -> None:
    for _ in range(round(seconds / 0.25)):
        driver.wait(0.25)
        for member in members:
            member.beat()


def test_two_members_share_and_each_change_is_a_new_generation() -> None:
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one)
    assert (one.generation, one.owned, one.leads) == (1, frozenset({P0, P1}), True)
    two.join()
    assert (two.joined(), one.beat()) == (-1, codes.REBALANCE_IN_PROGRESS)
    settle(one, two)
    assert {one.owned, two.owned} == {frozenset({P0}), frozenset({P1})}
    assert one.generation == two.generation == 3


def test_a_partition_moves_in_two_phases() -> None:
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one)
    join(one, two)
    assert (one.joined(), two.joined()) == (0, 0)
    second, first = two.syncing(), one.syncing()
    shares = []
    for asked in (first, second):
        [answer] = asked.answers
        assert isinstance(answer, SyncAnswer)
        shares.append(answer.partitions)
    assert shares == [frozenset({P1}), frozenset()]


def test_a_single_partition_stays_with_its_holder() -> None:
    driver = Driver()
    driver.cluster.delete_topic("t")
    driver.cluster.create_topic("t", 1)
    one, two, three = driver.member(), driver.member(), driver.member()
    settle(one)
    settle(one, two)
    settle(two, three, one)
    assert (one.owned, two.owned, three.owned) == (frozenset({P0}), frozenset(), frozenset())


def test_a_silent_member_is_out_after_its_session() -> None:
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one, two)
    keep_alive(driver, 0.75, one)
    assert one.beat() == 0
    keep_alive(driver, 0.5, one)
    assert one.beat() == codes.REBALANCE_IN_PROGRESS
    assert two.beat() == codes.UNKNOWN_MEMBER_ID
    settle(one)
    assert one.owned == {P0, P1}


def test_a_member_that_beats_but_does_not_join_again_is_out_after_the_rebalance_timeout() -> None:
    driver = Driver()
    one, two = driver.member(rebalance_s=2.0), driver.member(rebalance_s=2.0)
    settle(one)
    two.join()
    keep_alive(driver, 1.75, one)
    assert two.joined() == -1
    keep_alive(driver, 0.5, one)
    assert two.joined() == 0
    assert one.beat() == codes.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_makes_room_at_once() -> None:
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one, two)
    assert two.leave() == 0
    assert one.beat() == codes.REBALANCE_IN_PROGRESS
    assert two.leave() == codes.UNKNOWN_MEMBER_ID
    settle(one)
    assert one.owned == {P0, P1}


def test_a_stale_generation_may_not_beat_or_sync() -> None:
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one)
    settle(one, two)
    one.generation -= 1
    assert one.beat() == codes.ILLEGAL_GENERATION
    assert one.syncing().answers[0].code == codes.ILLEGAL_GENERATION


def test_a_session_shorter_than_the_broker_allows_is_refused() -> None:
    driver = Driver(min_session_s=6.0)
    member = driver.member(session_s=1.0)
    assert driver.ask(member._request(), JoinAnswer).code == codes.INVALID_SESSION_TIMEOUT


def test_an_id_that_never_joins_holds_the_rebalance_for_one_session() -> None:
    """librdkafka 5569."""
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one)
    driver.cluster.add_ghost("g", 1.0)
    join(one, two)
    driver.wait(0.9)
    assert (one.joined(), two.joined()) == (-1, -1)
    assert driver.ask(DescribeGroup(group="g"), GroupAnswer).state == "PreparingRebalance"
    driver.wait(0.2)
    assert (one.joined(), two.joined()) == (0, 0)


def test_ghosts_by_chance() -> None:
    driver = Driver(ghost_chance=1.0)
    one = driver.member()
    one.join()
    assert one.joined() == -1
    driver.wait(1.1)
    assert one.joined() == 0


def test_handshakes_without_ids_where_the_broker_wants_none() -> None:
    driver = Driver(member_id_required=False)
    request = JoinGroup(
        group="g", member="", topics=("t",), owned=frozenset(), session_timeout_s=1.0, rebalance_timeout_s=1.0
    )
    answer = driver.ask(request, JoinAnswer)
    assert (answer.code, answer.generation, answer.leader) == (0, 1, True)


# -- the fence -----------------------------------------------------------------------------------------------------------


def test_offsets_count_with_the_commit() -> None:
    driver = Driver()
    member = driver.member()
    settle(member)
    writer = driver.writer()
    assert writer.add_offsets() == 0
    assert writer.offsets(8, member.generation, member.name) == 0
    assert writer.offsets(9, member.generation, member.name) == 0
    request = OffsetFetch(group="g", partitions=(P0,))
    assert driver.ask(request, OffsetsAnswer).code == codes.UNSTABLE_OFFSET_COMMIT
    assert driver.committed(partition=P1) is None
    writer.end()
    assert driver.committed() == 9
    writer.add_offsets()
    writer.offsets(10, member.generation, member.name)
    writer.end(commit=False)
    assert driver.committed() == 9


def test_the_generation_is_compared_and_the_partition_is_not() -> None:
    driver = Driver()
    member = driver.member()
    settle(member)
    writer = driver.writer()
    writer.add_offsets()
    now, name = member.generation, member.name
    assert writer.offsets(1, now - 1, name) == codes.ILLEGAL_GENERATION
    assert writer.offsets(1, now + 1, name) == codes.ILLEGAL_GENERATION
    assert writer.offsets(1, -1, name) == codes.ILLEGAL_GENERATION
    assert writer.offsets(1, now, "other") == codes.UNKNOWN_MEMBER_ID
    assert writer.offsets(1, now, "") == codes.UNKNOWN_MEMBER_ID
    assert writer.offsets(1, now, name, partition=("nowhere", 0)) == codes.UNKNOWN_TOPIC_OR_PART
    driver.cluster.create_topic("not-subscribed", 1)
    assert writer.offsets(1, now, name, partition=("not-subscribed", 0)) == 0


def test_the_sentinel_is_accepted_in_any_state() -> None:
    """T25: so no broker can be told by it that it has a fence."""
    driver = Driver()
    member, late = driver.member(), driver.member()
    settle(member)
    writer = driver.writer()
    writer.add_offsets()
    assert writer.offsets(1) == 0
    late.join()
    assert writer.offsets(2) == 0
    member.join()
    assert (member.joined(), late.joined()) == (0, 0)
    assert writer.offsets(3) == 0
    writer.end()
    assert driver.committed() == 3


def test_a_generation_holds_until_the_join_is_complete() -> None:
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one)
    writer = driver.writer()
    writer.add_offsets()
    two.join()
    assert one.beat() == codes.REBALANCE_IN_PROGRESS
    assert writer.offsets(1, one.generation, one.name) == 0
    one.join()
    assert one.joined() == two.joined() == 0
    assert writer.offsets(2, one.generation - 1, one.name) == codes.ILLEGAL_GENERATION
    assert writer.offsets(3, one.generation, one.name) == 0


def test_a_broker_without_the_fence() -> None:
    """The control for rule L9."""
    driver = Driver(fenceless=True)
    member = driver.member()
    settle(member)
    writer = driver.writer()
    writer.add_offsets()
    assert writer.offsets(1, member.generation - 1, "gone") == 0


def test_offsets_need_their_partition_in_the_transaction() -> None:
    driver = Driver()
    writer = driver.writer()
    assert writer.offsets(1) == codes.INVALID_TXN_STATE
    writer.add()
    assert writer.offsets(1) == codes.INVALID_TXN_STATE


def test_offsets_of_a_fenced_owner_are_refused() -> None:
    driver = Driver()
    old = driver.writer()
    old.add_offsets()
    old.offsets(1)
    new = driver.writer()
    assert old.offsets(2) == codes.INVALID_PRODUCER_EPOCH
    new.add_offsets()
    new.offsets(3)
    assert old.offsets(4) == codes.INVALID_PRODUCER_EPOCH
    new.end()
    assert driver.committed() == 3


# -- the end of a group --------------------------------------------------------------------------------------------------


def test_a_deleted_group_begins_at_generation_1_again() -> None:
    """T9."""
    driver = Driver()
    one, two = driver.member(), driver.member()
    settle(one, two)
    assert driver.cluster.delete_group("g") == codes.NON_EMPTY_GROUP
    one.leave(), two.leave()
    driver.wait(5.1)
    assert driver.cluster.delete_group("g") == 0
    assert driver.cluster.delete_group("g") == codes.GROUP_ID_NOT_FOUND
    new = driver.member()
    settle(new)
    assert new.generation == 1


def test_an_empty_group_goes_at_the_next_sweep_unless_it_has_offsets() -> None:
    driver = Driver()
    for name in ("bare", "used"):
        member = driver.member(name)
        settle(member)
        if name == "used":
            writer = driver.writer()
            writer.add_offsets(name)
            writer.offsets(1, member.generation, member.name, group=name)
            writer.end()
        member.leave()
    driver.wait(601.0)
    assert set(driver.cluster.groups.groups) == {"used"}
    driver.wait(WEEK_S)
    driver.wait(601.0)
    assert set(driver.cluster.groups.groups) == set()


# -- the assignment ------------------------------------------------------------------------------------------------------


def claim(member: str, *numbers: int, generation: int = 1) -> Claim:
    return Claim(member=member, topics=("t",), owned=frozenset(("t", number) for number in numbers), generation=generation)


def numbers(shares: dict[str, frozenset[tuple[str, int]]]) -> dict[str, list[int]]:
    return {member: sorted(number for _, number in share) for member, share in shares.items()}


def test_shares_are_balanced_and_sticky() -> None:
    def six(_: str) -> int:
        return 6

    assert numbers(cooperative_sticky([claim("a"), claim("b")], six)) == {"a": [0, 2, 4], "b": [1, 3, 5]}
    assert numbers(cooperative_sticky([claim("a", 0, 1, 2, 3, 4, 5), claim("b")], six)) == {"a": [3, 4, 5], "b": []}
    assert numbers(cooperative_sticky([claim("a", 0, 1, 2), claim("b")], six)) == {"a": [0, 1, 2], "b": [3, 4, 5]}
    stale = cooperative_sticky([claim("a", 0, 1, 2, generation=1), claim("b", 0, 3, 4, generation=2)], six)
    assert numbers(stale) == {"a": [1, 2, 5], "b": [0, 3, 4]}


def test_of_two_that_claim_the_same_nobody_keeps_it_by_right() -> None:
    shares = numbers(cooperative_sticky([claim("a", 0), claim("b", 0)], lambda _: 1))
    assert sorted(shares.values()) == [[], [0]]
