"""A scheduler process: follow, take over when the control partition comes, lead until the term ends, and again.

    follow --assigned--> take over --barrier read--> lead
      ^  ^                  |                         |
      |  +---- overtaken ---+                         |
      +------- lost, fenced, refused, doubtful -------+

Following means folding the ledger and `jobs` all the time, so that a take-over reads only the tail. After a refusal by
generation nothing is initialised again before another generation was captured (L3); after `_FENCED` only if the
partition is still assigned (L8).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from dueline.scheduler.core.ports import (
    Aborted,
    Assignment,
    Clock,
    Contact,
    Doubtful,
    Expired,
    Fenced,
    Fencer,
    GroupReader,
    Kafka,
    Refused,
    Unavailable,
)
from dueline.scheduler.core.schedule import tzdata_version
from dueline.scheduler.leader.early import Early
from dueline.scheduler.leader.fold import EchoLost, Fold
from dueline.scheduler.leader.forgotten import ForgottenLetters
from dueline.scheduler.leader.health import Health
from dueline.scheduler.leader.intake import Intake
from dueline.scheduler.leader.jobs_reader import JobsReader
from dueline.scheduler.leader.letters import Letters
from dueline.scheduler.leader.queues import Queues
from dueline.scheduler.leader.roster import Roster
from dueline.scheduler.leader.settings import SchedulerSettings
from dueline.scheduler.leader.takeover import Lead, Overtaken, take_over
from dueline.scheduler.leader.term import Term
from dueline.scheduler.leader.unusable import Unusable
from dueline.scheduler.leader.witness import ClocksDisagree, Witness
from dueline.scheduler.leader.zone_data import YIELD_S, NewerZoneData, ZoneData
from dueline.schemas.base import NONE
from dueline.schemas.topics import Namespace

log = logging.getLogger(__name__)

FOLLOW_WAIT_S = 0.1
RETRY_WAIT_S = 0.2
CATCH_UP_TIMEOUT_S = 600.0
WHOLE_READ_TIMEOUT_S = 10.0  # less than max_poll_interval_s: the loop does not poll the election meanwhile
SAY_AGAIN_S = 60.0
HEALTHY_TERM_S = 60.0  # doubt after a term of this length begins at the first bound again
RIVAL_TIMES = 4
RIVAL_WITHIN_S = 60.0
"""Fenced this often within this time although the partition stayed ours: another deployment uses our transactional ids."""


class Scheduler:
    """One process's part in the election and, when elected, the leader. `run` blocks until stopped."""

    def __init__(
        self,
        kafka: Kafka,
        clock: Clock,
        namespace: Namespace,
        settings: SchedulerSettings,
        new_id: Callable[[], str],
    ) -> None:
        """`new_id` gives a unique id for each barrier."""
        self._kafka, self._clock, self._namespace, self._settings = kafka, clock, namespace, settings
        self._new_id = new_id
        self._health = Health(settings.health_file, clock)
        self._doubt_bound_s = settings.doubt_bound_s
        self._refused_serial = -1  # of the assignment that the broker refused
        self._resigned_until_s = 0.0
        self._unusable = Unusable(clock)
        self._letters = Letters(lambda: kafka.plain_writer("letters"), namespace)
        self._forgotten = ForgottenLetters(
            kafka.admin, clock, namespace, self._unusable, process=settings.process, rejected_look_s=settings.rejected_look_s
        )
        self._early = Early()
        self._zone_data = ZoneData(tzdata_version())
        self._said: tuple[str, float] = ("", 0.0)
        self._rivals: deque[float] = deque(maxlen=RIVAL_TIMES)

    def run(self, stop: threading.Event) -> int:
        """Follow and lead until `stop` is set; the exit code. Raises LedgerDamaged when the ledger cannot be read."""
        fold = Fold(self._kafka.log_reader("fold"), self._namespace, self._clock)
        jobs = JobsReader(self._kafka.log_reader("jobs"), (self._namespace.jobs, 0))
        contact = self._kafka.contact((self._namespace.workers, 0))  # since before the first term: silence must be proved
        election: GroupReader | None = None
        try:
            self._catch_up(fold, stop)
            while not stop.is_set():
                if election is None and self._clock.monotonic_s() >= self._resigned_until_s:
                    election = self._join()
                if election is None:
                    self._follow_without_vote(fold, jobs)
                elif self._round(election, fold, jobs, contact, stop):
                    log.warning("resigned from the election for a while", extra={"action": "resign"})
                    election.close()
                    election = None
        finally:
            if election is not None:
                election.close()  # first: leave the group, so that a standby takes over at once
            self._letters.close()
            contact.close()
            jobs.close()
            fold.close()
        return 0

    # -- follow ----------------------------------------------------------------------------------------------------------

    def _catch_up(self, fold: Fold, stop: threading.Event) -> None:
        """Read what can be read of the ledger before joining, so that a new process does not lead with everything yet to be read.
        Not what stands behind an open transaction: nobody ends it but a take-over, if the broker forgot to."""
        topics = (self._namespace.runs, self._namespace.job_versions)
        ends: dict[str, int] | None = None
        while not stop.is_set():
            self._health.beat("starting")
            try:
                ends = ends or {topic: self._kafka.admin().stable_offset((topic, 0)) for topic in topics}
            except Unavailable:
                stop.wait(RETRY_WAIT_S)
                continue
            fold.poll(FOLLOW_WAIT_S)
            if fold.passed(ends):
                return

    def _join(self) -> GroupReader:
        return self._kafka.group_reader(
            self._namespace.scheduler_group,
            self._namespace.control,
            session_timeout_s=self._settings.session_timeout_s,
            max_poll_interval_s=self._settings.max_poll_interval_s,
        )

    def _follow_without_vote(self, fold: Fold, jobs: JobsReader) -> None:
        self._health.beat("standby")
        fold.poll(FOLLOW_WAIT_S)
        self._follow_jobs(fold, jobs)

    def _follow_jobs(self, fold: Fold, jobs: JobsReader) -> None:
        known = fold.state.positions.get((self._namespace.jobs, 0))
        jobs.start(known.offset if known else None)
        jobs.poll()
        if known is not None:
            jobs.drop_below(known.offset)

    def _round(
        self, election: GroupReader, fold: Fold, jobs: JobsReader, contact: Contact, stop: threading.Event
    ) -> bool:
        """Follow for a moment; lead if assigned. True: resign."""
        self._health.beat("standby")
        assignment, _ = election.poll(0.0, 1)
        if not self._may_lead(assignment):
            fold.poll(FOLLOW_WAIT_S)
            self._follow_jobs(fold, jobs)
            return False
        assert assignment is not None
        return self._lead(election, assignment, fold, jobs, contact, stop)

    def _may_lead(self, assignment: Assignment | None) -> bool:
        if assignment is None or (self._namespace.control, 0) not in assignment.partitions:
            return False
        return assignment.serial != self._refused_serial

    # -- lead ------------------------------------------------------------------------------------------------------------

    def _lead(
        self,
        election: GroupReader,
        assignment: Assignment,
        fold: Fold,
        jobs: JobsReader,
        contact: Contact,
        stop: threading.Event,
    ) -> bool:
        """Take over and lead until the term ends. True: resign. What ended it decides how the next one may begin."""
        began_s = self._clock.monotonic_s()
        try:
            lead = self._take_over(election, assignment, fold)
            self._lead_term(lead, election, fold, jobs, contact, stop)
        except ClocksDisagree as error:
            log.error("%s: resigning", error, extra={"action": "resign"})
            self._resigned_until_s = self._clock.monotonic_s() + self._settings.resign_pause_s
            return True
        except NewerZoneData:
            self._resigned_until_s = self._clock.monotonic_s() + YIELD_S
            return True
        except Refused as error:
            self._refused_serial = assignment.serial
            self._say("the broker refused this generation; waiting for another one", error, "refused")
        except Doubtful as error:
            led_long = self._clock.monotonic_s() - began_s > HEALTHY_TERM_S
            first = self._settings.doubt_bound_s
            self._doubt_bound_s = first if led_long else min(self._doubt_bound_s * 2, self._settings.max_doubt_bound_s)
            self._say("a commit was doubtful; taking over anew from what is read back", error, "doubtful")
        except Fenced as error:
            self._say("fenced by a newer producer; taking over anew if still assigned", error, "fenced")
            self._suspect_rival(election, assignment)
            stop.wait(RETRY_WAIT_S)
        except Overtaken as error:
            self._say("the group moved on; taking over anew if still assigned", error, "overtaken")
        except EchoLost as error:
            self._say("the ledger did not come back as it was written; reading all of it anew", error, "echo_lost")
            fold.restart()
        except Aborted as error:
            self._leave_alone(error)
            stop.wait(RETRY_WAIT_S)
        except Expired as error:
            self._say("the term is over; taking over anew if still assigned", error, type(error).__name__.lower())
            stop.wait(RETRY_WAIT_S)
        except Unavailable as error:
            self._say("the broker does not answer; trying again", error, "unavailable")
            stop.wait(RETRY_WAIT_S)
        finally:
            fold.follow()
        return False

    def _leave_alone(self, error: Aborted) -> None:
        """A queue's topic, or that of dead letters, that cannot be written must not hold up everybody else's jobs."""
        if error.partitions and all(self._is_derived(topic) for topic, _ in error.partitions):
            self._unusable.mark_partitions(error.partitions)
            log.error("they are left alone for a while, other jobs go on: %s", error, extra={"action": "partitions_unusable"})
            return
        derived = error.topic.startswith(self._namespace.dispatch_prefix) or error.topic == self._namespace.rejected
        if not derived:
            self._say("the transaction was aborted; taking over anew if still assigned", error, "aborted")
            return
        self._unusable.mark(error.topic)
        log.error("%s is left alone for a while, other jobs go on: %s", error.topic, error, extra={"action": "topic_unusable"})

    def _is_derived(self, topic: str) -> bool:
        """Whether what stands in the topic is derived from the ledger, and so can be written later."""
        return topic.startswith(self._namespace.dispatch_prefix) or topic in (self._namespace.signals, self._namespace.rejected)

    def _say(self, what: str, error: Exception, action: str) -> None:
        """Say it once: a trouble that lasts is not repeated at every try."""
        now_s = self._clock.monotonic_s()
        said, since_s = self._said
        again = action == said and now_s - since_s <= SAY_AGAIN_S
        if not again:
            self._said = (action, now_s)
        log.log(logging.DEBUG if again else logging.WARNING, "%s (%s)", what, error, extra={"action": action})

    def _suspect_rival(self, election: GroupReader, assignment: Assignment) -> None:
        """A stale owner fences a leader once. Again and again means a deployment that should not share these names (T24)."""
        now, _ = election.poll(0.0, 1)
        if now is None or now.serial != assignment.serial:
            return
        now_s = self._clock.monotonic_s()
        self._rivals.append(now_s)
        if len(self._rivals) == RIVAL_TIMES and now_s - self._rivals[0] < RIVAL_WITHIN_S:
            self._rivals.clear()
            log.error(
                "fenced %d times within %.0f s while holding %s: another deployment uses the transactional ids %s. Give each "
                "deployment a namespace of its own (--namespace)",
                RIVAL_TIMES,
                RIVAL_WITHIN_S,
                self._namespace.control,
                ", ".join(self._namespace.leader_ids),
                extra={"action": "rival_deployment"},
            )

    def _take_over(self, election: GroupReader, assignment: Assignment, fold: Fold) -> Lead:
        def keep_assigned() -> bool:
            self._health.beat("taking-over")
            now, _ = election.poll(0.0, 1)
            return now is not None and now.serial == assignment.serial

        return take_over(
            self._kafka,
            self._namespace,
            assignment=assignment,
            fold=fold,
            clock=self._clock,
            settings=self._settings,
            doubt_bound_s=self._doubt_bound_s,
            barrier_id=self._new_id(),
            keep_assigned=keep_assigned,
        )

    def _lead_term(
        self,
        lead: Lead,
        election: GroupReader,
        fold: Fold,
        jobs: JobsReader,
        contact: Contact,
        stop: threading.Event,
    ) -> None:
        admin, settings = self._kafka.admin(), self._settings
        fencer: Fencer = self._kafka.fencer(self._namespace.attempts, self._namespace.steps)
        reader, beats = self._kafka.log_reader("inputs"), self._kafka.log_reader("heartbeats", uncommitted=True)
        term: Term | None = None
        try:
            self._zone_data.check(lead.state)
            queues = Queues(admin, self._namespace, self._clock, self._unusable)
            queues.begin(lead.state)
            roster = Roster(
                self._clock,
                contact,
                self._namespace,
                timeout_s=settings.worker_timeout_s,
                fresh_s=settings.fresh_heartbeat_s,
            )
            intake = Intake(
                self._kafka,
                self._namespace,
                election=election,
                jobs=jobs,
                reader=reader,
                beats=beats,
                roster=roster,
                fencer=fencer,
                queues=queues,
                state=lead.state,
            )
            if self._must_read_whole(lead):
                intake.find_absent_jobs(lead.state, WHOLE_READ_TIMEOUT_S)  # not found out now: at the next take-over
            term = Term(
                lead,
                namespace=self._namespace,
                clock=self._clock,
                fold=fold,
                intake=intake,
                fencer=fencer,
                witness=Witness(self._clock, max_skew_s=settings.max_clock_skew_s, patience_s=settings.skew_patience_s),
                settings=settings,
                unusable=self._unusable,
                letters=self._letters,
                forgotten=self._forgotten,
                early=self._early,
                tzdata=self._zone_data.present,
            )
            while not stop.is_set():
                self._health.beat("leader", term=lead.term)
                term.tick()
                self._check_assignment(election, lead)
        finally:
            if term is not None:
                term.close()
            else:
                lead.writer.close()
            reader.close()
            beats.close()
            fencer.close()

    def _check_assignment(self, election: GroupReader, lead: Lead) -> None:
        """A new capture ends the term even when it still has the partition: it is another generation (T8)."""
        now = election.assignment()
        if now is None or now.serial != lead.assignment.serial:
            raise Overtaken("the group has a new generation")

    def _must_read_whole(self, lead: Lead) -> bool:
        """Whether `jobs` was last read so long ago that tombstones may be gone, or never yet (L12)."""
        read_ms = lead.state.jobs_read_ms
        if read_ms == NONE:
            return any(job.live for _, job in lead.state.jobs.items())
        return lead.began_ms - read_ms > self._settings.tombstone_retention_s * 1000 / 2
