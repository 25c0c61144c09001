"""The simulated clients have all that `scheduler.kafka` takes of the real ones."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import confluent_kafka.admin
import pytest

import dueline.scheduler.kafka
from proof.simulation.client.admin import SimAdminClient
from proof.simulation.client.clients import NAMES
from proof.simulation.client.consumer import SimConsumer
from proof.simulation.client.producer import SimProducer

FOLDER: Final = Path(dueline.scheduler.kafka.__file__).parent
SIMULATED: Final = {
    confluent_kafka.Producer: SimProducer,
    confluent_kafka.Consumer: SimConsumer,
    confluent_kafka.admin.AdminClient: SimAdminClient,
}
HELD: Final[dict[str, dict[str, type]]] = {
    "transaction": dict.fromkeys(("_client", "_producer", "producer"), confluent_kafka.Producer),
    "plain": {"_producer": confluent_kafka.Producer},
    "selftest": {"producer": confluent_kafka.Producer},
    "group": {"_consumer": confluent_kafka.Consumer, "consumer": confluent_kafka.Consumer},
    "reader": {"_consumer": confluent_kafka.Consumer},
    "admin": {"client": confluent_kafka.admin.AdminClient},
}
"""Module -> its names for a client. `test_every_module_that_holds_a_client_is_listed` keeps it complete."""
OF_ITS_OWN: Final = {"group_check": "a child process, with a client of its own: the simulation answers in its place"}


def used(module: str) -> Iterator[tuple[type, str]]:
    """Client class and attribute, for each `x.attribute` or `self.x.attribute` where x is a name for a client."""
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            home = node.value
            name = home.attr if isinstance(home, ast.Attribute) else home.id if isinstance(home, ast.Name) else ""
            kind = HELD[module].get(name)
            # `client` is also the name of a module of ours.
            if kind is not None and not (isinstance(home, ast.Name) and name == "client"):
                yield kind, node.attr


USED: Final = sorted({(kind.__name__, attribute, module) for module in HELD for kind, attribute in used(module)})


def test_what_is_used_was_found() -> None:
    """The walk sees what it must, at least."""
    found = {(kind, attribute) for kind, attribute, _ in USED}
    assert found >= {
        ("Producer", "send_offsets_to_transaction"), ("Producer", "purge"), ("Producer", "flush"),
        ("Consumer", "consumer_group_metadata"), ("Consumer", "seek"), ("AdminClient", "list_offsets"),
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "attribute", "module"), USED)
def test_the_simulated_client_has_what_is_used(kind: str, attribute: str, module: str) -> None:
    [(real, simulated)] = [(one, other) for one, other in SIMULATED.items() if one.__name__ == kind]
    assert hasattr(real, attribute), f"{module}: {kind} has no {attribute}: the walk took something else for a client"
    assert callable(getattr(simulated, attribute, None)), f"{module} uses {kind}.{attribute}"


def opens_clients(text: str) -> bool:
    """Whether a module builds a client, by our functions or by itself."""
    built = {"producer", "consumer", "admin", *NAMES}
    return any(
        isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr in built and ast.unparse(node.func.value) == "client")
            or (isinstance(node.func, ast.Name) and node.func.id in NAMES)
        )
        for node in ast.walk(ast.parse(text))
    ) or any(
        isinstance(node, ast.Attribute) and ast.unparse(node) in {f"client.{name}" for name in ("producer", "consumer", "admin")}
        for node in ast.walk(ast.parse(text))
    )


def test_every_module_that_holds_a_client_is_listed() -> None:
    found = {path.stem for path in FOLDER.glob("*.py") if opens_clients(path.read_text(encoding="utf-8"))}
    assert found - {"client"} == HELD.keys() | OF_ITS_OWN.keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_clients_are_opened_in_one_place(name: str) -> None:
    """What is replaced in `client` is replaced everywhere."""
    for path in FOLDER.glob("*.py"):
        if path.stem in OF_ITS_OWN or path.stem == "client":
            continue
        calls = [
            node.lineno
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        ]
        assert calls == [], f"{path.name} opens a {name} by itself"


def keywords(module: str, attribute: str) -> set[str]:
    """Keyword arguments that the module gives to a method of that name."""
    return {
        one.arg
        for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == attribute
        for one in node.keywords
        if one.arg is not None
    }


@pytest.mark.parametrize(("kind", "attribute", "module"), USED)
def test_the_simulated_client_takes_the_arguments_that_are_given(kind: str, attribute: str, module: str) -> None:
    [simulated] = [other for one, other in SIMULATED.items() if one.__name__ == kind]
    method: Callable[..., Any] = getattr(simulated, attribute)
    parameters = inspect.signature(method).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    assert keywords(module, attribute) <= parameters.keys()
