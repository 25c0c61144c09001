"""A namespace with its topics on the shared broker, and the cluster as a process sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker import TestBroker
from tests.integration.kafka.support import Site, site_on


@pytest.fixture
def site(broker: TestBroker, namespace: str) -> Iterator[Site]:
    """Topics, cluster and helpers; everything opened through it is closed after the test."""
    with site_on(broker.bootstrap_servers, namespace) as made:
        yield made
