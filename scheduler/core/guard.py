"""Who is being decided when something is raised: one input, one job or one worker, and what is done without it.

A bug that one input or one job meets must not stop everybody else's. So each of them is decided under a guard, which
knows whom it was about; `quarantine` decides the round anew without those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dueline.scheduler.core.inputs import Read
from dueline.scheduler.core.trouble import Trouble, trouble_of
from dueline.schemas.command import Command
from dueline.schemas.job import Job
from dueline.schemas.work import AttemptEvent

Coordinates = tuple[str, int, int]
"""Topic, partition and offset of an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """Whom a round cannot decide, and what each of them raised."""

    reads: Mapping[Coordinates, Trouble] = field(default_factory=dict)
    jobs: Mapping[str, Trouble] = field(default_factory=dict)  # whose due times and waiting runs are left as they are
    workers: Mapping[str, Trouble] = field(default_factory=dict)  # incarnation -> ...

    def __bool__(self) -> bool:
        return bool(self.reads or self.jobs or self.workers)

    def __len__(self) -> int:
        return len(self.reads) + len(self.jobs) + len(self.workers)

    def and_also(self, more: Culprits) -> Culprits:
        """All of both."""
        return Culprits(
            reads={**self.reads, **more.reads}, jobs={**self.jobs, **more.jobs}, workers={**self.workers, **more.workers}
        )


class Guard:
    """Decides one thing after another. `lenient`: notes who raised and goes on, else the exception goes on its way.

    A job about which something was raised is not touched again by this guard: half of it may have been decided.
    """

    def __init__(self, *, lenient: bool = False, aside: Mapping[str, Trouble] | None = None, probing: bool = False) -> None:
        """`aside`: jobs to be left alone. `probing`: encode each record at once, to see whose cannot be."""
        self.probing = probing
        self._lenient = lenient
        self._aside = aside or {}
        self._reads: dict[Coordinates, Trouble] = {}
        self._jobs: dict[str, Trouble] = {}
        self._workers: dict[str, Trouble] = {}
        self._touched: set[str] = set()

    @property
    def met(self) -> Culprits:
        """Who raised so far."""
        return Culprits(reads=self._reads, jobs=self._jobs, workers=self._workers)

    def leaves(self, job_id: str) -> bool:
        """Whether the job is left alone."""
        return job_id in self._aside or job_id in self._touched

    def read(self, read: Read[Any], act: Callable[..., object], *args: Any) -> None:
        """Decide one input."""
        job_id = job_of(read)
        if job_id in self._touched:
            return
        trouble = self._raised(act, args)
        if trouble is not None:
            self._reads[read.topic, read.partition, read.offset] = trouble
            self._touched.add(job_id)

    def job(self, job_id: str, act: Callable[..., object], *args: Any) -> None:
        """Decide what time brings for one job."""
        if self.leaves(job_id):
            return
        trouble = self._raised(act, args)
        if trouble is not None:
            self._jobs[job_id] = trouble
            self._touched.add(job_id)

    def worker(self, incarnation: str, act: Callable[..., object], *args: Any) -> None:
        """Decide about one worker."""
        trouble = self._raised(act, args)
        if trouble is not None:
            self._workers[incarnation] = trouble

    def _raised(self, act: Callable[..., object], args: tuple[Any, ...]) -> Trouble | None:
        try:
            act(*args)
        except MemoryError:  # of this process now, not of what it looks at
            raise
        except Exception as error:
            if not self._lenient:
                raise
            return trouble_of(error)
        return None


def job_of(read: Read[Any]) -> str:
    """The job that an input is about, as far as it says."""
    value = read.value
    if isinstance(value, Job):
        return value.id
    if isinstance(value, Command):
        return value.job or value.run.rpartition("@")[0]
    if isinstance(value, AttemptEvent):
        return value.run.rpartition("@")[0]
    return read.key.decode(errors="replace")
