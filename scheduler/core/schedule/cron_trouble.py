"""What goes wrong inside one field, before it is known where in the whole text the field stands."""

from __future__ import annotations


class FieldTrouble(Exception):
    """A field that cannot be read: what is wrong, where in the field's text, what the field should be (or None)."""

    def __init__(self, message: str, at: int, instead: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.instead = instead
