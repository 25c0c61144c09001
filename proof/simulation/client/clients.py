"""What a simulation puts in the place of `Producer`, `Consumer` and `AdminClient`."""

from __future__ import annotations

from functools import partial
from typing import Final

from proof.simulation.client.admin import SimAdminClient
from proof.simulation.client.consumer import SimConsumer
from proof.simulation.client.producer import SimProducer
from proof.simulation.kernel import Kernel
from proof.simulation.network import Network

NAMES: Final = ("Producer", "Consumer", "AdminClient")


def constructors(kernel: Kernel, network: Network) -> dict[str, object]:
    """By the names they have in `dueline.scheduler.kafka.client`. A client belongs to the host whose task opens it."""
    made = (SimProducer, SimConsumer, SimAdminClient)
    return {name: partial(each, kernel, network) for name, each in zip(NAMES, made, strict=True)}
