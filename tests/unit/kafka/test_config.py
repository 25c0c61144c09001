"""The Kafka settings: precedence, refusals, and that no secret is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from dueline.scheduler.kafka.client import producer
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.errors import ConfigError


def settings(folder: Path, text: str) -> Path:
    file = folder / "kafka.properties"
    file.write_text(text, encoding="utf-8")
    return file


def test_an_argument_beats_the_environment_beats_the_file(tmp_path: Path) -> None:
    file = settings(tmp_path, "bootstrap.servers=file:1\nsasl.username=menu\n")
    environ = {"DUELINE_BOOTSTRAP_SERVERS": "environment:1"}
    assert KafkaConfig.load(environ={}, file=file).bootstrap_servers == "file:1"
    assert KafkaConfig.load(environ=environ, file=file).bootstrap_servers == "environment:1"
    both = KafkaConfig.load(environ=environ, file=file, bootstrap_servers="argument:1")
    assert both.bootstrap_servers == "argument:1"
    assert both.client()["bootstrap.servers"] == "argument:1"
    assert both.client()["sasl.username"] == "menu"


def test_without_servers_it_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match="DUELINE_BOOTSTRAP_SERVERS"):
        KafkaConfig.load(environ={})


@pytest.mark.parametrize(
    "name", ["transactional.id", "isolation.level", "enable.auto.commit", "group.protocol", "acks", "auto.offset.reset"]
)
def test_what_the_promises_rest_on_is_refused_with_file_line_and_reason(tmp_path: Path, name: str) -> None:
    file = settings(tmp_path, f"# ours\n{name}=hunter2\n")
    with pytest.raises(ConfigError, match=rf"line 2: {name} is set by dueline: \w+") as raised:
        KafkaConfig.load(environ={}, file=file, bootstrap_servers="x:1")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("sasl.password hunter2", "line 1"), ("=hunter2", "line 1"), ("a=hunter2\na=hunter2", "line 2: a is set twice")],
)
def test_a_line_that_cannot_be_read_is_named_without_its_value(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as raised:
        KafkaConfig.load(environ={}, file=settings(tmp_path, text), bootstrap_servers="x:1")
    assert "hunter2" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere: cannot read the Kafka settings: No such file"):
        KafkaConfig.load(environ={}, file=tmp_path / "nowhere", bootstrap_servers="x:1")


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem", "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config", "sasl.oauthbearer.assertion.private.key.passphrase",
    ],
)  # fmt: skip
def test_a_secret_is_never_shown(name: str) -> None:
    config = KafkaConfig(bootstrap_servers="x:1", properties={name: "hunter2", "sasl.username": "menu"})
    assert "hunter2" not in repr(config) + str(config) + f"{config}"
    assert name in repr(config)
    assert "sasl.username=menu" in repr(config)
    assert config.client()[name] == "hunter2"


def test_an_unknown_property_is_an_error_of_the_settings() -> None:
    config = KafkaConfig(bootstrap_servers="x:1", properties={"sasl.pasword": "hunter2"})
    with pytest.raises(ConfigError, match=r"sasl\.pasword") as raised:
        producer(config, lambda error: None)
    assert "hunter2" not in str(raised.value)
