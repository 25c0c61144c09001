"""What the brokers are told at their start, and how long the things take that brokers do."""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[float, float]
"""Seconds, from and to; chance picks between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Kafka's defaults where Kafka has one. `_s`: seconds; spans are of virtual time."""

    min_session_s: float = 6.0
    max_session_s: float = 1800.0
    initial_rebalance_s: float = 0.0
    """`group.initial.rebalance.delay.ms`; Kafka's default is 3 s, this project's brokers have 0."""
    member_id_required: bool = True
    """A new member's first join is answered MEMBER_ID_REQUIRED with the id to join with (KIP-394)."""
    offsets_partitions: int = 50
    transaction_partitions: int = 50
    min_insync: int = 1
    """Of internal topics, and of topics that do not say."""
    transaction_sweep_s: float = 10.0
    max_transaction_s: float = 900.0
    id_expiry_s: float = 7 * 86400.0
    """How long an idle transactional id is remembered."""
    id_sweep_s: float = 3600.0
    group_sweep_s: float = 600.0
    offsets_retention_s: float = 7 * 86400.0
    retention_sweep_s: float = 300.0
    max_message_bytes: int = 1_048_588

    replication_s: Span = (0.0005, 0.003)
    """Until the other replicas have a record. Not waited for where there is one replica."""
    marker_s: Span = (0.0005, 0.004)
    """From the decision about a transaction to its marker in one partition."""
    failover_s: Span = (0.3, 2.0)
    """Until the controller takes a silent node's partitions from it."""
    start_s: Span = (1.5, 4.0)
    """From the start of a node's process until it answers."""
    load_s: Span = (0.02, 0.3)
    """A new coordinator's reading of its partition."""
    catch_up_s: Span = (0.5, 2.0)
    """Until a node that is back is in sync again."""
    shutdown_s: Span = (0.1, 0.5)
    """How long a node that is asked to stop hands over its partitions."""

    fenceless: bool = False
    """Offsets of a transaction are accepted whatever the generation: no Kafka does so; a control for rule L9."""
    ghost_chance: float = 0.0
    """How often a new member's handshake leaves a second id behind that never joins (librdkafka 5569): the rebalance then lasts
    one session time-out."""
