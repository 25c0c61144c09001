"""Names that stand in topic names and record keys: what they may hold, and why a wrong one is refused."""

from __future__ import annotations

import re
from typing import Final

from dueline.schemas.errors import NameInvalid

MAX_NAME: Final = 128
"""Characters in a job id, handler, queue, worker or command name."""

LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
"""Kafka's own alphabet for topic names. It leaves @ # ! ~ / free, which part the pieces of a record key."""


def check_name(what: str, value: str, limit: int = MAX_NAME) -> str:
    """The value, if it may stand in keys and topic names. Raises NameInvalid, whose text starts with `what`."""
    if not value:
        raise NameInvalid(f"{what} is empty: give 1 to {limit} characters of A-Z a-z 0-9 . _ -")
    if len(value) > limit:
        raise NameInvalid(f"{what} has {len(value)} characters: at most {limit} are allowed")
    if not LEGAL.fullmatch(value):
        wrong = next(character for character in value if not LEGAL.fullmatch(character))
        raise NameInvalid(f"{what} {value!r} holds {wrong!r}: only A-Z a-z 0-9 . _ - are allowed")
    if value in (".", ".."):
        raise NameInvalid(f"{what} {value!r} is refused by Kafka: give it a letter or digit")
    return value
