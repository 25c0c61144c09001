"""A Kafka client that hangs: a transaction call that does not return, whatever its time-out says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from proof.simulation.client.producer import SimProducer
from proof.simulation.kernel import Kernel
from proof.simulation.network import Network
from proof.simulation.process import Life


class HangingProducer(SimProducer):
    """The simulated one, but for a process that was struck: its next transaction call waits for ever."""

    def send_offsets_to_transaction(self, *arguments: Any, **named: Any) -> None:
        """May hang."""
        _hang(self._kernel)
        super().send_offsets_to_transaction(*arguments, **named)

    def commit_transaction(self, *arguments: Any, **named: Any) -> None:
        """May hang."""
        _hang(self._kernel)
        super().commit_transaction(*arguments, **named)


def hanging(kernel: Kernel, network: Network) -> Callable[..., SimProducer]:
    """What makes them."""
    return partial(HangingProducer, kernel, network)


def _hang(kernel: Kernel) -> None:
    host = kernel.current.host
    if isinstance(host, Life) and host.hangs:
        host.hangs, host.hung = False, True
        kernel.wait(None)
