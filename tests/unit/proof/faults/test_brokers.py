"""A broker that gave up its groups by itself is known by its log, once a life."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from proof.faults.brokers import BROKER_LOG, FAILED, Brokers


def brokers(folder: Path) -> Any:
    """One node that runs, and no process behind it."""
    made: Any = Brokers.__new__(Brokers)
    node = SimpleNamespace(is_running=True, folder=SimpleNamespace(path=folder))
    made._cluster = SimpleNamespace(nodes={1: node})
    made._read, made.down = {}, set()
    return made


def test_a_coordinator_that_failed_is_told_once(tmp_path: Path) -> None:
    log = tmp_path / BROKER_LOG
    log.write_bytes(b"INFO started\n")
    watched = brokers(tmp_path)
    assert watched.failed() == []
    with log.open("ab") as file:
        file.write(b"INFO Ignored load completion " + FAILED + b"\n")
    assert watched.failed() == [1]
    assert watched.failed() == []


def test_a_log_that_was_rolled_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / BROKER_LOG
    log.write_bytes(b"INFO much of it\n" * 20)
    watched = brokers(tmp_path)
    assert watched.failed() == []
    log.write_bytes(FAILED)
    assert watched.failed() == [1]


def test_a_node_that_a_fault_keeps_down_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / BROKER_LOG).write_bytes(FAILED)
    watched = brokers(tmp_path)
    watched.down = {1}
    assert watched.failed() == []
