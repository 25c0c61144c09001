"""What an expected failure means to a person: what happened, what to do, and the exit code."""

from __future__ import annotations

from dueline.scheduler.audit.reading import TopicMissing
from dueline.scheduler.cli.errors import CommandError, ExitCode
from dueline.scheduler.core.ports import Expired, Unavailable
from dueline.scheduler.kafka.broker import BrokerStartFailed, BrokerUnavailable, FolderInUse
from dueline.scheduler.kafka.errors import ConfigError, NoFence, NotAuthorized


def failure_of(error: Exception) -> CommandError | None:
    """The failure as a person should read it; None for a bug, whose traceback must be seen."""
    match error:
        case CommandError():
            return error
        case TopicMissing():
            return CommandError(str(error), code=ExitCode.NOT_SET_UP)
        case Unavailable():
            todo = "check --bootstrap-servers, the network, and that the broker runs; `dueline dev` starts one here"
            return CommandError(f"no answer from Kafka: {error}", todo=todo, code=ExitCode.UNREACHABLE)
        case ConfigError():
            return CommandError(str(error), code=ExitCode.USAGE)
        case NotAuthorized() | NoFence() | FolderInUse() | BrokerStartFailed() | BrokerUnavailable():
            return CommandError(str(error))
        case Expired():
            return CommandError(f"the log was shortened while it was read: {error}", todo="run the command again")
    return None
