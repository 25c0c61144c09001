"""W7: a dead worker's incarnation is fenced, and the ends taken after that are final."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from dueline.scheduler.core.ports import Fenced, Fencer, FenceResult, Partition
from tests.integration.kafka.support import Site, record, until

HOME = 1
GROUP = "workers"


def fenced(fencer: Fencer, count: int) -> list[FenceResult]:
    results: list[FenceResult] = []

    def probe() -> bool | None:
        results.extend(fencer.results())
        return True if len(results) >= count else None

    until(probe, f"{count} incarnations are fenced")
    return sorted(results, key=lambda result: result.incarnation)


@pytest.fixture
def fencer(site: Site) -> Fencer:
    made = site.cluster.fencer(site.ns.attempts, site.ns.steps)
    site.stack.callback(made.close)
    return made


def test_a_fence_aborts_what_stands_open_and_refuses_the_woken_worker(site: Site, fencer: Fencer) -> None:
    ids = site.ns.worker_ids("w.00000001")
    claims, finishes = site.writer(ids[0], survives_refusal=True), site.writer(*ids[1:])
    claims.write([[record(site.ns.attempts, b"claimed", HOME)]])
    finishes.write([[record(site.ns.steps, b"step", HOME)]])
    results: list[FenceResult] = []

    def declared_dead(_: object) -> None:
        fencer.start("w.00000001", ids, HOME, GROUP)
        fencer.start("w.00000001", ids, HOME, GROUP)
        results.extend(fenced(fencer, 1))

    with pytest.raises(Fenced):
        finishes.write([[record(site.ns.attempts, b"finished", HOME)]], before_commit=declared_dead)
    with pytest.raises(Fenced):
        claims.write([[record(site.ns.attempts, b"claimed again", HOME)]])

    (result,) = results
    admin = site.cluster.admin()
    # claimed, its marker, the record of the fenced transaction, its abort marker; nothing came after the fence
    assert (result.attempts_end, result.steps_end) == (4, 2)
    assert admin.end_offset((site.ns.attempts, HOME)) == 4
    read = list(admin.read_range((site.ns.attempts, HOME), 0, result.attempts_end, timeout_s=30.0))
    assert [one.value for one in read] == [b"claimed"]


def test_a_finish_committed_just_before_the_fence_stands_before_the_end(site: Site, fencer: Fencer) -> None:
    ids = site.ns.worker_ids("w.00000002")
    site.writer(*ids[1:]).write([[record(site.ns.attempts, b"finished", HOME)]])
    fencer.start("w.00000002", ids, HOME, GROUP)
    (result,) = fenced(fencer, 1)
    read = site.cluster.admin().read_range((site.ns.attempts, HOME), 0, result.attempts_end, timeout_s=30.0)
    assert [one.value for one in read] == [b"finished"]


def uncommitted_keys(site: Site, place: Partition, end: int) -> Iterator[bytes | None]:
    """Of all records before `end`, those of aborted transactions too."""
    reader = site.cluster.log_reader("uncommitted", uncommitted=True)
    site.stack.callback(reader.close)
    reader.assign({place: 0})
    while reader.position(place) < end:
        yield from (one.key for one in reader.poll(0.1, 100) if one.offset < end)


def test_where_something_stands_open_what_is_written_to_end_it_is_never_seen(site: Site, fencer: Fencer) -> None:
    """A stranger's open transaction looks like one that a killed broker forgot to end (docs/kafka.md)."""
    ids = site.ns.worker_ids("w.00000004")
    site.writer(*ids[1:]).write([[record(site.ns.attempts, b"claimed", HOME)]])
    stranger = site.left_open("stranger", (site.ns.attempts, HOME))
    fencer.start("w.00000004", ids, HOME, GROUP)
    (result,) = fenced(fencer, 1)
    stranger.abort_transaction(30.0)
    admin = site.cluster.admin()
    assert list(uncommitted_keys(site, (site.ns.attempts, HOME), result.attempts_end)).count(b"forgotten") == len(ids)
    read = admin.read_range((site.ns.attempts, HOME), 0, result.attempts_end, timeout_s=30.0)
    assert [one.value for one in read] == [b"claimed"]
    assert admin.stable_offset((site.ns.attempts, HOME)) == admin.end_offset((site.ns.attempts, HOME))


def test_many_are_fenced_at_once_each_once_a_term_and_again_in_the_next(site: Site, fencer: Fencer) -> None:
    names = [f"w{number}.00000003" for number in range(6)]

    def start(by: Fencer, some: Sequence[str]) -> None:
        for name in some:
            by.start(name, site.ns.worker_ids(name), 0, GROUP)

    start(fencer, names)
    assert [result.incarnation for result in fenced(fencer, len(names))] == names
    start(fencer, names)  # asked for until the ledger has its end: done once
    next_term = site.cluster.fencer(site.ns.attempts, site.ns.steps)
    site.stack.callback(next_term.close)
    start(next_term, names[:1])
    assert [result.incarnation for result in fenced(next_term, 1)] == names[:1]
    assert fencer.results() == []
