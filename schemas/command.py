"""What people send and what comes back: commands on `control`, dead letters on `rejected`."""

from __future__ import annotations

from enum import StrEnum

from dueline.schemas.base import NONE, record


class CommandKind(StrEnum):
    """What a command asks for."""

    TRIGGER = "trigger"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"
    CANCEL = "cancel"
    ACCEPT_POSITIONS = "accept-positions"


@record
class Command:
    """A person's wish, applied once: `id` makes a repeated send harmless."""

    id: str
    kind: str  # CommandKind
    job: str = ""
    run: str = ""  # cancel
    version: int = NONE  # delete: the version meant; NONE: whichever holds
    payload: str = ""  # trigger: JSON text that replaces the job's; "": the job's own
    topic: str = ""  # accept-positions
    by: str = ""
    reason: str = ""


@record
class Rejected:
    """An input that was refused, with its coordinates. Key: that of the refused record."""

    topic: str
    partition: int
    offset: int
    error: str  # a stable word: undecodable, invalid-job, unknown-job, too-large, ...
    detail: str  # what, where, what to do
    key: bytes = b""
    value: bytes = b""  # its first 4 KiB
    term: int = NONE
    leader_ms: int = NONE
