"""Commands on `control`: sent once under an id of their own, then waited for until they show in the ledger.

An id makes a command that arrives twice count once; `--id` lets a script repeat one that may have been sent already.
"""

from __future__ import annotations

import getpass
import os
import uuid
from collections.abc import Callable

from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.cli.sending import Sender
from dueline.scheduler.cli.session import Session
from dueline.scheduler.cli.watch import Answered, NoAnswer, ReadWithoutEffect, Refusal, Result, Watch, watching
from dueline.scheduler.core.ports import LogAdmin, Outgoing
from dueline.schemas.base import NONE
from dueline.schemas.codec import Record, encode, headers
from dueline.schemas.command import Command, CommandKind

NO_CHANGE = "no-change"
"""The error word of a command that asks for what holds already: no failure to whoever asked for it."""


def new_command(
    kind: CommandKind,
    *,
    command_id: str = "",
    job: str = "",
    run: str = "",
    version: int = NONE,
    payload: str = "",
    topic: str = "",
    reason: str = "",
) -> Command:
    """A command of whoever calls."""
    return Command(
        id=command_id or str(uuid.uuid4()),
        kind=kind.value,
        job=job,
        run=run,
        version=version,
        payload=payload,
        topic=topic,
        by=who(),
        reason=reason,
    )


def who() -> str:
    """The user's name, for those who read the history later."""
    try:
        return os.environ.get("DUELINE_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"  # no entry in the password file, as in many containers


def execute(
    session: Session,
    command: Command,
    answer: Callable[[Record], bool],
    *,
    wait_s: float | None,
    then: Callable[[Watch, Record], Record] | None = None,
    stands: Callable[[LogAdmin], Record | None] | None = None,
) -> Record | ReadWithoutEffect | None:
    """Send a command and wait for the record that answers it; None: not waited for, or it held already.

    `then` may wait for more on the same watch. `stands` looks, when the leader has written nothing, for what answered an earlier
    command of the kind. Raises CommandError when it was refused or nobody answered.
    """
    namespace = session.namespace
    with (
        session.cluster() as kafka,
        watching(kafka, namespace, session.clock) as watch,
        Sender(kafka, session.timeout_s) as sender,
    ):
        record = Outgoing(topic=namespace.control, partition=0, key=None, value=encode(command), headers=headers(command))
        sent = sender.send(record)
        if wait_s is None:
            return None
        found = _answer_of(command, watch.wait(sent, answer, wait_s), wait_s)
        if isinstance(found, ReadWithoutEffect) and stands is not None:
            found = stands(kafka.admin()) or found
        if then is None or found is None or isinstance(found, ReadWithoutEffect):
            return found
        return then(watch, found)


def check_seen(command: Command, found: Record | ReadWithoutEffect | None, look: str) -> None:
    """Raise CommandError when nothing was seen of what became of the command. `look`: the command line that may show it."""
    if isinstance(found, ReadWithoutEffect):
        raise CommandError(
            f"{command.kind} (id {command.id}) was read by the leader; no effect and no refusal seen yet",
            todo=f"see `dueline rejected`, where a refusal may come late, and `{look}`, before you send it again",
            code=ExitCode.NO_ANSWER,
        )


def _answer_of(command: Command, result: Result, waited_s: float) -> Record | ReadWithoutEffect | None:
    match result:
        case Answered(record=record):
            return record
        case Refusal(rejected=rejected):
            if rejected.error == NO_CHANGE:
                return None
            raise CommandError(f"{command.kind} was refused ({rejected.error}): {rejected.detail}")
        case ReadWithoutEffect():
            return result
        case NoAnswer():
            raise CommandError(
                f"{command.kind} was sent (id {command.id}), but no scheduler took it up within {waited_s:g} s",
                todo="see that a scheduler runs for this namespace (`dueline scheduler`); the command waits for it",
                code=ExitCode.NO_ANSWER,
            )
