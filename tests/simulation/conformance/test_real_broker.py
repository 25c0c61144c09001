"""The scenarios on a real Kafka: what each expects is what Kafka does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dueline.scheduler.kafka.broker import EmbeddedBroker
from proof.faults.links import Links
from tests.broker import BrokerKind, TestBroker, free_port
from tests.simulation.conformance.catalogue import CALM, MEDDLING, RESTARTING
from tests.simulation.conformance.real import ALL, HOST, RealBench
from tests.simulation.conformance.scenario import Scenario


@pytest.fixture
def quick_broker(broker: TestBroker) -> TestBroker:
    """A broker with this project's settings."""
    if broker.kind is BrokerKind.EXTERNAL:
        pytest.skip("needs 1 s sessions and a quick sweep of transactions, which --broker external may not have")
    return broker


def observed(scenario: Scenario, bench: RealBench) -> dict[str, object]:
    try:
        return scenario.run(bench)
    finally:
        bench.close()


@pytest.mark.parametrize("name", CALM)
def test_real(name: str, quick_broker: TestBroker) -> None:
    scenario = CALM[name]
    assert scenario.expected == observed(scenario, RealBench(quick_broker.bootstrap_servers))


@pytest.fixture(scope="module")
def links(broker_kind: BrokerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Links]]:
    """A broker that every client reaches through a proxy: the proxy's address, and the proxy."""
    if broker_kind is not BrokerKind.EMBEDDED:
        pytest.skip(f"needs a broker that tells clients to come to a proxy, which --broker {broker_kind} does not: use embedded")
    between = Links()
    to, listen = free_port(), free_port()
    between.open(ALL, 1, listen=listen, to=to)
    address = f"{HOST}:{listen}"
    told = {"advertised.listeners": f"PLAINTEXT://{address}"}
    try:
        with EmbeddedBroker(tmp_path_factory.mktemp("links") / "broker", port=to, overrides=told):
            yield address, between
    finally:
        between.close()


@pytest.mark.parametrize("name", MEDDLING)
def test_real_with_late_requests(name: str, links: tuple[str, Links]) -> None:
    address, between = links
    scenario = MEDDLING[name]
    assert scenario.expected == observed(scenario, RealBench(address, links=between))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", RESTARTING)
def test_real_over_a_restart(name: str, own_broker: EmbeddedBroker) -> None:
    scenario = RESTARTING[name]
    assert scenario.expected == observed(scenario, RealBench(own_broker.bootstrap_servers, own_broker))
