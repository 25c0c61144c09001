"""The cooperative-sticky assignment, which in Kafka the group's leading member works out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proof.simulation.protocol import Partition

Shares = dict[str, set[Partition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A member's wish: `owned` it holds, as of `generation`."""

    member: str
    topics: tuple[str, ...]
    owned: frozenset[Partition]
    generation: int


def cooperative_sticky(claims: list[Claim], partitions_of: Callable[[str], int]) -> dict[str, frozenset[Partition]]:
    """Balanced, with as few moves as that allows. What moves is in nobody's answer until its holder has given it up."""
    able = {claim.member: frozenset(claim.topics) for claim in claims}
    holders = _holders(claims)
    shares: Shares = {member: set() for member in sorted(able)}
    free = []
    for topic in sorted({topic for topics in able.values() for topic in topics}):
        for partition in ((topic, number) for number in range(partitions_of(topic))):
            holder = holders.get(partition)
            if holder is not None and topic in able[holder]:
                shares[holder].add(partition)
            else:
                free.append(partition)
    for partition in free:
        takers = [member for member in shares if partition[0] in able[member]]
        shares[min(takers, key=lambda member: len(shares[member]))].add(partition)
    _balance(shares, able)
    return {
        member: frozenset(partition for partition in share if holders.get(partition, member) == member)
        for member, share in shares.items()
    }


def _holders(claims: list[Claim]) -> dict[Partition, str]:
    """Who holds what. Of two who say so the one with the later generation; nobody when both are of the same."""
    best: dict[Partition, tuple[int, str]] = {}
    for claim in claims:
        for partition in claim.owned:
            generation, _ = best.get(partition, (-2, ""))
            if claim.generation > generation:
                best[partition] = (claim.generation, claim.member)
            elif claim.generation == generation:
                best[partition] = (generation, "")
    return {partition: member for partition, (_, member) in best.items() if member}


def _balance(shares: Shares, able: dict[str, frozenset[str]]) -> None:
    """Move one at a time from who has most to who has at least two less, until there is no such pair."""
    while True:
        move = _move(shares, able)
        if move is None:
            return
        partition, giver, taker = move
        shares[giver].remove(partition)
        shares[taker].add(partition)


def _move(shares: Shares, able: dict[str, frozenset[str]]) -> tuple[Partition, str, str] | None:
    fewest_first = sorted(shares, key=lambda member: len(shares[member]))
    for giver in reversed(fewest_first):
        for taker in fewest_first:
            if len(shares[giver]) - len(shares[taker]) < 2:
                break
            fitting = [partition for partition in shares[giver] if partition[0] in able[taker]]
            if fitting:
                return min(fitting), giver, taker
    return None
