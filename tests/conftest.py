"""Fixtures for every test. A broker starts only for tests that ask for one."""

from __future__ import annotations

import logging
import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from dueline.scheduler.kafka.broker import EmbeddedBroker
from tests.broker import BrokerKind, TestBroker, running_broker


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        choices=[kind.value for kind in BrokerKind],
        default=os.environ.get("DUELINE_TEST_BROKER", BrokerKind.EMBEDDED.value),
        help="the Kafka that tests run against: embedded (default), testcontainers, or external "
        "(DUELINE_BOOTSTRAP_SERVERS); the default can be set by DUELINE_TEST_BROKER",
    )


def pytest_configure() -> None:
    """A job in the background is handed down that Ctrl-C is ignored, and would hand it to the processes that tests interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """What a process started within a test does to logging ends with the test: its handler would write to a closed stream."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="session")
def broker_kind(pytestconfig: pytest.Config) -> BrokerKind:
    """What --broker chose."""
    return BrokerKind(pytestconfig.getoption("--broker"))


@pytest.fixture(scope="session")
def broker(broker_kind: BrokerKind) -> Iterator[TestBroker]:
    """One shared broker for the session (under xdist: one for each worker process)."""
    with running_broker(broker_kind) as running:
        yield running


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A prefix for topics, groups and transactional ids that no other test or run of the tests uses."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def own_broker(broker_kind: BrokerKind, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A started broker of the test's own, for tests that stop or kill it."""
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip(f"stops its broker, which --broker {broker_kind} cannot: use --broker embedded")
    with EmbeddedBroker(tmp_path / "own-broker") as started:
        yield started
