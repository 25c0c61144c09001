"""What is left to the operator when a lone broker was killed and forgot to end a transaction in a user's topic (docs/kafka.md):
its readers stand still until somebody ends it. `kafka-transactions.sh` does so by producer id; here each id of a worker ends its
own, since all their processes have ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Final

from dueline.scheduler.kafka.admin import KafkaAdmin
from dueline.scheduler.kafka.client import ClientLog
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.scheduler.kafka.vocabulary import Producer
from dueline.schemas.codec import decode
from dueline.schemas.work import Heartbeat
from proof.faults.recorder import partitions_of, read_log
from proof.history.history import Partition

ENDS_S: Final = 30.0
"""By then a broker has ended by itself what it is going to end."""
LOOK_S: Final = 0.5
CALL_S: Final = 20.0


def end_forgotten(
    servers: str, places: Iterable[Partition], workers: str, leaders: Iterable[str] = (), *, ends_s: float = ENDS_S
) -> list[str]:
    """Wait until nothing is open in these partitions, and end what the broker does not; what was done, in words. `workers`: the
    topic of heartbeats, `leaders`: the schedulers' ids. Raises Unavailable, KafkaException."""
    admin = KafkaAdmin(KafkaConfig(bootstrap_servers=servers), "operator")
    end_s = time.monotonic() + ends_s
    held = list(places)
    while held := [place for place in held if admin.stable_offset(place) < admin.end_offset(place)]:
        if time.monotonic() > end_s:
            ids = [*ids_of(servers, workers), *leaders]
            return [_ended(servers, place, admin.stable_offset(place), ids) for place in held]
        threading.Event().wait(LOOK_S)
    return []


def _ended(servers: str, place: Partition, stands: int, ids: Iterable[str]) -> str:
    end_all(servers, place, ids)
    return f"{place[0]}[{place[1]}]: a transaction at offset {stands} was forgotten by its broker, and ended by the operator"


def ids_of(servers: str, workers: str) -> list[str]:
    """Transactional ids of every incarnation there was."""
    entries = read_log(servers, partitions_of(servers, workers))
    beats = [decode(entry.value) for found in entries.values() for entry in found if entry.value is not None]
    return sorted({name for beat in beats if isinstance(beat, Heartbeat) for name in beat.transactional_ids})


def end_all(servers: str, place: Partition, ids: Iterable[str]) -> None:
    """A transaction of each that touches the partition, aborted."""
    for name in ids:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": name}, logger=ClientLog())
        producer.init_transactions(CALL_S)
        producer.begin_transaction()
        producer.produce(place[0], b"", b"forgotten", place[1])
        producer.flush(CALL_S)
        producer.abort_transaction(CALL_S)
