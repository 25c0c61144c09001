"""Every thread and clock of a dueline process is virtual in a simulation; nothing else changes, and nothing stays changed."""

from __future__ import annotations

import importlib
import pkgutil
import types
from pathlib import Path

import pytest

import dueline
from proof.simulation.kernel import Kernel
from proof.simulation.substitution import THREADS, substituted, unlisted, virtual

PROCESSES = ("dueline.scheduler.leader", "dueline.scheduler.kafka", "dueline.workers")
ELSEWHERE = ("dueline.scheduler.kafka.broker", "dueline.workers.testing")
"""The embedded broker is a process of its own; `testing` is for users' unit tests. Neither runs in a scheduler or worker."""


def modules() -> list[str]:
    names: list[str] = []
    for package in PROCESSES:
        home = importlib.import_module(package)
        names += [package, *(f"{package}.{one.name}" for one in pkgutil.iter_modules(home.__path__))]
    return [name for name in names if not name.startswith(ELSEWHERE)]


def nothing(*_: object) -> None:
    raise AssertionError("no thread runs here")


def contents(name: str) -> dict[str, object]:
    return dict(vars(importlib.import_module(name)))


@pytest.mark.parametrize("name", modules())
def test_no_module_of_a_process_waits_outside_the_list(name: str) -> None:
    assert unlisted(importlib.import_module(name)) == []


def test_the_list_names_modules_of_processes_only() -> None:
    assert set(THREADS) <= set(modules())


def test_pure_modules_import_nothing_that_waits() -> None:
    root = Path(dueline.__path__[0])
    for package in ("dueline.scheduler.core", "dueline.schemas"):
        home = importlib.import_module(package)
        for one in pkgutil.walk_packages(home.__path__, f"{package}."):
            assert unlisted(importlib.import_module(one.name)) == [], (root, one.name)


def test_a_module_that_waits_by_another_name_is_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import time as t\nimport threading\nfrom queue import Queue, Empty\n"
                    "from dueline.scheduler.kafka.clock import monotonic_s\n")  # fmt: skip
    module = types.ModuleType("bad")
    module.__file__ = str(path)
    assert unlisted(module) == ["Queue", "monotonic_s", "t", "threading"]


def test_exactly_the_listed_names_change_and_all_come_back() -> None:
    before = {name: contents(name) for name in modules()}
    with substituted(virtual(Kernel(1), nothing)):
        for name in modules():
            changed = {key for key, value in contents(name).items() if before[name].get(key) is not value}
            assert changed == set(THREADS.get(name, ()))
    assert {name: contents(name) for name in modules()} == before


def test_they_come_back_after_an_error_too() -> None:
    before = {name: contents(name) for name in modules()}
    with pytest.raises(ZeroDivisionError), substituted(virtual(Kernel(1), nothing)):
        raise ZeroDivisionError
    assert {name: contents(name) for name in modules()} == before


def test_a_name_that_is_not_there_is_refused_and_nothing_stays() -> None:
    before = {name: contents(name) for name in modules()}
    names = virtual(Kernel(1), nothing) | {("dueline.workers.threads", "no_such_name"): 1}
    with pytest.raises(AttributeError), substituted(names):
        raise AssertionError("never entered")
    assert {name: contents(name) for name in modules()} == before
