"""What every record shares: how it is declared, and the value that stands for "none"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar, dataclass_transform

T = TypeVar("T")

NONE: Final = -1
"""No instant, no offset, no number. Hot records avoid unions with null: a union costs the encoder as much as the field."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Declare a record: frozen, keyword-only, slotted. Field names and order are those of its `.avsc`."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
