"""Opens transaction writers: new producers, every id initialised, then in turns (L3, L11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from dueline.scheduler.core.ports import Aborted, LogAdmin, Outgoing, TransactionWriter, Unavailable

from .config import KafkaConfig
from .errors import TopicMissing
from .failpoints import reach
from .timing import Timing
from .transaction import TransactionalProducer
from .turns import TurnsWriter
from .watchdog import Watchdog


class Writers:
    """Port `WriterFactory`."""

    def __init__(self, config: KafkaConfig, *, watchdog: Watchdog, admin: Callable[[], LogAdmin]) -> None:
        self._config = config
        self._watchdog = watchdog
        self._admin = admin
        self._known: dict[str, int] = {}

    def open(
        self,
        transactional_ids: Sequence[str],
        *,
        doubt_bound_s: float | None = None,
        survives_refusal: bool = False,
        transaction_timeout_s: float | None = None,
    ) -> TransactionWriter:
        """Raises Fenced, Unavailable, NotAuthorized, ConfigError."""
        name = failpoint_name(transactional_ids[0])
        reach(f"{name}.before-init")
        timing = Timing.of(transaction_timeout_s, doubt_bound_s)
        producers = [
            TransactionalProducer(self._config, id_, name=name, timing=timing, watchdog=self._watchdog)
            for id_ in transactional_ids
        ]
        try:
            initialise(producers)
        except BaseException:
            for producer in producers:
                producer.close()
            raise
        return TurnsWriter(producers, check=self._check_topics, survives_refusal=survives_refusal)

    def _check_topics(self, groups: Sequence[Sequence[Outgoing]]) -> None:
        """Before a transaction's first use of a topic: it exists. A broker that creates topics by itself would make one
        with the wrong settings. Raises TopicMissing, Aborted."""
        for group in groups:
            for record in group:
                count = self._known.get(record.topic, 0)
                if count and record.partition < count:
                    continue
                try:
                    count = self._known[record.topic] = self._admin().partitions(record.topic)
                except Unavailable as error:
                    raise Aborted(f"not begun: {error}") from None
                if not count:
                    raise TopicMissing(record.topic)
                if record.partition >= count:
                    raise TopicMissing(record.topic, record.partition)


def initialise(producers: Sequence[TransactionalProducer]) -> None:
    """All in parallel; raises the first failure after all have ended, so that none is left half-way."""
    with ThreadPoolExecutor(max_workers=len(producers), thread_name_prefix="dueline-init") as pool:
        failures = [future.exception() for future in [pool.submit(producer.init) for producer in producers]]
    try:
        for failure in failures:
            if failure is not None:
                raise failure
    finally:
        del failure, failures  # a cycle with the failure's traceback, which holds clients that are to be closed


def failpoint_name(transactional_id: str) -> str:
    """`leader`, `claim` or `worker`: the first part of this writer's failpoints, from the id's last parts."""
    front, _, last = transactional_id.rpartition(".")
    if last == "claim":
        return "claim"
    return "leader" if front.rpartition(".")[2] == "leader" else "worker"
