"""Clusters for fault tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import TestBroker
from tests.fault.cluster import Cluster, running


@pytest.fixture
def cluster(broker: TestBroker, namespace: str, tmp_path: Path) -> Iterator[Cluster]:
    """A namespace of the test's own; nothing runs yet."""
    with running(broker.bootstrap_servers, namespace, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(broker: TestBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A namespace for all tests of a file: each leaves it as whole as it found it, and judges all of it."""
    with running(broker.bootstrap_servers, f"shared-{uuid.uuid4().hex[:8]}", tmp_path_factory.mktemp("shared")) as made:
        yield made
