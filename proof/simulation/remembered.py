"""A codec that decodes the same bytes once: in a simulation leader, standbys and workers share one interpreter, and each of
them reads the same records. Records are frozen, and nobody changes the lists inside.
"""

from __future__ import annotations

from typing import Final

from dueline.schemas.codec import CODEC, Record
from proof.simulation.substitution import Names

MOST: Final = 20_000
"""Records remembered; then all are forgotten. A record is read soon after it was written, or by a process that starts."""


class Remembering:
    """In the place of `Codec`."""

    def __init__(self, most: int = MOST) -> None:
        self.encode = CODEC.encode
        self._most = most
        self._known: dict[bytes, Record] = {}

    def __len__(self) -> int:
        return len(self._known)

    def decode(self, value: bytes) -> Record:
        """See `codec.decode`. Raises DecodeError."""
        record = self._known.get(value)
        if record is None:
            record = CODEC.decode(value)
            if len(self._known) >= self._most:
                self._known.clear()
            self._known[value] = record
        return record


def remembering() -> Names:
    """A new one, for one world."""
    return {("dueline.schemas.codec", "CODEC"): Remembering()}
