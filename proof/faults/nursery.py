"""Where the processes of a run come from: one process that has imported everything forks each of them.

They are processes of their own like any other, but start in a tenth of the time, most of which is importing: with a start for
every second fault that is what lets two cores bear a fault every two seconds. The nursery ends with the harness, and all that it
bore with the nursery, whatever ends them.

    harness --stdin: a JSON line a birth--> nursery --fork--> processes
            <--stdout: {"pid"} for each birth, {"pid", "code"} for each end--
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dueline.scheduler.cli.main import main as command
from dueline.scheduler.kafka import failpoints
from proof.faults import (
    entry,
    handlers,  # noqa: F401 - imported here so that no process needs to
)

ROOT: Final = Path(__file__).resolve().parents[2]
LEASH: Final = "examples.demo.leash"
ANSWER_S: Final = 30.0
PR_SET_PDEATHSIG: Final = 1
STDIN, STDOUT, STDERR = 0, 1, 2


class Born:
    """A process of the nursery, as `subprocess.Popen` would show it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._over = threading.Event()

    def poll(self) -> int | None:
        """The exit code once it has ended; negative: by that signal."""
        return self.returncode

    def wait(self, timeout: float) -> int:
        """The exit code. Raises TimeoutError."""
        if not self._over.wait(timeout) or self.returncode is None:
            raise TimeoutError(f"process {self.pid} is still there after {timeout:.0f} s")
        return self.returncode

    def ended(self, code: int) -> None:
        """The nursery says so."""
        self.returncode = code
        self._over.set()


class Nursery:
    """The harness's side. `bear` from one thread at a time."""

    def __init__(self, log_file: Path) -> None:
        with open(log_file, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", LEASH, str(os.getpid()), "proof.faults.nursery"], cwd=ROOT, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._births: queue.Queue[Born] = queue.Queue()
        self._born: dict[int, Born] = {}
        threading.Thread(target=self._listen, name="nursery", daemon=True).start()

    def bear(self, arguments: Sequence[str], environ: Mapping[str, str], log_file: Path) -> Born:
        """Start `dueline` with these arguments. Raises OSError when the nursery is gone or says nothing."""
        assert self._process.stdin is not None
        request = {"arguments": list(arguments), "environ": dict(environ), "log": str(log_file)}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        try:
            return self._births.get(timeout=ANSWER_S)
        except queue.Empty:
            raise OSError("the nursery does not answer") from None

    def close(self) -> None:
        """End it and all that it bore."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, OSError):  # closed
            for line in self._process.stdout:
                told: dict[str, int] = json.loads(line)
                if "code" in told:
                    self._born.pop(told["pid"]).ended(told["code"])
                else:
                    born = self._born[told["pid"]] = Born(told["pid"])
                    self._births.put(born)


# --- the nursery's own process ----------------------------------------------------------------------------------------


def main() -> int:
    """Bear and report until the harness closes the pipe; in a process that was born, be that process."""
    wakeup = wake_on_children()
    gc.collect()
    gc.freeze()  # what is shared stays shared
    rest = b""
    while True:
        ready, _, _ = select.select([STDIN, wakeup], [], [])
        if STDIN in ready:
            data = os.read(STDIN, 1 << 16)
            if not data:
                return 0
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                pid = os.fork()
                if pid == 0:
                    become(json.loads(line))
                    entry.prepare()
                    command()
                    return 0
                tell(pid=pid)
        if wakeup in ready:
            os.read(wakeup, 4096)
            reap()


def become(request: Mapping[str, Any]) -> None:
    """Leave the nursery: a session, an environment, a log and arguments of one's own."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    nursery = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != nursery:  # it ended before the call above
            os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(request["log"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    for source, target in ((nothing, STDIN), (log, STDOUT), (log, STDERR)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(request["environ"])
    failpoints.load(dict(os.environ))
    sys.argv[:] = ["dueline", *request["arguments"]]


def reap() -> None:
    """Report every process that has ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            tell(pid=pid, code=os.waitstatus_to_exitcode(status))


def tell(**what: int) -> None:
    """A line to the harness."""
    os.write(STDOUT, json.dumps(what).encode() + b"\n")


def wake_on_children() -> int:
    """A descriptor that becomes readable when a process has ended."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return reader


if __name__ == "__main__":
    sys.exit(main())
