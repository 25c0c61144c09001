"""The watchdog and the folder's lock, with a shell in Java's place: no broker."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from dueline.scheduler.kafka.broker import EmbeddedBroker, FolderInUse, ports
from dueline.scheduler.kafka.broker.folder import BrokerFolder, locked
from dueline.scheduler.kafka.broker.process import BrokerProcess

DEADLINE_S = 20.0


@pytest.fixture
def lock_fd(tmp_path: Path) -> Iterator[int]:
    with locked(BrokerFolder(path=tmp_path)) as fd:
        yield fd


def start(tmp_path: Path, lock_fd: int, script: str) -> BrokerProcess:
    return BrokerProcess(["/bin/sh", "-c", script], output=tmp_path / "out", lock_fd=lock_fd)


def await_text(path: Path, text: str) -> None:
    deadline, pause = time.monotonic() + DEADLINE_S, threading.Event()
    while text not in (path.read_text(encoding="utf-8") if path.exists() else ""):
        assert time.monotonic() < deadline, f"{text!r} does not come in {path}"
        pause.wait(0.02)


def test_exit_code_and_output_are_kept(tmp_path: Path, lock_fd: int) -> None:
    process = start(tmp_path, lock_fd, "echo out; echo err >&2; exit 7")
    assert process.wait(DEADLINE_S) == 7
    assert process.exit_code() == 7
    assert (tmp_path / "out").read_text(encoding="utf-8") == "out\nerr\n"


def test_terminate_lets_the_command_end_in_order(tmp_path: Path, lock_fd: int) -> None:
    process = start(tmp_path, lock_fd, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    await_text(tmp_path / "out", "up")
    process.terminate()
    assert process.wait(DEADLINE_S) == 3
    assert (tmp_path / "out").read_text(encoding="utf-8") == "up\nbye\n"


def test_kill_ends_a_command_that_will_not_listen_and_its_children(tmp_path: Path, lock_fd: int) -> None:
    process = start(tmp_path, lock_fd, "trap '' TERM; sleep 600 & echo child=$!; wait; wait")
    await_text(tmp_path / "out", "child=")
    child = int((tmp_path / "out").read_text(encoding="utf-8").partition("=")[2])
    process.terminate()
    assert process.wait(0.3) is None
    assert process.kill() == -signal.SIGKILL
    await_gone(child)
    process.kill()  # again does nothing


def test_missing_command_is_an_error(tmp_path: Path, lock_fd: int) -> None:
    with pytest.raises(OSError, match=r"cannot start /no/such/java: see the end of .*out"):
        BrokerProcess(["/no/such/java"], output=tmp_path / "out", lock_fd=lock_fd)
    assert "No such file" in (tmp_path / "out").read_text(encoding="utf-8")


def test_java_options_of_the_environment_stay_outside(
    tmp_path: Path, lock_fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    process = start(tmp_path, lock_fd, 'echo "[$JAVA_TOOL_OPTIONS]"')
    assert process.wait(DEADLINE_S) == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == "[]\n"


def test_orphan_that_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    parent = multiprocessing.get_context("spawn").Process(target=own_stubborn_child, args=(tmp_path,))
    parent.start()
    await_text(tmp_path / "out", "pid=")
    pid = int((tmp_path / "out").read_text(encoding="utf-8").partition("=")[2])
    parent.kill()
    parent.join(DEADLINE_S)
    await_gone(pid)
    with locked(BrokerFolder(path=tmp_path)) as fd:  # waits for the watchdog's own end
        assert fd > 0
    parent.close()


def own_stubborn_child(folder: Path) -> None:
    with locked(BrokerFolder(path=folder)) as fd:
        process = start(folder, fd, "trap '' TERM; echo pid=$$; while :; do sleep 0.1; done")
    process.wait(600)


def test_lock_is_held_until_the_last_process_has_gone(tmp_path: Path) -> None:
    folder = BrokerFolder(path=tmp_path)
    with locked(folder) as fd:
        process = start(tmp_path, fd, "sleep 600")
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"), locked(folder):
        pass
    process.kill()
    with locked(folder) as fd:
        assert fd > 0


def test_broker_that_never_started_has_no_address(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    with pytest.raises(RuntimeError, match="no address before its first start"):
        _ = broker.bootstrap_servers
    with pytest.raises(RuntimeError, match="does not run"):
        _ = broker.pid
    broker.stop()
    with pytest.raises(ValueError, match=r"sets node\.id itself"):
        EmbeddedBroker(tmp_path, overrides={"node.id": "2"})


def test_chosen_ports_are_free_different_and_outside_the_outgoing_range() -> None:
    rng = Random(7)
    for _ in range(50):
        where = ports.choose(client=None, rng=rng)
        assert where.client != where.controller
        assert ports.LOWEST <= where.client < ports.HIGHEST
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.accepts(port)
        assert ports.choose(client=port, rng=rng).client == port
    assert not ports.accepts(port)


def await_gone(pid: int) -> None:
    deadline, pause = time.monotonic() + DEADLINE_S, threading.Event()
    while True:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").exists() and ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii"):
                return  # ended, and waits for init to count it
        except (ProcessLookupError, FileNotFoundError):
            return
        assert time.monotonic() < deadline, f"process {pid} still runs"
        pause.wait(0.02)
