"""Job definitions as users write them, JSON or YAML, and what may stand on `jobs`; commands: `command_definition`.

Fields and bounds are checked here. Of `schedule` only shape and size are: the leader compiles it, and rejects the
record if it cannot.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from dueline.schemas.command_definition import CommandDefinition, command_from, parse_command
from dueline.schemas.duration import format_duration
from dueline.schemas.errors import DecodeError, DefinitionError, Fault
from dueline.schemas.fields import (
    MAX_PAYLOAD_BYTES,
    Definition,
    Duration,
    JsonText,
    Text,
    at_most,
    between,
    json_text,
    name,
    one_of,
    read,
    validate,
)
from dueline.schemas.job import Job, Misfire, Overlap
from dueline.schemas.json_text import load_json

__all__ = [
    "MAX_PAYLOAD_BYTES", "MAX_SCHEDULE_BYTES", "CommandDefinition", "JobDefinition", "RetryDefinition", "command_from",
    "job_from", "job_to_definition", "parse_command", "parse_job",
]  # fmt: skip

MAX_SCHEDULE_BYTES: Final = 64 * 1024
"""Room for a thousand dates to exclude; more is a calendar of its own."""
MAX_AHEAD_MS: Final = 60_000
"""A run held ahead of time cannot follow a change any more without a recall, so a minute is the most."""
MAX_CATCH_UP: Final = 100_000
"""Each of them is a record and a run; a stretch of more is work for a program that looks at the stretch as a whole."""
MAX_RETRIES: Final = 1_000
MAX_CONCURRENT: Final = 1_000_000
MAX_FACTOR: Final = 100.0


def _check_schedule(value: object) -> object:
    entries = value if isinstance(value, list) else [value]
    if not entries:
        raise _fault("is an empty list: give one schedule at least, as text or as a mapping")
    for position, entry in enumerate(entries):
        if isinstance(entry, dict) or (isinstance(entry, str) and entry.strip() and value is entry):
            continue
        where = f"entry {position} of the list" if isinstance(value, list) else "it"
        raise _fault(f"must be a cron expression as text, a mapping, or a list of mappings: {where} is not")
    return value


def _fault(message: str) -> PydanticCustomError:
    return PydanticCustomError("dueline", "{message}", {"message": message})


class RetryDefinition(Definition):
    """How failed attempts are repeated: after backoff, then each time `factor` as long, up to max_backoff."""

    max: Annotated[int, between(0, MAX_RETRIES)] = 3
    backoff: Duration = 10_000
    factor: Annotated[float, between(1.0, MAX_FACTOR)] = 2.0
    max_backoff: Duration | None = None  # None: ten minutes, or backoff if that is longer

    @property
    def longest_backoff(self) -> int:
        """Milliseconds; what max_backoff means when it is not given."""
        return max(600_000, self.backoff) if self.max_backoff is None else self.max_backoff


class JobDefinition(Definition):
    """A job in the friendly form. Durations as text; `schedule` and `payload` any JSON of their shape."""

    id: Annotated[str, name("job id")]
    schedule: Annotated[str, json_text(MAX_SCHEDULE_BYTES), BeforeValidator(_check_schedule)]
    handler: Annotated[str, name("handler")]
    queue: Annotated[str, name("queue")] = "default"
    payload: JsonText = "null"
    description: Text = ""
    misfire: Annotated[Misfire, one_of(Misfire, "policy for late runs")] = Misfire.LATEST
    misfire_grace: Duration = 60_000
    catch_up_window: Duration = 86_400_000
    catch_up_max: Annotated[int, between(1, MAX_CATCH_UP)] = 1_000
    catch_up_every: Duration = 0
    overlap: Annotated[Overlap, one_of(Overlap, "overlap policy")] = Overlap.SKIP
    max_concurrent: Annotated[int, between(0, MAX_CONCURRENT)] = 0
    retry: RetryDefinition = Field(default_factory=RetryDefinition)
    timeout: Duration = 3_600_000
    dispatch_ahead: Annotated[Duration, at_most(MAX_AHEAD_MS, "60s")] = 10_000
    max_worker_losses: Annotated[int, between(0, MAX_RETRIES)] = 5

    def to_job(self) -> Job:
        """The record that stands for this definition."""
        return Job(
            id=self.id,
            schedule=self.schedule,
            handler=self.handler,
            queue=self.queue,
            payload=self.payload,
            description=self.description,
            misfire=self.misfire.value,
            misfire_grace_ms=self.misfire_grace,
            catch_up_window_ms=self.catch_up_window,
            catch_up_max=self.catch_up_max,
            catch_up_every_ms=self.catch_up_every,
            overlap=self.overlap.value,
            max_concurrent=self.max_concurrent,
            max_retries=self.retry.max,
            retry_backoff_ms=self.retry.backoff,
            retry_backoff_factor=self.retry.factor,
            retry_backoff_max_ms=self.retry.longest_backoff,
            max_worker_losses=self.max_worker_losses,
            timeout_ms=self.timeout,
            dispatch_ahead_ms=self.dispatch_ahead,
        )


def job_from(value: object) -> Job:
    """The job of a mapping in the friendly form (a parsed JSON or YAML document). Raises DefinitionError."""
    definition = validate(JobDefinition, value)
    retry = definition.retry
    if retry.longest_backoff < retry.backoff:
        message = f"is shorter than backoff, {format_duration(retry.backoff)}: make it longer or leave it out"
        raise DefinitionError.of(message, "retry", "max_backoff")
    return definition.to_job()


def parse_job(value: bytes) -> Job:
    """The job that a record on `jobs` defines, in JSON or Avro; both are held to the same rules.

    Raises DecodeError (unreadable) or DefinitionError (readable, not allowed).
    """
    content = read(value)
    if isinstance(content, Job):
        return job_from(job_to_definition(content))
    if not isinstance(content, dict):
        raise DecodeError(f"expected a job definition, got a {type(content).__name__}")
    return job_from(content)


def job_to_definition(job: Job) -> dict[str, object]:
    """The friendly form of a job, every field filled in. Raises DecodeError or DefinitionError where `schedule` or
    `payload` are not JSON text, which they always are in a job that came from here."""
    return {
        "id": job.id,
        "description": job.description,
        "schedule": _json_of(job.schedule, "schedule"),
        "handler": job.handler,
        "queue": job.queue,
        "payload": _json_of(job.payload, "payload"),
        "misfire": job.misfire,
        "misfire_grace": format_duration(job.misfire_grace_ms),
        "catch_up_window": format_duration(job.catch_up_window_ms),
        "catch_up_max": job.catch_up_max,
        "catch_up_every": format_duration(job.catch_up_every_ms),
        "overlap": job.overlap,
        "max_concurrent": job.max_concurrent,
        "retry": {
            "max": job.max_retries,
            "backoff": format_duration(job.retry_backoff_ms),
            "factor": job.retry_backoff_factor,
            "max_backoff": format_duration(job.retry_backoff_max_ms),
        },
        "timeout": format_duration(job.timeout_ms),
        "dispatch_ahead": format_duration(job.dispatch_ahead_ms),
        "max_worker_losses": job.max_worker_losses,
    }


def _json_of(text: str, field: str) -> object:
    try:
        return load_json(text)
    except DecodeError as error:
        raise DefinitionError.of(f"must be JSON text: {error}", field) from error
    except DefinitionError as error:
        faults = [Fault(path=(field, *fault.path), message=fault.message) for fault in error.faults]
        raise DefinitionError(faults) from error
