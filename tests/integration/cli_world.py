"""The command as its users meet it: one-shot commands in this process, schedulers and workers as real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dueline.scheduler.cli.main import run

PATIENCE_S = 90.0
"""For anything that is waited for: a broker and a Python process that start on two busy cores take most of a minute."""

HANDLERS = """
import time

def hello(ctx):
    ctx.step("greet", lambda: "hello")
    return {"attempt": ctx.attempt}

def broken(ctx):
    ctx.step("first", lambda: 1)
    raise ValueError("no menu today")

def slow(ctx):
    for second in range(600):
        ctx.step(f"second-{second}", lambda: time.sleep(0.1))  # awaited: nothing, it is the work that a cancel interrupts
"""


@dataclass
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on standard output."""
        return json.loads(self.out)


@dataclass
class CliWorld:
    """A namespace of its own on the broker, and a folder with handlers."""

    servers: str
    namespace: str
    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    lasting: dict[str, subprocess.Popen[str]] = field(default_factory=dict)  # must not end by themselves

    def __post_init__(self) -> None:
        (self.folder / "handlers.py").write_text(HANDLERS)

    def __call__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> Answer:
        """Run a command here."""
        for name, process in self.lasting.items():
            assert process.poll() is None, f"the {name} has ended with {process.poll()}:\n{self.log(name)[-5000:]}"
        capsys.readouterr()
        code = run(["-b", self.servers, "-n", self.namespace, *arguments])
        streams = capsys.readouterr()
        return Answer(code=int(code), out=streams.out, err=streams.err)

    def file(self, name: str, text: str) -> str:
        """A file in the folder."""
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def start(self, *arguments: str, log: str) -> subprocess.Popen[str]:
        """Start `dueline` as a process, its output in the file `log`."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DUELINE_")},
            "DUELINE_BOOTSTRAP_SERVERS": self.servers,
            "DUELINE_NAMESPACE": self.namespace,
            "DUELINE_HEALTH_FILE": str(self.folder / f"{log}.health"),
        }
        with (self.folder / log).open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "dueline.scheduler.cli.main", *arguments],
                cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        self.processes.append(process)
        self.logs.append(log)
        return process

    def scheduler(self, *arguments: str) -> subprocess.Popen[str]:
        """A scheduler that leads."""
        process = self.start("scheduler", "--development", "--worker-timeout", "5", *arguments, log="scheduler")
        self.until(lambda: self.health("scheduler").get("role") == "leader", "a leader", process)
        self.lasting["scheduler"] = process
        return process

    def worker(self, *arguments: str) -> subprocess.Popen[str]:
        """A worker that has joined its group."""
        handlers = [f"--handler={name}=handlers:{name}" for name in ("hello", "broken", "slow")]
        process = self.start("worker", "--worker-timeout", "5", *handlers, *arguments, log="worker")
        self.until(lambda: bool(self.health("worker").get("partitions")), "a worker with partitions", process)
        self.lasting["worker"] = process
        return process

    def health(self, log: str) -> dict[str, Any]:
        """The health file of a process; {} while there is none."""
        try:
            facts: dict[str, Any] = json.loads((self.folder / f"{log}.health").read_text())
        except FileNotFoundError:
            return {}
        return facts

    def log(self, log: str) -> str:
        """What a process has said so far."""
        return (self.folder / log).read_text()

    def until(self, condition: Callable[[], bool], what: str, process: subprocess.Popen[str] | None = None) -> None:
        """Wait for a condition; fail with what was said when it does not come."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            said = "\n".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in self.logs)
            assert process is None or process.poll() is None, f"waited for {what}; it ended with {process.poll()}\n{said}"
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}\n{said}"
            time.sleep(0.05)  # awaited: the condition

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@contextmanager
def cli_world(servers: str, namespace: str, folder: Path) -> Iterator[CliWorld]:
    """A world for as long as the block lasts; no process outlives it."""
    world = CliWorld(servers=servers, namespace=namespace, folder=folder)
    try:
        yield world
    finally:
        world.end()


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> int:
    """Send a signal and wait for the end; the exit code."""
    process.send_signal(number)
    return process.wait(PATIENCE_S)
