"""The broker's jars: pinned by a lock file, resolved once with jgo, checked by SHA-256, kept in a cache.

The cache folder is named after the digest of the lock file, so two versions of dueline never share jars, and a
folder under that name is either absent or whole: it is filled beside its place and renamed into it under a file lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import OTHER_WAYS, BrokerUnavailable

log = logging.getLogger(__name__)

LOCK_FILE = Path(__file__).with_name("kafka-4.3.1.lock")
DOWNLOADS_AT_ONCE = 8  # enough to hide the latency of a repository, few enough to be a polite guest
REQUEST_TIMEOUT_S = 30
MTIME_NS = 1_600_000_000 * 10**9  # of every jar: Java's cache remembers it, and a jar fetched again must still fit


@dataclass(frozen=True, kw_only=True, slots=True)
class Jar:
    """One pinned artifact. `sha256` is lower-case hex."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class JarSet:
    """The jars on disk, in class-path order, and the digest that names them."""

    folder: Path
    paths: tuple[Path, ...]
    digest: str

    @property
    def class_path(self) -> str:
        return os.pathsep.join(map(str, self.paths))


def cache_root() -> Path:
    """`DUELINE_CACHE`, or `~/.cache/dueline`."""
    chosen = os.environ.get("DUELINE_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "dueline"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """Read `group:artifact:version sha256:hex` lines; raises ValueError naming the first line that is neither
    that nor a comment."""
    jars = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            coordinate, checksum = line.split()
            group, artifact, version = coordinate.split(":")
            algorithm, digest = checksum.split(":")
            if algorithm != "sha256" or len(bytes.fromhex(digest)) != 32:
                raise ValueError("not a SHA-256 digest")
        except ValueError as error:
            raise ValueError(f"lock file line {number}: expected group:artifact:version sha256:hex, got {line!r}") \
                from error
        jars.append(Jar(group=group, artifact=artifact, version=version, sha256=digest))
    return tuple(jars)


def lock_digest(jars: tuple[Jar, ...]) -> str:
    """A short name for this exact set of jars (16 hex digits)."""
    return hashlib.sha256("\n".join(f"{jar} {jar.sha256}" for jar in jars).encode()).hexdigest()[:16]


def ensure_jars(*, cache: Path | None = None, lock_file: Path = LOCK_FILE) -> JarSet:
    """The verified jars, downloaded if this machine has none yet.

    Safe to call from several processes at once: the first one downloads, the others wait for it.
    Raises BrokerUnavailable when a jar is missing and cannot be fetched, or does not match its checksum.
    """
    jars = parse_lock(lock_file.read_text(encoding="utf-8"))
    digest = lock_digest(jars)
    folder = (cache or cache_root()) / "broker" / digest / "jars"
    if not is_whole(folder, jars):
        with exclusive(folder.parent / "jars.lock"):
            if not is_whole(folder, jars):
                fill(folder, jars)
    return JarSet(folder=folder, paths=tuple(folder / jar.filename for jar in jars), digest=digest)


def is_whole(folder: Path, jars: tuple[Jar, ...]) -> bool:
    """Every jar is there and unchanged since its checksum was verified.

    Compares size and modification time with those noted at that moment: hashing 45 MB at every start would cost
    more than the rest of the check.
    """
    try:
        noted: dict[str, list[int]] = json.loads((folder / "verified.json").read_text(encoding="utf-8"))
        return all(noted.get(jar.filename) == stamp(folder / jar.filename) for jar in jars)
    except (OSError, ValueError):
        return False


def stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def fill(folder: Path, jars: tuple[Jar, ...]) -> None:
    """Put all jars into `folder`, keeping those already there that still match their checksum."""
    log.info("getting the %d jars of Apache Kafka (45 MB, once per machine) into %s", len(jars), folder)
    remove_unfinished(folder.parent, "jars-building-")
    building = Path(tempfile.mkdtemp(prefix="jars-building-", dir=folder.parent))
    try:
        with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
            list(pool.map(lambda jar: place(jar, folder, building), jars))
        noted = {jar.filename: stamp(building / jar.filename) for jar in jars}
        (building / "verified.json").write_text(json.dumps(noted), encoding="utf-8")
        shutil.rmtree(building / "download", ignore_errors=True)
        if folder.exists():  # damaged; a broker that still runs from it keeps its open files
            folder.rename(building / "damaged")
            (building / "damaged").rename(building.with_suffix(".damaged"))
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(building.with_suffix(".damaged"), ignore_errors=True)


def remove_unfinished(parent: Path, prefix: str) -> None:
    """Remove what a killed process left half-made. Only for the holder of the lock under which such folders grow."""
    for left in parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)


def place(jar: Jar, folder: Path, building: Path) -> None:
    kept = folder / jar.filename
    source = kept if kept.is_file() and sha256_of(kept) == jar.sha256 else fetch(jar, building / "download")
    found = sha256_of(source)
    if found != jar.sha256:
        raise BrokerUnavailable(
            f"{jar} does not match its pinned checksum (expected sha256 {jar.sha256}, got {found}): "
            f"the repository or a proxy serves another file; use a trusted one in jgo's settings, {OTHER_WAYS}"
        )
    shutil.copyfile(source, building / jar.filename)
    os.utime(building / jar.filename, ns=(MTIME_NS, MTIME_NS))


def fetch(jar: Jar, repository: Path) -> Path:
    """Download one jar with jgo, honouring the repositories of jgo's own settings file."""
    try:
        from jgo.config import GlobalSettings  # noqa: PLC0415 - an optional extra
        from jgo.maven import MavenContext  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise BrokerUnavailable(
            f"the embedded broker needs jgo to get Kafka's jars: pip install 'dueline[broker]', {OTHER_WAYS}"
        ) from error
    remotes = GlobalSettings.load().repositories or None
    context = MavenContext(repo_cache=repository, remote_repos=remotes, timeout=REQUEST_TIMEOUT_S)
    try:
        return context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
    except Exception as error:  # jgo lets through whatever its HTTP client raises
        raise BrokerUnavailable(
            f"cannot get {jar}, a part of Apache Kafka that is not in the cache {cache_root()} "
            f"({type(error).__name__}: {error}): connect to the network once and run "
            f"pip install 'dueline[broker]' if you have not yet, set DUELINE_CACHE to a filled cache, {OTHER_WAYS}"
        ) from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold an advisory lock on `path` among processes and threads; the kernel frees it when the holder dies."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise BrokerUnavailable(
            f"cannot write to the cache {path.parent} ({error}): set DUELINE_CACHE to a folder you may write to"
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
