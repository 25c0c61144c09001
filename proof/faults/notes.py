"""The notebook of a run: everything that the harness did and saw done, for the history."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from proof.faults.clock import now_ms
from proof.history.acts import STARVED, Fault, Life, Published


class Notebook:
    """Any thread. `on_fault` is told of each fault as it begins (`ended_ms` -1) and ends, and of one that struck nothing."""

    def __init__(self, on_fault: Callable[[Fault], None] = lambda _: None) -> None:
        self._lock = threading.Lock()
        self._published: list[Published] = []
        self._faults: list[Fault] = []
        self._lives: list[Life] = []
        self._on_fault = on_fault

    def published(self, one: Published) -> None:
        """A record was sent, and its outcome is known, or never will be."""
        with self._lock:
            self._published.append(one)

    def began(self, life: Life) -> None:
        """A process was started."""
        with self._lock:
            self._lives.append(life)

    def ended(self, process: str, pid: int, how: str) -> None:
        """That life is over."""
        with self._lock:
            for index, life in enumerate(self._lives):
                if life.process == process and life.pid == pid and life.ended_ms == -1:
                    self._lives[index] = replace(life, ended_ms=now_ms(), how=how)

    def fault(self, kind: str, target: str, *, detail: str = "", shift_ms: int = 0) -> OpenFault:
        """A fault begins now."""
        began = now_ms()
        fault = Fault(kind=kind, target=target, began_ms=began, ended_ms=-1, shift_ms=shift_ms, detail=detail)
        with self._lock:
            self._faults.append(fault)
            index = len(self._faults) - 1
        self._on_fault(fault)
        return OpenFault(book=self, index=index)

    def instant(self, kind: str, target: str, *, detail: str = "") -> None:
        """A fault that has no duration, such as a kill."""
        fault = self.fault(kind, target, detail=detail)
        self.close(fault.index, instant=True)

    def missed(self, kind: str, target: str, began_ms: int, why: str) -> None:
        """A fault that was tried from then on and took no effect."""
        fault = Fault(kind=kind, target=target, began_ms=began_ms, ended_ms=now_ms(), detail=why, struck=False)
        with self._lock:
            self._faults.append(fault)
        self._on_fault(fault)

    def starved(self, began_ms: int, ended_ms: int) -> None:
        """The machine stood still for so long."""
        fault = Fault(kind=STARVED, target="machine", began_ms=began_ms, ended_ms=ended_ms)
        with self._lock:
            self._faults.append(fault)
        self._on_fault(fault)

    @property
    def injected(self) -> int:
        """How many faults were brought about; those that took no effect are none."""
        with self._lock:
            return sum(fault.injected and fault.struck for fault in self._faults)

    @property
    def tried(self) -> int:
        """How many there are, with those that took no effect."""
        with self._lock:
            return sum(fault.injected for fault in self._faults)

    def close(self, index: int, *, instant: bool = False, detail: str = "", struck: bool = True, kind: str = "") -> None:
        """The fault ends now, and was one of `kind` if that says another one. Ending it twice changes nothing."""
        with self._lock:
            fault = self._faults[index]
            if fault.ended_ms != -1:
                return
            ended = fault.began_ms if instant else now_ms()
            said = "; ".join(part for part in (fault.detail, detail) if part)
            self._faults[index] = fault = replace(fault, kind=kind or fault.kind, ended_ms=ended, detail=said, struck=struck)
        self._on_fault(fault)

    def fault_at(self, index: int) -> Fault:
        """As it is noted now."""
        with self._lock:
            return self._faults[index]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All so far, in the order they began; one that still lasts counts as ending now."""
        now = now_ms()
        with self._lock:
            return tuple(replace(one, ended_ms=now) if one.ended_ms == -1 else one for one in self._faults)

    @property
    def sent(self) -> tuple[Published, ...]:
        """All publications so far, in the order of sending."""
        with self._lock:
            return tuple(sorted(self._published, key=lambda one: one.sent_ms))

    @property
    def lives(self) -> tuple[Life, ...]:
        """All lives so far."""
        with self._lock:
            return tuple(self._lives)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFault:
    """A fault that lasts."""

    book: Notebook
    index: int

    def end(self, detail: str = "", *, struck: bool = True) -> None:
        """It ends now. `struck` False: it took no effect; `detail` says why."""
        self.book.close(self.index, detail=detail, struck=struck)

    def end_instead(self, kind: str, why: str) -> None:
        """It ends now and took no effect: `why`. What was done on the way to it did, and is noted as a fault of `kind`."""
        with_this = self.book.fault_at(self.index)
        self.book.close(self.index, detail=why, kind=kind)
        self.book.missed(with_this.kind, with_this.target, with_this.began_ms, why)
