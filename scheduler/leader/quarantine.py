"""Says whom the plan left out, once each: what a bug keeps from being decided must not be silent, nor flood the log."""

from __future__ import annotations

import logging

from dueline.scheduler.core.guard import Culprits
from dueline.scheduler.core.state import State
from dueline.scheduler.core.trouble import Trouble

log = logging.getLogger(__name__)


class Quarantine:
    """One term's account of jobs set aside, inputs refused and workers passed over."""

    def __init__(self) -> None:
        self._jobs: dict[str, str] = {}  # job -> what was said of it
        self._workers: set[str] = set()

    def say_uncompiled(self, state: State) -> None:
        """Jobs whose stored schedule this release does not understand: they have no due times until they are published anew."""
        for job_id, job in sorted(state.jobs.items()):
            if job.latest.problem and not job.latest.deleted:
                log.error(
                    "job %s has no due times: its stored schedule does not compile (%s). Publish it with one that does, or run "
                    "schedulers of the release that took it",
                    job_id,
                    job.latest.problem,
                    extra={"action": "schedule_uncompiled", "job": job_id},
                )

    def left_out(self, culprits: Culprits) -> None:
        """Inputs and workers that the round could not decide."""
        for (topic, partition, offset), trouble in culprits.reads.items():
            log.error(
                "a bug: %s[%d] offset %d cannot be decided and was refused, all else goes on: %s\n%s",
                topic,
                partition,
                offset,
                trouble.error,
                trouble.traceback,
                extra={"action": "quarantine_input", "topic": topic, "partition": partition, "offset": offset},
            )
        for incarnation, trouble in culprits.workers.items():
            if incarnation not in self._workers:
                self._workers.add(incarnation)
                log.error(
                    "a bug: what worker %s says cannot be decided, all else goes on: %s\n%s",
                    incarnation,
                    trouble.error,
                    trouble.traceback,
                    extra={"action": "quarantine_worker", "incarnation": incarnation},
                )

    def set_aside(self, state: State) -> None:
        """Jobs that are set aside in this state: each is said once, and again when something else ails it."""
        if not state.aside and not self._jobs:
            return
        for job_id, trouble in state.aside.items():
            if self._jobs.get(job_id) != trouble.error:
                self._say(job_id, trouble)
        for job_id in self._jobs.keys() - state.aside.keys():
            log.warning("job %s is decided again", job_id, extra={"action": "quarantine_over", "job": job_id})
        self._jobs = {job_id: trouble.error for job_id, trouble in state.aside.items()}

    def _say(self, job_id: str, trouble: Trouble) -> None:
        log.error(
            "a bug: job %s cannot be decided and is set aside, all other jobs go on; its due times are kept and found late "
            "when a new version of it or another scheduler release is there: %s\n%s",
            job_id,
            trouble.error,
            trouble.traceback,
            extra={"action": "quarantine_job", "job": job_id},
        )
