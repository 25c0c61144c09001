"""A namespace with topics, ready for schedulers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker import TestBroker
from tests.integration.leader.rig import Rig


@pytest.fixture
def rig(broker: TestBroker, namespace: str) -> Iterator[Rig]:
    """Topics made, nothing running."""
    made = Rig(broker.bootstrap_servers, namespace)
    try:
        yield made
    finally:
        made.close()
