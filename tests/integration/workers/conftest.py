"""A cluster with a namespace's topics, and a scripted leader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.topics import init_topics
from dueline.schemas.topics import Namespace, catalogue
from tests.broker import TestBroker
from tests.integration.workers.script import Script


@pytest.fixture(scope="module")
def cluster(broker: TestBroker) -> Iterator[KafkaCluster]:
    kafka = KafkaCluster(KafkaConfig(bootstrap_servers=broker.bootstrap_servers), client_name="test")
    yield kafka
    kafka.close()


@pytest.fixture
def space(cluster: KafkaCluster, namespace: str) -> Namespace:
    ns = Namespace(namespace)
    specs = catalogue(
        ns, ["menu"], partitions=2, replication_factor=1, min_insync_replicas=1, development=True
    )
    assert init_topics(cluster.kafka_admin(), ns, specs).fit
    return ns


@pytest.fixture
def script(cluster: KafkaCluster, space: Namespace) -> Iterator[Script]:
    leader = Script(kafka=cluster, namespace=space)
    yield leader
    leader.close()
