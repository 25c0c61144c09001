"""An embedded, real Apache Kafka for tests, the demo and `dueline dev`. See `EmbeddedBroker`."""

from .embedded import EmbeddedBroker
from .errors import BrokerStartFailed, BrokerUnavailable, FolderInUse

__all__ = ["BrokerStartFailed", "BrokerUnavailable", "EmbeddedBroker", "FolderInUse"]
