"""What dueline promises, held against what happened: the outbox, the log, and the audit's own answer.

The ledger and the workers' events are read anew here, from the first record on, by the reader that the audit uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dueline.scheduler.audit.readmodel import Attempts, Ledger, read_attempts, read_ledger
from dueline.schemas.run import Run, RunState, Trigger, iso
from examples.demo.acts import Monday, Outage, Sunday, Tuesday
from examples.demo.handlers import LANES
from examples.demo.outbox import Tally, count
from examples.demo.stage import BREAD, MENU, NAMESPACE, Stage
from examples.demo.week import Day

IN_FLIGHT: Final = LANES
"""Mails that may be in flight when a worker is killed."""
EARLY_MS: Final = -50
"""The clocks of a worker and of the broker are read in two processes: so much may a start seem early."""
ON_THE_SECOND_MS: Final = 1_000
SENT_DAYS: Final = (Day.SUNDAY, Day.MONDAY, Day.TUESDAY, Day.THURSDAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A promise, and whether it was kept. `found` says what was counted."""

    text: str
    kept: bool
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Morning:
    """A due time of a job: what was sent, and what ledger and audit say of it."""

    job: str
    day: Day
    run: Run
    tally: Tally
    first_mail_ms: int | None  # after the due time
    attempts: int
    steps_skipped: int
    answer: str  # the audit's
    answers: int  # how many the audit has
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the four acts measured."""

    sunday: Sunday
    monday: Monday
    tuesday: Tuesday
    outage: Outage


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything that the demo reports."""

    played: Played
    mornings: list[Morning]
    audit: dict[str, Any]
    promises: list[Promise]

    @property
    def broken(self) -> list[Promise]:
        """Those that were not kept."""
        return [promise for promise in self.promises if not promise.kept]


def judge(stage: Stage, played: Played) -> Outcome:
    """Read everything again, and judge."""
    done = stage.crew.command("audit", "--json", "--from", "-1h", "--grace", "5")
    if not done.stdout.strip():
        raise RuntimeError(f"`dueline audit` gave no answer, exit code {done.returncode}: {done.stderr}")
    audit = json.loads(done.stdout)
    admin = stage.cluster.admin()
    ledger, attempts = read_ledger(admin, NAMESPACE), read_attempts(admin, NAMESPACE)
    mornings = [_morning(stage, ledger, attempts, audit, day, MENU) for day in stage.week.days]
    mornings.append(_morning(stage, ledger, attempts, audit, Day.TUESDAY, BREAD))
    promises = [
        *_of_sending(stage, mornings),
        *_of_acts(stage, mornings, ledger, played),
        *_of_audit(mornings, audit, done.returncode),
    ]
    return Outcome(played=played, mornings=mornings, audit=audit, promises=promises)


# --- steps ------------------------------------------------------------------------------------------------------------


def _morning(stage: Stage, ledger: Ledger, attempts: Attempts, audit: dict[str, Any], day: Day, job: str) -> Morning:
    key, due_ms = stage.key(day, job), stage.week.due_ms(day)
    mails = stage.outbox(day, job).look()
    run = ledger.runs[key].last.record
    answers = [each for each in audit["findings"] if each["job"] == job and each["due"] == iso(due_ms)]
    return Morning(
        job=job,
        day=day,
        run=run,
        tally=count(mails),
        first_mail_ms=mails[0].sent_ms - due_ms if mails else None,
        attempts=run.attempt,
        steps_skipped=sum(seen.record.steps_skipped for seen in attempts.finishes(key)),
        answer=", ".join(each["verdict"] for each in answers) or "none",
        answers=len(answers),
        reason=run.reason if run.state == RunState.SKIPPED else run.trigger,
    )


def _of_sending(stage: Stage, mornings: list[Morning]) -> Iterator[Promise]:
    """Once to everybody, and a repetition only of what was in flight at a kill, with the same key."""
    for morning in mornings:
        if morning.job != MENU or morning.day not in SENT_DAYS:
            continue
        tally, allowed = morning.tally, IN_FLIGHT if morning.day == Day.SUNDAY else 0
        yield Promise(
            text=f"{morning.day.title}: each of the {stage.subscribers:,} subscribers has the menu",
            kept=tally.subscribers == stage.subscribers,
            found=f"{tally.subscribers:,} subscribers, {tally.delivered:,} mails",
        )
        yield Promise(
            text=f"{morning.day.title}: {_at_most(allowed)}",
            kept=tally.repeated <= allowed and tally.delivered == tally.subscribers + tally.repeated
            and tally.keys_per_subscriber == 1,
            found=f"{tally.repeated} sent again, {tally.keys_per_subscriber} key a subscriber at most",
        )  # fmt: skip


