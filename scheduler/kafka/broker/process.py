"""One Java process under its watchdog, as the parent sees it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

WATCHDOG = Path(__file__).with_name("watchdog.py")
# Options from the environment would change the class path or the printed lines, and make the AOT cache useless.
NOT_FOR_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "JDK_AOT_VM_OPTIONS")
REPORT_TIMEOUT_S = 10.0


class BrokerProcess:
    """A running command that ends when this process ends, however that happens.

    `pid` is the command's own process id. Closing the pipe (also by garbage collection) ends the command.
    """

    def __init__(
        self, command: Sequence[str], *, output: Path, lock_fd: int, environ: Mapping[str, str] | None = None
    ) -> None:
        """Start `command`; its output is appended to the file `output`, and it keeps `lock_fd` open while it lives.

        `environ`: variables added to those of this process.
        """
        inherited = {key: value for key, value in os.environ.items() if key not in NOT_FOR_JAVA}
        with output.open("ab") as log:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WATCHDOG), str(os.getpid()), str(lock_fd), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal reaches the parent only, which then stops us in order
                pass_fds=(lock_fd,),
                env={**inherited, **(environ or {})},
            )
        started = self._watchdog.stdout.readline().split() if self._watchdog.stdout else []
        if len(started) != 2:
            self._watchdog.wait()
            self._close_pipes()
            raise OSError(f"cannot start {command[0]}: see the end of {output}")
        self.pid = int(started[1])
        self._exit_code: int | None = None

    def exit_code(self) -> int | None:
        """None while the command runs; its exit code afterwards (negative: ended by that signal)."""
        if self._exit_code is None and self._watchdog.poll() is not None:
            self._settle()
        return self._exit_code

    def wait(self, timeout_s: float) -> int | None:
        """As `exit_code`, after waiting up to `timeout_s` for the end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watchdog.wait(timeout_s)
        return self.exit_code()

    def terminate(self) -> None:
        """Ask for a graceful end; does not wait."""
        self._send(b"T")

    def kill(self) -> int | None:
        """End at once (SIGKILL) and wait for it."""
        self._send(b"K")
        return self.wait(REPORT_TIMEOUT_S)

    def _send(self, command: bytes) -> None:
        if self._watchdog.stdin is not None and self._watchdog.poll() is None:
            with contextlib.suppress(OSError):
                self._watchdog.stdin.write(command)
                self._watchdog.stdin.flush()

    def _settle(self) -> None:
        report = self._watchdog.stdout.read().split() if self._watchdog.stdout else []
        if len(report) == 2:
            self._exit_code = int(report[1])
        else:  # the watchdog was killed; where the kernel does not see to it, Java is still there
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._exit_code = -signal.SIGKILL
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._watchdog.stdin, self._watchdog.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
