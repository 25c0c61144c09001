"""Job files: YAML or JSON, one job or many, checked whole before anything is sent.

A file holds a job, a list of jobs, a mapping with `jobs:`, or several YAML documents of these. Every fault of every job
is reported with its line; a file with one fault is refused as a whole, so that half a file is never in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dueline.scheduler.cli.yamlmarks import Located, TextError, load_documents
from dueline.scheduler.core.schedule import Schedule, ScheduleError, compile_schedule
from dueline.schemas.definition import job_from
from dueline.schemas.errors import DefinitionError, Path
from dueline.schemas.job import Job

MAX_FILE_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadJob:
    """A job of a file with its compiled schedule. `line`: where it begins."""

    job: Job
    schedule: Schedule
    line: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class FileFault:
    """Something wrong in a job file."""

    line: int
    where: str  # job and field
    message: str

    def show(self, name: str) -> str:
        """`FILE:LINE: job menu: retry.max: ...`"""
        return f"{name}:{self.line}: {self.where}: {self.message}" if self.where else f"{name}:{self.line}: {self.message}"


class FileRefused(Exception):
    """A job file with faults."""

    def __init__(self, faults: list[FileFault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = sorted(faults)


def read_jobs(text: str) -> list[ReadJob]:
    """The jobs of a file's text, in its order. Raises FileRefused with every fault there is."""
    if len(text.encode()) > MAX_FILE_BYTES:
        raise FileRefused([FileFault(line=1, where="", message=f"larger than {MAX_FILE_BYTES // 1024 // 1024} MiB: split it")])
    try:
        documents = load_documents(text)
    except TextError as error:
        raise FileRefused([FileFault(line=error.line, where="", message=error.message)]) from error
    jobs: list[ReadJob] = []
    faults: list[FileFault] = []
    for document in documents:
        for path, value in _entries(document, faults):
            read = _read_job(document, path, value)
            if isinstance(read, ReadJob):
                jobs.append(read)
            else:
                faults += read
    faults += _twice(jobs)
    if not jobs and not faults:
        faults.append(FileFault(line=1, where="", message="no job in it: a job has at least id, schedule and handler"))
    if faults:
        raise FileRefused(faults)
    return jobs


def _entries(document: Located, faults: list[FileFault]) -> Iterator[tuple[Path, object]]:
    """The job mappings of a document with their paths."""
    value = document.value
    if isinstance(value, list):
        yield from (((position,), entry) for position, entry in enumerate(value))
    elif isinstance(value, dict) and "jobs" in value and "handler" not in value:
        for key in value:
            if key != "jobs":
                message = f"unknown field {key!r} beside `jobs`: a file of several jobs has that field alone"
                faults.append(FileFault(line=document.line((key,)), where="", message=message))
        if isinstance(value["jobs"], list):
            yield from ((("jobs", position), entry) for position, entry in enumerate(value["jobs"]))
        else:
            faults.append(FileFault(line=document.line(("jobs",)), where="jobs", message="must be a list of jobs"))
    else:
        yield (), value


def _read_job(document: Located, path: Path, value: object) -> ReadJob | list[FileFault]:
    name = value.get("id") if isinstance(value, dict) else None
    label = f"job {name}" if isinstance(name, str) else f"job {path[-1]}" if path else "job"
    try:
        job = job_from(value)
    except DefinitionError as error:
        return [
            FileFault(
                line=document.line((*path, *fault.path)),
                where=f"{label}: {fault.where}" if fault.path else label,
                message=fault.message,
            )
            for fault in error.faults
        ]
    try:
        schedule = compile_schedule(job.schedule, job_id=job.id)
    except ScheduleError as error:
        line = document.line((*path, "schedule"))
        return [FileFault(line=line, where=f"{label}: schedule", message=str(error))]
    return ReadJob(job=job, schedule=schedule, line=document.line(path))


def _twice(jobs: list[ReadJob]) -> list[FileFault]:
    first: dict[str, int] = {}
    faults = []
    for read in jobs:
        if read.job.id in first:
            message = f"defined before, on line {first[read.job.id]}: an id names one job"
            faults.append(FileFault(line=read.line, where=f"job {read.job.id}", message=message))
        first.setdefault(read.job.id, read.line)
    return faults
