"""The four acts. Each waits for named events, does its damage, and returns what it measured; nothing is judged here."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from dueline.schemas.run import RunState
from examples.demo.ledger import TakeOver
from examples.demo.stage import AHEAD_S, BREAD, Stage
from examples.demo.week import Day

KILL_AFTER = 0.6
"""Of the mails: at 600 of 1,000."""
FREEZE = "leader.before-commit"
"""Records written, not yet committed: the worst moment to stop."""
FREEZE_BEFORE_MS = 300
"""The failpoint is armed so long before the leader gives Monday's run out, so that it stops in that transaction."""
KILL_BEFORE_DUE_MS = 250
"""5:59:59 and three quarters."""
DOWN_AFTER_MS = 1_500
"""How long after Thursday's due time the power comes back: more than the grace."""

REFUSAL = re.compile(r"(commit refused|refused:|_FENCED|newer owner)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sunday:
    """A worker was killed. `sent`: mails delivered when it died; `first_again_ms`: when the next worker's first mail went."""

    killed: str
    sent: int
    killed_ms: int
    successor: str
    first_again_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Monday:
    """The leader was frozen in a transaction, and woken later."""

    frozen: str
    frozen_ms: int
    old_term: int
    successor: str
    taken_over: TakeOver
    woken_ms: int
    refusal: str  # the line of the old leader's log


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuesday:
    """The leader was killed just before a due time."""

    killed: str
    killed_ms: int
    held_ahead: bool
    successor: str
    taken_over: TakeOver


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Everything was down over two due times."""

    down_ms: int
    up_ms: int
    taken_over: TakeOver


def act_one(stage: Stage) -> Sunday:
    """Sunday: a worker is killed in the middle of the mails, and another goes on behind them."""
    screen, outbox, target = stage.screen, stage.outbox(Day.SUNDAY), round(stage.subscribers * KILL_AFTER)
    screen.act("Act 1, Sunday: the server reboots while the menu goes out")
    stage.until_instant("Sunday, 06:00", stage.week.due_ms(Day.SUNDAY))
    with screen.bar("Sunday's mails", stage.subscribers) as advance:

        def far_enough() -> bool:
            advance(len(outbox.look()))
            return len(outbox.mails) >= target

        stage.until(f"{target} mails to be out", far_enough, 15)
    victim = stage.crew.with_pid(outbox.mails[-1].pid)
    victim.strike()
    victim.gone()
    killed_ms = now_ms()
    sent, pid = len(outbox.look()), victim.pid
    screen.say(f"{victim.name} is killed -9 after {sent} mails", "red")
    stage.until("another worker to go on", lambda: any(mail.pid != pid for mail in outbox.look()), 15)
    first = next(mail for mail in outbox.mails if mail.pid != pid)
    successor = stage.crew.with_pid(first.pid)
    screen.say(f"{successor.name} goes on with {first.to} after {(first.sent_ms - killed_ms) / 1000:.1f} s", "green")
    victim.start()  # its server is up again
    stage.until_sent(Day.SUNDAY, 15)
    told_sent(stage, Day.SUNDAY)
    return Sunday(
        killed=victim.name, sent=sent, killed_ms=killed_ms, successor=successor.name, first_again_ms=first.sent_ms
    )


def act_two(stage: Stage) -> Monday:
    """Monday: the leader is frozen inside a transaction across the due time, and wakes when another leads."""
    screen, due_ms = stage.screen, stage.week.due_ms(Day.MONDAY)
    screen.act("Act 2, Monday: the leader freezes in the middle of a transaction, and wakes up again")
    stage.until_instant("Monday, just before the run is given out", due_ms - AHEAD_S * 1000 - FREEZE_BEFORE_MS)
    frozen, old = stage.leader, stage.ledger.leader
    log_size = frozen.log_size()
    frozen.arm(f"{FREEZE}=stop")
    stage.until("the leader to freeze", lambda: f"failpoint {FREEZE}" in "\n".join(frozen.log_lines(log_size)), AHEAD_S + 6)
    frozen_ms = now_ms()
    screen.say(f"{frozen.name} (term {old.term}) is frozen: its records are written, its commit is not sent", "red")
    stage.until("the standby to take over", lambda: stage.ledger.taken_over_since(old.term) is not None, 15)
    taken_over = stage.next_leader(old.term)
    successor = stage.crew.with_pid(taken_over.pid)
    screen.say(
        f"{successor.name} leads (term {taken_over.term}), {(taken_over.append_ms - frozen_ms) / 1000:.1f} s later", "green"
    )
    stage.until_instant("Monday, 06:00", due_ms)
    stage.until("Monday's first mail", lambda: bool(stage.outbox(Day.MONDAY).look()), 15)
    screen.say(f"Monday's menu goes out, {told_delay(stage, Day.MONDAY)}; {frozen.name} wakes and goes on with its write")
    log_size = frozen.log_size()
    frozen.wake()
    woken_ms = now_ms()
    stage.until("the broker to refuse the old leader's write", lambda: bool(refusals(frozen.log_lines(log_size))), 15)
    refusal = refusals(frozen.log_lines(log_size))[0]
    screen.say("the broker refuses it. Its log says:", "green")
    screen.quote(refusal)
    stage.until_sent(Day.MONDAY, 20)
    told_sent(stage, Day.MONDAY)
    return Monday(
        frozen=frozen.name, frozen_ms=frozen_ms, old_term=old.term, successor=successor.name, taken_over=taken_over,
        woken_ms=woken_ms, refusal=refusal,
    )  # fmt: skip


def act_three(stage: Stage) -> Tuesday:
    """Tuesday: the leader dies a moment before the due time."""
    screen, due_ms, bread = stage.screen, stage.week.due_ms(Day.TUESDAY), stage.key(Day.TUESDAY, BREAD)
    screen.act("Act 3, Tuesday: the leader dies a moment before 06:00")
    stage.until_instant("Tuesday, a moment before 06:00", due_ms - KILL_BEFORE_DUE_MS)
    victim, old = stage.leader, stage.ledger.leader
    held = stage.ledger.held_ahead(stage.key(Day.TUESDAY))
    victim.strike()
    victim.gone()
    killed_ms = now_ms()
    screen.say(f"{victim.name} is killed -9, {(due_ms - killed_ms) / 1000:.2f} s before 06:00; nobody leads", "red")
    stage.until("Tuesday's first mail", lambda: bool(stage.outbox(Day.TUESDAY).look()), 15)
    screen.say(f"the menu, granted ahead of time, goes out, {told_delay(stage, Day.TUESDAY)}", "green")
    stage.until("the standby to take over", lambda: stage.ledger.taken_over_since(old.term) is not None, 15)
    taken_over = stage.next_leader(old.term)
    successor = stage.crew.with_pid(taken_over.pid)
    after_s = (taken_over.append_ms - killed_ms) / 1000
    screen.say(f"{successor.name} leads (term {taken_over.term}), {after_s:.1f} s after the kill")
    stage.until("the bread, late", lambda: stage.ledger.succeeded(bread), 15)
    delay = told_delay(stage, Day.TUESDAY, BREAD)
    screen.say(f"the bread (dispatch_ahead: 0) was due without a record; it is found, and ordered {delay}")
    stage.until_sent(Day.TUESDAY, 20)
    told_sent(stage, Day.TUESDAY)
    return Tuesday(
        killed=victim.name, killed_ms=killed_ms, held_ahead=held, successor=successor.name, taken_over=taken_over
    )


def act_four(stage: Stage) -> Outage:
    """Wednesday and Thursday: nothing runs at all, broker included, and then everything starts again."""
    screen, old = stage.screen, stage.ledger.leader
    screen.act("Act 4, Wednesday and Thursday: the power is out")
    stage.crew.kill()
    stage.broker.kill()
    down_ms = now_ms()
    screen.say("schedulers, workers and broker are killed -9", "red")
    stage.until_instant("Wednesday, 06:00", stage.week.due_ms(Day.WEDNESDAY))
    stage.until_instant("Thursday, 06:00", stage.week.due_ms(Day.THURSDAY) + DOWN_AFTER_MS)
    screen.say("Wednesday's and Thursday's 06:00 have passed; the power is back")
    stage.broker.start()
    up_ms = now_ms()
    for child in stage.crew.all:
        child.start()
    stage.until("a scheduler to lead again", lambda: stage.ledger.taken_over_since(old.term) is not None, 30)
    taken_over = stage.next_leader(old.term)
    screen.say(f"{stage.leader.name} leads (term {taken_over.term})")
    stage.until("a decision on Wednesday", lambda: bool(stage.ledger.state(stage.key(Day.WEDNESDAY))), 15)
    for day in (Day.WEDNESDAY, Day.THURSDAY):
        run = stage.ledger.run(stage.key(day))
        if run is not None:
            decision = f"skipped ({run.reason})" if run.state == RunState.SKIPPED else f"runs late ({run.trigger})"
            screen.say(f"misfire: latest decides: {day.title}'s menu {decision}", "green")
    stage.until_sent(Day.THURSDAY, 30)
    told_sent(stage, Day.THURSDAY)
    return Outage(down_ms=down_ms, up_ms=up_ms, taken_over=taken_over)


# --- steps ------------------------------------------------------------------------------------------------------------


def now_ms() -> int:
    """The wall clock, by which the outbox tells its times too."""
    return time.time_ns() // 1_000_000


def refusals(lines: list[str]) -> list[str]:
    """What a scheduler's log says of a write that the broker refused."""
    return [line for line in lines if REFUSAL.search(line)]


def told_delay(stage: Stage, day: Day, job: str = "menu") -> str:
    """How long after its due time the run's first mail went."""
    delay_ms = stage.outbox(day, job).look()[0].sent_ms - stage.week.due_ms(day)
    return f"{delay_ms} ms after 06:00" if abs(delay_ms) < 1_000 else f"{delay_ms / 1000:.1f} s after 06:00"


def told_sent(stage: Stage, day: Day) -> None:
    """The day's result in one line."""
    stage.screen.say(f"{day.title}: {len(stage.outbox(day).look())} mails are out")
