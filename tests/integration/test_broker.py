"""The embedded broker on real processes: restart, death of every party, a damaged cache, a lost port, a used folder."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dueline.scheduler.kafka.broker import BrokerStartFailed, EmbeddedBroker, FolderInUse, ports, storage, warmup
from dueline.scheduler.kafka.broker.config import Ports
from dueline.scheduler.kafka.broker.instance import silent
from dueline.scheduler.kafka.broker.jars import ensure_jars
from dueline.scheduler.kafka.broker.runtime import FLAGS, Runtime, find_runtime
from tests.broker import TestBroker

DEADLINE_S = 60.0


def test_shared_broker_takes_a_transaction(broker: TestBroker, namespace: str) -> None:
    create_topic(broker.bootstrap_servers, namespace)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": namespace}, logger=silent
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(namespace, b"kept")
    producer.commit_transaction(30)
    assert read_all(broker.bootstrap_servers, namespace) == [b"kept"]


def test_unknown_topic_is_not_created_by_a_producer(own_broker: EmbeddedBroker) -> None:
    failures: list[int | None] = []
    producer = Producer(
        {"bootstrap.servers": own_broker.bootstrap_servers, "topic.metadata.propagation.max.ms": 500}, logger=silent
    )
    producer.produce("misspelt", b"x", on_delivery=lambda error, _: failures.append(error.code() if error else None))
    producer.flush(DEADLINE_S)
    assert failures == [KafkaError.UNKNOWN_TOPIC_OR_PART]


@pytest.mark.parametrize("end", [EmbeddedBroker.stop, EmbeddedBroker.kill])
def test_restart_keeps_data_and_address(own_broker: EmbeddedBroker, end: Callable[[EmbeddedBroker], None]) -> None:
    address, pid = own_broker.bootstrap_servers, own_broker.pid
    create_topic(address, "kept")
    write(address, "kept", b"before")
    end(own_broker)
    assert not is_alive(pid)
    own_broker.start()
    assert own_broker.bootstrap_servers == address
    write(address, "kept", b"after")
    assert read_all(address, "kept") == [b"before", b"after"]


def test_new_object_on_an_old_folder_finds_port_and_data(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    address = own_broker.bootstrap_servers
    create_topic(address, "kept")
    write(address, "kept", b"before")
    own_broker.stop()
    with EmbeddedBroker(tmp_path / "own-broker") as again:
        assert again.bootstrap_servers == address
        assert read_all(address, "kept") == [b"before"]


def test_folder_in_use_is_refused(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    with pytest.raises(FolderInUse, match=f"own-broker is in use by process {os.getpid()}: stop that process"):
        EmbeddedBroker(tmp_path / "own-broker").start()
    with pytest.raises(RuntimeError, match="runs already"):
        own_broker.start()


def test_given_port_that_is_taken_is_named(needs_embedded: None, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BrokerStartFailed, match=f"port {port} on 127.0.0.1 is taken"):
            EmbeddedBroker(tmp_path, port=port).start()


def test_lost_race_for_a_free_port_is_run_again(
    needs_embedded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        offers = iter([Ports(client=taken, controller=ports.pick(random.Random(), taken=()))])
        choose = ports.choose
        monkeypatch.setattr(
            ports, "choose", lambda *, client, rng: next(offers, None) or choose(client=client, rng=rng)
        )
        with EmbeddedBroker(tmp_path) as broker:
            assert broker.bootstrap_servers != f"127.0.0.1:{taken}"
            assert next(offers, None) is None


def test_failed_start_shows_the_log(needs_embedded: None, tmp_path: Path) -> None:
    with pytest.raises(BrokerStartFailed, match="ended with code 1") as caught:
        EmbeddedBroker(tmp_path, overrides={"log.retention.bytes": "plenty"}).start()
    assert "Invalid value plenty for configuration log.retention.bytes" in str(caught.value)
    assert "broker.log ---" in str(caught.value)


def test_override_reaches_kafka(needs_embedded: None, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, overrides={"group.min.session.timeout.ms": "6000"}) as broker:
        text = broker.log_file.read_text(encoding="utf-8")
    assert "group.min.session.timeout.ms = 6000" in text


# --- nobody is left behind ------------------------------------------------------------------------------------------

PARENT = """
import os, signal, sys, threading, time
from pathlib import Path
from dueline.scheduler.kafka.broker import EmbeddedBroker

signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup and background jobs hand down "ignore"
signal.signal(signal.SIGHUP, signal.SIG_DFL)
broker = EmbeddedBroker(Path(sys.argv[1]))
starter = threading.Thread(target=broker.start)
starter.start()
starter.join()
if sys.argv[2] == "fork":  # a child that holds a copy of every descriptor of ours and lives on
    child = os.fork()
    if child == 0:
        time.sleep(float(sys.argv[3]))  # awaited: nothing, it is the life of the child
        os._exit(0)
else:
    child = 0
watchdog = broker._process._watchdog.pid
print(broker.pid, watchdog, child, broker.bootstrap_servers, flush=True)
if sys.argv[2] == "exit":
    sys.exit(0)
threading.Event().wait()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_death_of_the_parent_ends_the_broker(needs_embedded: None, tmp_path: Path, how: signal.Signals) -> None:
    with parent_process(tmp_path, "wait") as (parent, java, watchdog, _):
        assert is_alive(java)
        parent.send_signal(how)
        parent.wait(DEADLINE_S)
        await_gone(java, watchdog)
    with EmbeddedBroker(tmp_path) as again:  # and the folder is free
        assert again.is_running


def test_parent_that_forgets_to_stop_leaves_nothing(needs_embedded: None, tmp_path: Path) -> None:
    with parent_process(tmp_path, "exit") as (parent, java, watchdog, _):
        assert parent.wait(DEADLINE_S) == 0
        await_gone(java, watchdog)


def test_forked_copy_of_a_killed_parent_does_not_keep_the_broker(needs_embedded: None, tmp_path: Path) -> None:
    with parent_process(tmp_path, "fork") as (parent, java, watchdog, child):
        parent.kill()
        parent.wait(DEADLINE_S)
        await_gone(java, watchdog)
        assert is_alive(child)  # it still holds the pipe: the pipe alone would have told nothing
        os.kill(child, signal.SIGKILL)


def test_death_of_the_watchdog_ends_the_broker(needs_embedded: None, tmp_path: Path) -> None:
    with parent_process(tmp_path, "wait") as (_, java, watchdog, _):
        os.kill(watchdog, signal.SIGKILL)
        if sys.platform == "linux":
            await_gone(java)


def test_own_object_notices_a_killed_broker(own_broker: EmbeddedBroker) -> None:
    os.kill(own_broker.pid, signal.SIGKILL)
    await_true(lambda: not own_broker.is_running, "the broker is seen as gone")
    with pytest.raises(RuntimeError, match="does not run"):
        _ = own_broker.pid
    own_broker.stop()
    own_broker.start()
    assert own_broker.is_running


# --- Java's cache ---------------------------------------------------------------------------------------------------


