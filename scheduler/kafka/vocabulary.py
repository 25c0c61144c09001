"""The Kafka client's own names, for tools that speak to it directly: the proof's harness and its simulated clients.

Only this folder imports the client. Whoever needs a name of it that no port has takes it from here, so that it
stays visible who does.
"""

from __future__ import annotations

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

__all__ = [
    "AdminClient", "ConfigEntry", "ConfigResource", "Consumer", "IsolationLevel", "KafkaError", "KafkaException",
    "ListOffsetsResultInfo", "Message", "NewPartitions", "NewTopic", "OffsetSpec", "Producer", "ResourceType", "TopicCollection",
    "TopicPartition",
]  # fmt: skip
