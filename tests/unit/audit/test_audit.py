"""The audit's answers, one situation each; histories at random are in tests/property/test_audit_worlds.py."""

from __future__ import annotations

from dataclasses import replace

from dueline.scheduler.audit.findings import Finding, Verdict
from dueline.schemas.base import NONE
from dueline.schemas.job import Change
from dueline.schemas.ledger import Barrier
from dueline.schemas.run import Run, RunState, Summary
from tests.unit.audit.worlds import EPOCH, MINUTE, Entry, World, Writer, compile_version, make_run, make_version

FIVE = 5 * MINUTE


def world(*, minutes: int = 30) -> World:
    """One job, every five minutes from EPOCH on; nothing has run yet."""
    return World(versions=[make_version(1, EPOCH)], now_ms=EPOCH + minutes * MINUTE)


def verdicts(made: World, **window: int) -> list[tuple[int, Verdict]]:
    """(minutes after EPOCH, verdict) of each scheduled finding."""
    found = sorted(made.audit(**window).scheduled, key=lambda finding: finding.due_ms)
    return [((finding.due_ms - EPOCH) // MINUTE, finding.verdict) for finding in found]


def only(findings: tuple[Finding, ...]) -> Finding:
    (finding,) = findings
    return finding


def test_each_state_has_its_verdict() -> None:
    made = world(minutes=35)
    writer, version = Writer(made), made.versions[0]
    for number, how in enumerate(["succeeded", "retried", "failed", "skipped", "cancelled", "running"]):
        writer.run(version, EPOCH + number * FIVE, how)
    writer.run(version, EPOCH + 6 * FIVE, "succeeded", delay_ms=61_000)
    assert verdicts(made) == [
        (0, Verdict.RAN),
        (5, Verdict.RAN),
        (10, Verdict.FAILED),
        (15, Verdict.SKIPPED),
        (20, Verdict.CANCELLED),
        (25, Verdict.PENDING),
        (30, Verdict.LATE),
    ]


def test_evidence_is_the_place_of_the_records() -> None:
    made = world(minutes=5)
    Writer(made).run(made.versions[0], EPOCH, "succeeded")
    finding = only(made.audit().findings)
    assert [(place.topic, place.partition) for place in finding.evidence] == [("test.runs", 0), ("test.attempts", 0)]
    assert finding.evidence[0].offset == len(made.entries)  # the last record; one version stands before them


def test_without_records_due_times_are_missed_after_the_grace_and_pending_before() -> None:
    made = replace(world(), now_ms=EPOCH + 10 * MINUTE + 29_000)
    assert verdicts(made) == [(0, Verdict.MISSED), (5, Verdict.MISSED), (10, Verdict.PENDING)]
    assert verdicts(made, grace_ms=29_000)[-1] == (10, Verdict.MISSED)


def test_the_future_is_one_finding_a_version() -> None:
    made = replace(world(), now_ms=EPOCH - MINUTE)
    finding = only(made.audit(to_ms=EPOCH + 60 * MINUTE).scheduled)
    assert (finding.verdict, finding.count) == (Verdict.PENDING, 12)


def test_a_run_ahead_of_time_is_pending_and_counted_once() -> None:
    made = replace(world(), now_ms=EPOCH - 2_000)
    Writer(made).run(made.versions[0], EPOCH, "running", ahead=True)
    found = made.audit(to_ms=EPOCH + 10 * MINUTE).scheduled
    assert [(finding.verdict, finding.count) for finding in found] == [(Verdict.PENDING, 1), (Verdict.PENDING, 1)]


def test_a_year_of_downtime_is_one_finding() -> None:
    made = World(versions=[make_version(1, EPOCH, '"* * * * *"')], now_ms=EPOCH + 525_600 * MINUTE)
    count = 525_600 - 1
    summary = Summary(
        job="menu", version=1, reason="catch-up-window", first_ms=EPOCH, last_ms=EPOCH + (count - 1) * MINUTE, count=count
    )
    made.entries.append(Entry(topic="runs", key=summary.key, record=summary, append_ms=made.now_ms - 1))
    result = made.audit()
    assert result.totals()[Verdict.COVERED] == count
    assert result.totals()[Verdict.PENDING] == 0 and result.totals()[Verdict.MISSED] == 1


def test_two_summaries_that_overlap_are_duplicated() -> None:
    made = world()
    for first, last in ((0, 3), (3, 5)):
        summary = Summary(
            job="menu", version=1, reason="misfire-skip", first_ms=EPOCH + first * FIVE, last_ms=EPOCH + last * FIVE,
            count=last - first + 1, previous_due_ms=EPOCH + (first - 1) * FIVE if first else NONE,
        )  # fmt: skip
        made.entries.append(Entry(topic="runs", key=summary.key, record=summary, append_ms=made.now_ms))
    assert verdicts(made) == [(0, Verdict.COVERED), (15, Verdict.DUPLICATED)]


def test_paused_due_times_are_skipped_and_a_run_among_them_is_not_explained() -> None:
    made = world(minutes=18)
    made.versions.append(make_version(2, EPOCH + FIVE + 1, change=Change.PAUSED, paused=True))
    writer = Writer(made)
    writer.run(made.versions[0], EPOCH, "succeeded")
    writer.run(made.versions[0], EPOCH + FIVE, "succeeded")
    writer.skip(made.versions[1], [EPOCH + 2 * FIVE, EPOCH + 3 * FIVE], "paused", EPOCH + 3 * FIVE)
    assert made.audit().explained
    writer.run(made.versions[1], EPOCH + 4 * FIVE, "succeeded")
    assert verdicts(replace(made, now_ms=EPOCH + 22 * MINUTE))[-1] == (20, Verdict.UNEXPLAINED)


def test_passed_over_as_paused_while_not_paused_is_not_explained() -> None:
    made = world(minutes=5)
    Writer(made).skip(made.versions[0], [EPOCH], "paused", EPOCH)
    assert verdicts(made) == [(0, Verdict.UNEXPLAINED)]


def test_a_deleted_job_has_no_due_times() -> None:
    made = world()
    made.versions.append(make_version(2, EPOCH + 1, change=Change.DELETED))
    Writer(made).run(made.versions[0], EPOCH, "succeeded")
    assert verdicts(made) == [(0, Verdict.RAN)]


def test_a_due_time_at_the_instant_of_a_version_belongs_to_it() -> None:
    made = world(minutes=9)
    made.versions.append(make_version(2, EPOCH + FIVE, '"*/5 * * * *"'))
    writer = Writer(made)
    writer.run(made.versions[0], EPOCH, "succeeded")
    writer.run(made.versions[1], EPOCH + FIVE, "succeeded")
    assert made.audit().explained


def test_a_taken_due_time_stays_with_the_version_before() -> None:
    made = world(minutes=9)
    made.versions.append(make_version(2, EPOCH + FIVE - 3_000, '"0 2 * * *"', taken=[EPOCH + FIVE]))
    writer = Writer(made)
    writer.run(made.versions[0], EPOCH, "succeeded")
    writer.run(made.versions[0], EPOCH + FIVE, "succeeded", ahead=True)
    assert verdicts(made) == [(0, Verdict.RAN), (5, Verdict.RAN)]


def test_a_taken_due_time_that_was_asked_back_may_be_decided_by_the_version_that_holds_then() -> None:
    made = world(minutes=9)
    made.versions.append(make_version(2, EPOCH + FIVE - 3_000, taken=[EPOCH + FIVE]))
    writer = Writer(made)
    writer.run(made.versions[0], EPOCH, "succeeded")
    writer.run(made.versions[1], EPOCH + FIVE, "succeeded")
    assert made.audit().explained


def test_a_taken_due_time_without_a_record_is_missed() -> None:
    made = world(minutes=9)
    made.versions.append(make_version(2, EPOCH + FIVE - 3_000, '"0 2 * * *"', taken=[EPOCH + FIVE]))
    Writer(made).run(made.versions[0], EPOCH, "succeeded")
    assert verdicts(made) == [(0, Verdict.RAN), (5, Verdict.MISSED)]


def test_a_version_that_lists_what_was_no_due_time_is_not_explained() -> None:
    made = world(minutes=5)
    made.versions.append(make_version(2, EPOCH + 1, '"0 2 * * *"', taken=[EPOCH + 2]))
    Writer(made).run(made.versions[0], EPOCH, "succeeded")
    assert "taken due time" in only(made.audit().problems).detail


def test_a_schedule_that_cannot_be_read_is_not_explained() -> None:
    made = World(versions=[make_version(1, EPOCH, '"61 * * * *"')], now_ms=EPOCH + MINUTE)
    assert "can't be read" in only(made.audit().problems).detail


def test_a_record_of_an_ended_term_is_not_explained_and_changes_nothing() -> None:
    made = world(minutes=5)
    Writer(made).run(made.versions[0], EPOCH, "succeeded")
    last = made.entries[-1]
    assert isinstance(last.record, Run)
    barrier = Entry(topic="runs", key="!barrier", record=Barrier(id="b", process="h:1", generation=1), append_ms=EPOCH + 2_000)
    stale = replace(last, record=replace(last.record, state=RunState.FAILED, term=1))
    result = replace(made, entries=[*made.entries, barrier, stale]).audit()
    assert any("stands after term" in finding.detail for finding in result.problems)


def test_an_attempt_granted_to_two_claims_is_not_explained() -> None:
    made = world(minutes=5)
    run = replace(make_run(made.versions[0], EPOCH), state=RunState.RUNNING, attempt=1, claim=1, incarnation="a.1")
    for each in (run, replace(run, claim=2)):
        made.entries.append(Entry(topic="runs", key=run.key, record=each, append_ms=EPOCH))
    assert "granted to" in only(made.audit().problems).detail


def test_manual_runs_are_apart_and_need_no_due_time() -> None:
    made = world(minutes=5)
    writer = Writer(made)
    writer.run(made.versions[0], EPOCH, "succeeded")
    manual = replace(make_run(made.versions[0], EPOCH + 1_234), command="c-1", trigger="manual", state=RunState.CANCELLED)
    made.entries.append(Entry(topic="runs", key=manual.key, record=manual, append_ms=EPOCH + 2_000))
    result = made.audit()
    assert result.explained
    assert only(result.manual).verdict == Verdict.CANCELLED and only(result.scheduled).verdict == Verdict.RAN


def test_runs_of_a_job_without_versions_are_not_explained() -> None:
    made = world(minutes=5)
    Writer(made).run(made.versions[0], EPOCH, "succeeded")
    assert not replace(made, versions=[]).audit().explained


def test_what_a_calendar_excludes_is_told_with_the_entry() -> None:
    weekdays = '{"cron":"0 * * * *","calendar":{"exclude":["2026-11-30"]}}'  # EPOCH lies on that day
    made = World(versions=[make_version(1, EPOCH, weekdays)], now_ms=EPOCH + 3 * 60 * MINUTE)
    finding = only(made.audit().findings)
    assert (finding.verdict, finding.count, finding.due_ms) == (Verdict.EXCLUDED, 3, EPOCH)
    assert "2026-11-30" in finding.reason


def test_lateness_counts_from_where_jitter_put_the_start() -> None:
    schedule = '{"cron": "0 * * * *", "jitter": "50m"}'
    made = World(versions=[make_version(1, EPOCH, schedule)], now_ms=EPOCH + 59 * MINUTE)
    put_off = compile_version(made.versions[0]).start_offset(EPOCH)
    assert put_off > 61_000, "the draw does not show what the test is about"
    for delay, verdict in ((put_off, Verdict.RAN), (put_off + 60_000, Verdict.RAN), (put_off + 60_001, Verdict.LATE)):
        once = replace(made, entries=[])
        Writer(once).run(once.versions[0], EPOCH, "succeeded", delay_ms=delay - 1_000)  # a first attempt begins 1 s later
        finding = only(once.audit().findings)
        assert (finding.verdict, finding.detail) == (
            verdict, f"attempt 1, begun {delay} ms after, put off by {put_off} ms (jitter)"
        )  # fmt: skip


def test_only_the_job_asked_for() -> None:
    made = world(minutes=5)
    made.versions.append(make_version(1, EPOCH, job="other"))
    assert {finding.job for finding in made.audit().findings} == {"menu", "other"}
    assert {finding.job for finding in made.audit(job="other").findings} == {"other"}


def test_totals_name_every_verdict() -> None:
    assert set(world().audit().totals()) == set(Verdict)