def _of_acts(stage: Stage, mornings: list[Morning], ledger: Ledger, played: Played) -> Iterator[Promise]:
    menu = {morning.day: morning for morning in mornings if morning.job == MENU}
    bread = next(morning for morning in mornings if morning.job == BREAD)
    yield from _of_sunday(menu[Day.SUNDAY], played.sunday)
    yield from _of_monday(menu[Day.MONDAY], played.monday, ledger, stage)
    yield from _of_tuesday(menu[Day.TUESDAY], bread, played.tuesday, stage)
    yield from _of_outage(menu[Day.WEDNESDAY], menu[Day.THURSDAY])


def _of_sunday(morning: Morning, act: Sunday) -> Iterator[Promise]:
    # The build is a step too; the mails in flight at the kill may not have been recorded.
    least = act.sent + 1 - IN_FLIGHT
    yield Promise(
        text="Sunday: after the kill another worker goes on where the log ends",
        kept=act.successor != act.killed and least <= morning.steps_skipped <= act.sent + 1,
        found=f"{act.killed} died after {act.sent} mails; {act.successor} skipped {morning.steps_skipped} recorded steps",
    )


def _of_monday(morning: Morning, act: Monday, ledger: Ledger, stage: Stage) -> Iterator[Promise]:
    due_ms = stage.week.due_ms(Day.MONDAY)
    yield Promise(
        text="Monday: while the leader is frozen across 06:00, the standby takes over and runs it",
        kept=act.successor != act.frozen and act.frozen_ms < due_ms < act.woken_ms and morning.run.term >= act.taken_over.term
        and morning.run.state == RunState.SUCCEEDED,
        found=f"frozen {(act.woken_ms - act.frozen_ms) / 1000:.1f} s; the record is of term {morning.run.term}, the frozen "
        f"leader's was {act.old_term}",
    )  # fmt: skip
    yield Promise(
        text="Monday: the old leader wakes, goes on with its write, and the broker refuses it",
        kept=bool(act.refusal) and not ledger.stale,
        found=f"refused; {len(ledger.stale)} records of an older term stand behind a newer one",
    )


def _of_tuesday(menu: Morning, bread: Morning, act: Tuesday, stage: Stage) -> Iterator[Promise]:
    due_ms = stage.week.due_ms(Day.TUESDAY)
    leaderless_ms = act.taken_over.append_ms - due_ms
    first = menu.first_mail_ms
    yield Promise(
        text="Tuesday: a run granted ahead of time starts on the second, although nobody leads",
        kept=act.held_ahead and act.killed_ms < due_ms and first is not None
        and EARLY_MS <= first < min(ON_THE_SECOND_MS, leaderless_ms),
        found=f"first mail {first} ms after 06:00; the next leader came {leaderless_ms} ms after 06:00",
    )  # fmt: skip
    begun = bread.first_mail_ms
    yield Promise(
        text="Tuesday: a job with dispatch_ahead 0 is found due without a record, and runs late, once",
        kept=bread.tally.delivered == 1 and bread.run.trigger == Trigger.CATCH_UP and bread.answer == "late"
        and begun is not None and begun > leaderless_ms,
        found=f"{bread.tally.delivered} order, {begun} ms after 06:00, {bread.run.trigger}, the audit says {bread.answer}",
    )  # fmt: skip


def _of_outage(wednesday: Morning, thursday: Morning) -> Iterator[Promise]:
    yield Promise(
        text="Wednesday and Thursday: the late-run policy decides, and says what it decided",
        kept=wednesday.run.state == RunState.SKIPPED and bool(wednesday.run.reason) and wednesday.tally.delivered == 0
        and thursday.run.state == RunState.SUCCEEDED and thursday.run.trigger == Trigger.CATCH_UP,
        found=f"Wednesday {wednesday.run.state} ({wednesday.run.reason}), {wednesday.tally.delivered} mails; "
        f"Thursday {thursday.run.state} ({thursday.run.trigger})",
    )  # fmt: skip


def _at_most(mails: int) -> str:
    return f"at most {mails} mails (in flight at the kill) are sent again, by the same key" if mails else "no mail is sent again"


def _of_audit(mornings: list[Morning], audit: dict[str, Any], exit_code: int) -> Iterator[Promise]:
    totals = audit["totals"]
    bad = {verdict: totals[verdict] for verdict in ("missed", "duplicated", "early", "unexplained")}
    answered, due = sum(each.answers == 1 for each in mornings), len(mornings)
    yield Promise(
        text=f"dueline audit: each of the {due} due times has an answer, and everything is explained",
        kept=not any(bad.values()) and audit["explained"] and exit_code == 0 and answered == due and not totals["pending"],
        found=f"{answered} have one answer each; " + ", ".join(f"{number} {verdict}" for verdict, number in bad.items()),
    )
