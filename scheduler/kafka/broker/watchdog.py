"""Run one command and see that it never outlives the process that asked for it.

A script of its own, started by path without site-packages, standing between the Python parent and Java:

    parent --stdin: commands--> watchdog --child--> Java
           <--stdout: reports--

- The parent lives as long as stdin is open *and* getppid() is unchanged. The pipe tells at once; the poll covers the
  case that a forked copy of the parent still holds the pipe. Neither depends on the thread that made the start (the
  kernel's parent-death signal is sent when that *thread* ends).
- The watchdog itself killed: on Linux the kernel kills Java with it (its only thread is the one that started Java);
  elsewhere the parent does it when it notices.
- Java stays unreaped until reported, so a command never hits another process that got the same id.

Commands: `T` end gracefully, `K` kill. Reports: `started PID`, then `exited CODE` (negative: by that signal).
Arguments: parent's process id, descriptor to hand on (the folder's lock), then the command.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

ORPHAN_CHECK_S = 0.5
ORPHAN_GRACE_S = 5.0  # for a clean shutdown after the parent's death; Kafka needs about 0.5 s
PR_SET_PDEATHSIG = 1


def main() -> int:
    parent, lock_fd, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    wakeup = wake_on_signals()
    java = start(command, lock_fd)
    report(f"started {java.pid}")
    kill_at: float | None = None
    commands: list[int] = [0]
    while java.poll() is None:
        ready, _, _ = select.select([wakeup, *commands], [], [], ORPHAN_CHECK_S)
        if wakeup in ready and signal.SIGTERM in os.read(wakeup, 64):
            java.send_signal(signal.SIGTERM)
        orphaned = os.getppid() != parent
        if 0 in ready:
            received = os.read(0, 64)
            if b"K" in received:
                kill_group(java.pid)
            elif b"T" in received:
                java.send_signal(signal.SIGTERM)
            orphaned = orphaned or not received
        if orphaned and kill_at is None:
            commands = []
            kill_at = time.monotonic() + ORPHAN_GRACE_S
            java.send_signal(signal.SIGTERM)
        if kill_at is not None and time.monotonic() > kill_at:
            kill_group(java.pid)
    kill_group(java.pid)  # what Java itself may have started
    report(f"exited {java.returncode}")
    return 0


def start(command: list[str], lock_fd: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),  # the log file; our own stdout carries the reports
        stderr=sys.stderr.fileno(),
        process_group=0,
        pass_fds=(lock_fd,),
        preexec_fn=die_with_watchdog if sys.platform == "linux" else None,  # noqa: PLW1509 - there is one thread
    )


def die_with_watchdog() -> None:
    import ctypes  # noqa: PLC0415 - not there on every system that does without it

    watchdog = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != watchdog:  # died before the request was in place
        os._exit(1)


def wake_on_signals() -> int:
    """A descriptor that becomes readable with the numbers of SIGCHLD and SIGTERM when they come."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def report(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
