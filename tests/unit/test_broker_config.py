"""The broker's settings as text."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dueline.scheduler.kafka.broker.config import (
    DEFAULTS,
    OURS,
    Door,
    Place,
    Ports,
    cluster_id_of,
    meta_properties,
    random_id,
    server_properties,
)
from tests.broker import IMAGE, container_settings

ROOT = Path(__file__).resolve().parents[2]
PORTS = Ports(client=19092, controller=19093)


def read(text: str) -> dict[str, str]:
    """As java.util.Properties reads it, as far as we write it."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value.replace("\\n", "\n").replace("\\\\", "\\") for key, _, value in pairs}


def test_one_node_on_loopback_only() -> None:
    settings = read(server_properties(data=Path("/d"), ports=PORTS, overrides={}))
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:19093"
    assert settings["log.dirs"] == "/d"
    assert settings["group.min.session.timeout.ms"] == "1000"
    assert settings.items() >= DEFAULTS.items()


def test_a_door_is_a_listener_that_sends_its_clients_to_another_port() -> None:
    doors = (Door(name="W1", port=1001, advertised=2001), Door(name="S1", port=1002, advertised=2002))
    settings = read(server_properties(data=Path("/d"), ports=PORTS, overrides={}, place=Place(doors=doors)))
    assert settings["listeners"].split(",") == [
        "PLAINTEXT://127.0.0.1:19092", "CONTROLLER://127.0.0.1:19093", "W1://127.0.0.1:1001", "S1://127.0.0.1:1002",
    ]  # fmt: skip
    assert settings["advertised.listeners"].split(",") == [
        "PLAINTEXT://127.0.0.1:19092", "W1://127.0.0.1:2001", "S1://127.0.0.1:2002",
    ]  # fmt: skip
    protocols = dict(pair.split(":") for pair in settings["listener.security.protocol.map"].split(","))
    assert protocols == dict.fromkeys(("PLAINTEXT", "CONTROLLER", "W1", "S1"), "PLAINTEXT")
    assert settings["inter.broker.listener.name"] == "PLAINTEXT", "brokers never go through a door"


def test_a_node_knows_its_place_among_the_voters() -> None:
    place = Place(node=2, voters={1: 9001, 2: 9002, 3: 9003})
    settings = read(server_properties(data=Path("/d"), ports=PORTS, overrides={}, place=place))
    assert settings["node.id"] == "2"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:9001,2@127.0.0.1:9002,3@127.0.0.1:9003"
    assert "node.id=2\n" in meta_properties(cluster_id="c", directory_id="d", node=2)


def test_an_override_replaces_a_default() -> None:
    overrides = {"group.min.session.timeout.ms": "6000", "message.max.bytes": "2000"}
    assert read(server_properties(data=Path("/d"), ports=PORTS, overrides=overrides)).items() >= overrides.items()


@pytest.mark.parametrize("key", sorted(OURS))
def test_what_makes_the_node_cannot_be_overridden(key: str) -> None:
    with pytest.raises(ValueError, match=f"sets {key} itself"):
        server_properties(data=Path("/d"), ports=PORTS, overrides={key: "x"})


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_a_value_cannot_break_out_of_its_line(value: str) -> None:
    text = server_properties(data=Path("/d"), ports=PORTS, overrides={"some.setting": f"{value}\nnode.id=7"})
    assert "\nnode.id=7" not in text
    assert text.count("\nnode.id=") == 1


def test_ids_are_as_kafka_writes_them() -> None:
    ids = {random_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(base64.urlsafe_b64decode(text + "==")) == 16 and not text.startswith("-") for text in ids)


def test_cluster_id_is_read_back_also_as_java_writes_it() -> None:
    assert cluster_id_of(meta_properties(cluster_id="abc_-", directory_id="d")) == "abc_-"
    assert cluster_id_of("#\n#Mon Nov 30\ncluster.id=MkU3\\=\nversion=1\n") == "MkU3="
    with pytest.raises(ValueError, match=r"no cluster\.id"):
        cluster_id_of("version=1\n")


def test_compose_and_container_have_the_same_settings() -> None:
    kafka = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]["kafka"]
    expected = {"KAFKA_" + key.upper().replace(".", "_"): value for key, value in DEFAULTS.items()}
    assert kafka["environment"].items() >= expected.items()
    assert kafka["image"] == IMAGE
    assert container_settings(1).items() >= DEFAULTS.items()
