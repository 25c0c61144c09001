"""Commands as users write them, JSON, and what may stand on `control`."""

from __future__ import annotations

from typing import Annotated, Final

from dueline.schemas.base import NONE
from dueline.schemas.command import Command, CommandKind
from dueline.schemas.errors import DecodeError, DefinitionError, Fault
from dueline.schemas.fields import Definition, JsonText, Text, between, name, one_of, read, validate
from dueline.schemas.json_text import load_json

NEEDS: Final[dict[CommandKind, str]] = {
    CommandKind.TRIGGER: "job",
    CommandKind.PAUSE: "job",
    CommandKind.RESUME: "job",
    CommandKind.DELETE: "job",
    CommandKind.CANCEL: "run",
    CommandKind.ACCEPT_POSITIONS: "topic",
}
"""The field without which a command says nothing."""

MAY: Final[dict[CommandKind, frozenset[str]]] = {
    CommandKind.TRIGGER: frozenset({"job", "payload"}),
    CommandKind.PAUSE: frozenset({"job"}),
    CommandKind.RESUME: frozenset({"job"}),
    CommandKind.DELETE: frozenset({"job", "version"}),
    CommandKind.CANCEL: frozenset({"run", "job"}),
    CommandKind.ACCEPT_POSITIONS: frozenset({"topic"}),
}
"""The fields that mean something beside id, kind, by and reason."""

MAX_VERSION: Final = 2**53


class CommandDefinition(Definition):
    """A command in the friendly form."""

    id: Annotated[str, name("command id")]
    kind: Annotated[CommandKind, one_of(CommandKind, "command")]
    job: Annotated[str, name("job id")] | None = None
    run: Text | None = None
    version: Annotated[int, between(1, MAX_VERSION)] | None = None
    payload: JsonText = ""
    topic: Annotated[str, name("topic")] | None = None
    by: Text = ""
    reason: Text = ""

    def to_command(self) -> Command:
        """The record that stands for this command."""
        return Command(
            id=self.id,
            kind=self.kind.value,
            job=self.job or "",
            run=self.run or "",
            version=NONE if self.version is None else self.version,
            payload=self.payload,
            topic=self.topic or "",
            by=self.by,
            reason=self.reason,
        )


def command_from(value: object) -> Command:
    """The command of a mapping in the friendly form. Raises DefinitionError."""
    definition = validate(CommandDefinition, value)
    faults = _wrong_fields(definition)
    if faults:
        raise DefinitionError(faults)
    return definition.to_command()


def parse_command(value: bytes) -> Command:
    """The command that a record on `control` holds, in JSON or Avro; both are held to the same rules.

    Raises DecodeError (unreadable) or DefinitionError (readable, not allowed).
    """
    content = read(value)
    if isinstance(content, Command):
        return command_from(_mapping(content))
    if not isinstance(content, dict):
        raise DecodeError(f"expected a command, got a {type(content).__name__}")
    return command_from(content)


def _wrong_fields(command: CommandDefinition) -> list[Fault]:
    kind, needed = command.kind, NEEDS[command.kind]
    faults = []
    if not getattr(command, needed):
        faults.append(Fault(path=(needed,), message=f"is missing: {kind} needs it"))
    for field in ("job", "run", "version", "payload", "topic"):
        if getattr(command, field) not in (None, "") and field not in MAY[kind]:
            faults.append(Fault(path=(field,), message=f"means nothing for {kind}: leave it out"))
    if kind == CommandKind.CANCEL and command.run:
        job, at, due = command.run.partition("@")
        if not (job and at and due):
            message = f"{command.run[:80]!r} is no run id: it looks like menu@2026-11-30T06:00:00Z or menu@!COMMAND-ID"
            faults.append(Fault(path=("run",), message=message))
        elif command.job and command.job != job:
            faults.append(Fault(path=("job",), message=f"is {command.job!r}, but the run is of {job!r}"))
    return faults


def _mapping(command: Command) -> dict[str, object]:
    """The friendly form of a record. Fields that hold "none" are left out, as in JSON."""
    mapping: dict[str, object] = {"id": command.id, "kind": command.kind, "by": command.by, "reason": command.reason}
    for field in ("job", "run", "topic"):
        if getattr(command, field):
            mapping[field] = getattr(command, field)
    if command.version != NONE:
        mapping["version"] = command.version
    if command.payload:
        try:
            mapping["payload"] = load_json(command.payload)
        except (DecodeError, DefinitionError) as error:
            raise DefinitionError.of(f"must be JSON text: {error}", "payload") from error
    return mapping
