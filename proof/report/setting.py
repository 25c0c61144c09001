"""Where a report was made and how its runs are told again: versions, the kind of machine, the command. No name and no path of the
machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Final

SEED: Final = "{seed}"
REPLAY: Final = "make faults SEED={seed}"
PACKAGES: Final = ("dueline", "confluent-kafka", "fastavro", "tzdata")
GIT_S: Final = 10.0
_GIB: Final = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """`replay`: the command; `{seed}` stands for a history's seed. `versions`: by name. `machine`: in words."""

    replay: str
    versions: Mapping[str, str]
    machine: str

    def command(self, seed: int) -> str:
        """The command that does one history again."""
        return self.replay.replace(SEED, str(seed))


def this_setting(replay: str = REPLAY) -> Setting:
    """Of the Python that runs."""
    versions = {"Apache Kafka": kafka_version(), "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    versions["commit"] = commit()
    return Setting(replay=replay, versions=versions, machine=machine())


def commit() -> str:
    """Of the tree that this is run from, "-dirty" if it differs; "unknown" without one."""
    asked = ("git", "describe", "--always", "--dirty", "--exclude", "*")
    try:
        told = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=GIT_S)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return told.stdout.strip()


def kafka_version() -> str:
    """Of the embedded broker: its list of jars is named after it."""
    for file in resources.files("dueline.scheduler.kafka.broker").iterdir():
        named = re.fullmatch(r"kafka-(\d[\w.]*)\.lock", file.name)
        if named:
            return named[1]
    return "unknown"


def machine() -> str:
    """System, processor, cores and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = f"{platform.system()} {platform.machine()}"
    return f"{kind}, {cores} cores, {memory:.0f} GiB of memory; all processes on this one machine"
