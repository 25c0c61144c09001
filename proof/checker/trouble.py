"""Why a history cannot be judged: an error of whoever recorded it, or of this checker, never a violation."""

from __future__ import annotations


class CannotJudge(Exception):
    """Something in the history is beyond this checker, such as a kind of schedule. Skipping it would be a lie, so it is an error.
    The text names the record."""
