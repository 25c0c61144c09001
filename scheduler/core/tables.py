"""Tables and ordered indexes that can be drafted: a draft sees its base and keeps its own changes to itself.

The planner decides on a draft and so never changes the state it was given, without a copy of that state.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any, Final, Generic, TypeVar

from sortedcontainers import SortedSet

K = TypeVar("K")
V = TypeVar("V")

Entry = tuple[Any, ...]
"""An index entry: sort fields first, the identity last."""


class Table(Generic[K, V]):
    """A mapping, or a draft over another table."""

    __slots__ = ("_base", "_own")

    def __init__(self, base: Table[K, V] | None = None) -> None:
        self._base = base
        self._own: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """The value, or None."""
        own, base = self._own, self._base
        return own.get(key) if base is None or key in own else base.get(key)

    def __getitem__(self, key: K) -> V:
        """The value, where an index says that there is one."""
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Set the value."""
        self._own[key] = value

    def drop(self, key: K) -> None:
        """Forget the value."""
        if self._base is not None:
            self._own[key] = None
        else:
            self._own.pop(key, None)

    def items(self) -> Iterator[tuple[K, V]]:
        """Every pair, in no order. Not to be changed meanwhile."""
        for key, value in self._own.items():
            if value is not None:
                yield key, value
        if self._base is not None:
            for key, value in self._base.items():
                if key not in self._own:
                    yield key, value

    def copy(self) -> Table[K, V]:
        """An independent table with the same content."""
        twin: Table[K, V] = Table()
        twin._own = dict(self.items())
        return twin


class _Top:
    """Greater than anything: the end of a prefix."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_TOP: Final = _Top()


class Index:
    """A sorted set of tuples, or a draft over another index."""

    __slots__ = ("_base", "_gone", "_own")

    def __init__(self, base: Index | None = None) -> None:
        self._base = base
        self._own: SortedSet[Entry] | None = None  # made with the first entry: most drafts never have one
        self._gone: set[Entry] = set()

    def add(self, entry: Entry) -> None:
        """Put an entry in; again is harmless."""
        if self._base is None or entry not in self._base:
            if self._own is None:
                self._own = SortedSet()
            self._own.add(entry)
        else:
            self._gone.discard(entry)

    def discard(self, entry: Entry) -> None:
        """Take an entry out; again is harmless."""
        if self._base is None or entry not in self._base:
            if self._own is not None:
                self._own.discard(entry)
        else:
            self._gone.add(entry)

    def __contains__(self, entry: Entry) -> bool:
        if self._own is not None and entry in self._own:
            return True
        return self._base is not None and entry not in self._gone and entry in self._base

    def between(self, low: Entry | None = None, high: Entry | None = None) -> Iterator[Entry]:
        """Entries with low <= entry < high, in order, found as they are asked for: what is not asked for costs nothing.

        A draft may be changed meanwhile: entries taken out are not met any more, entries put in are not met. Any other
        index must not be changed meanwhile.
        """
        own = self._own
        if self._base is None:
            return own.irange(low, high, inclusive=(True, False)) if own is not None else iter(())
        kept = self._kept(low, high)
        if own is None:
            return kept
        listed = list(own.irange(low, high, inclusive=(True, False)))  # the draft may change while this is walked
        return merge(kept, (entry for entry in listed if entry in own)) if listed else kept

    def prefixed(self, *prefix: Any) -> Iterator[Entry]:
        """Entries that begin with these fields, in order."""
        return self.between(prefix, (*prefix, _TOP))

    def first(self) -> Entry | None:
        """The lowest entry, or None."""
        own: Entry | None = self._own[0] if self._own else None
        kept = next(self._kept(None, None), None)
        if own is None or kept is None:
            return own if kept is None else kept
        return min(own, kept)

    def copy(self) -> Index:
        """An independent index with the same content."""
        twin = Index()
        twin._own = SortedSet(self.between())
        return twin

    def _kept(self, low: Entry | None, high: Entry | None) -> Iterator[Entry]:
        """What stands in the base and was not taken out."""
        base = self._base
        if base is None or (base._base is None and base._own is None):
            return iter(())
        return (entry for entry in base.between(low, high) if entry not in self._gone)
