"""The simulated hours run beside all other tests, and their test comes last."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.simulation.hours import Hours

LAST = "test_simulated_hours.py"
RUNNING = pytest.StashKey[Hours]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All others keep their order."""
    items.sort(key=lambda item: item.path.name == LAST)


def pytest_collection_finish(session: pytest.Session) -> None:
    """They begin, if their test is among those that are going to run."""
    if session.items and session.items[-1].path.name == LAST and not session.config.option.collectonly:
        session.config.stash[RUNNING] = Hours(Path(tempfile.mkdtemp(prefix="dueline-hours-")))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Whatever ended the tests ends them too."""
    running = session.config.stash.get(RUNNING, None)
    if running is not None:
        running.end()


@pytest.fixture
def hours(pytestconfig: pytest.Config) -> Hours:
    """They began when the tests did."""
    return pytestconfig.stash[RUNNING]