@pytest.fixture
def spare_runtime(needs_embedded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A cache of our own with the same jars and the same start-up cache, to be damaged."""
    good = find_runtime(ensure_jars())
    assert warmup.aot_flags(good)
    monkeypatch.setenv("DUELINE_CACHE", str(tmp_path / "cache"))
    jars = tmp_path / "cache" / good.jars.folder.relative_to(good.jars.folder.parents[2])
    shutil.copytree(good.jars.folder, jars)
    spare = find_runtime(ensure_jars())
    assert spare.jars.folder == jars
    shutil.copytree(good.derived, spare.derived)
    return spare


def make_stale(spare: Runtime) -> None:
    """Java's cache notes the jars' modification times."""
    for jar in spare.jars.paths:
        os.utime(jar, ns=(0, 0))
    noted = {jar.name: [jar.stat().st_size, 0] for jar in spare.jars.paths}
    (spare.jars.folder / "verified.json").write_text(json.dumps(noted), encoding="utf-8")


def test_stale_start_up_cache_is_no_obstacle(spare_runtime: Runtime, tmp_path: Path) -> None:
    make_stale(spare_runtime)
    with EmbeddedBroker(tmp_path / "folder") as broker:
        assert broker.is_running
    assert (spare_runtime.derived / warmup.AOT).exists()


@pytest.mark.parametrize("damage", ["empty", "text", "middle"])
def test_damaged_start_up_cache_is_no_obstacle(spare_runtime: Runtime, tmp_path: Path, damage: str) -> None:
    cache = spare_runtime.derived / warmup.AOT
    content = bytearray(cache.read_bytes())
    half = len(content) // 2
    content[half : half + 1_000_000] = random.Random(1).randbytes(1_000_000)
    cache.write_bytes({"empty": b"", "text": b"not a cache\n" * 1000, "middle": bytes(content)}[damage])
    with EmbeddedBroker(tmp_path / "folder") as broker:
        assert broker.is_running


def test_cache_that_java_refuses_is_made_anew(
    spare_runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stale(spare_runtime)
    strict = (f"-XX:AOTCache={spare_runtime.derived / warmup.AOT}", "-XX:AOTMode=on")  # "on": does not fit, no start
    monkeypatch.setattr(warmup, "aot_flags", lambda _: strict)
    with EmbeddedBroker(tmp_path / "folder") as broker:
        assert broker.is_running
    assert not spare_runtime.derived.exists()


def test_machine_where_java_makes_no_cache(
    spare_runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(spare_runtime.derived)
    practice_runs: list[Path] = []

    def refuse(_runtime: Runtime, _folder: object, _lock_fd: int, cache: Path) -> None:
        practice_runs.append(cache)
        raise OSError("no space left")

    monkeypatch.setattr(warmup, "record", refuse)
    for _ in range(2):
        with EmbeddedBroker(tmp_path / "folder") as broker:
            assert broker.is_running
    assert len(practice_runs) == 1
    assert "some seconds slower" in caplog.text
    assert sorted(path.name for path in spare_runtime.derived.iterdir()) == [storage.CHECKPOINT]


def test_start_up_cache_fits(needs_embedded: None) -> None:
    """No assertion on seconds: the cores are shared. With mode "on" Java refuses a cache that it could not use."""
    runtime = find_runtime(ensure_jars())
    flags = warmup.aot_flags(runtime)
    assert flags == (f"-XX:AOTCache={runtime.derived / warmup.AOT}",)
    version = [str(runtime.java), *FLAGS, "-XX:AOTMode=on", *flags, "-cp", runtime.jars.class_path, "-version"]
    done = subprocess.run(version, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr


# --- steps ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def needs_embedded(broker_kind: str) -> None:
    if broker_kind != "embedded":
        pytest.skip(f"about the embedded broker; --broker {broker_kind} was chosen")


@contextmanager
def parent_process(folder: Path, how: str) -> Iterator[tuple[subprocess.Popen[str], int, int, int]]:
    """A process that started a broker from a thread that has ended: (it, Java, watchdog, forked child or 0)."""
    command = [sys.executable, "-c", PARENT, str(folder), how, str(2 * DEADLINE_S)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    try:
        ready, _, _ = select.select([parent.stdout], [], [], DEADLINE_S)
        line = parent.stdout.readline().split() if ready else []
        assert len(line) == 4, f"the parent did not start its broker: {line}"
        yield parent, int(line[0]), int(line[1]), int(line[2])
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform != "linux":
        return True
    try:  # an orphan that nobody has reaped yet counts as gone
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_gone(*pids: int) -> None:
    await_true(lambda: not any(map(is_alive, pids)), f"processes {pids} are gone")


def await_true(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        pause.wait(0.05)


def create_topic(address: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": address}, logger=silent)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(DEADLINE_S)


def write(address: str, topic: str, value: bytes) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": address}, logger=silent)
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(DEADLINE_S) == 0
    assert errors == [None]


def read_all(address: str, topic: str) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True},
        logger=silent,
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return values
            values.append(message.value() or b"")
    finally:
        consumer.close()
    raise AssertionError(f"no end of {topic} within {DEADLINE_S} s; read {values}")
