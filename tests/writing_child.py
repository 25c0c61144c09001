"""A small leader as a process of its own, for tests that stop and kill: joins, takes over, writes, says each step.

    python -m tests.writing_child SERVERS NAMESPACE NAME

It writes one record `NAME:n` to the ledger about every 20 ms while it holds the control partition, under the captured
assignment, and takes over anew after every failure. Each step is a line of JSON on stdout: {"at": step, ...}; steps:
assigned, standby, opened, wrote, Refused, Fenced, Aborted, Doubtful, Unavailable. Failpoints of the writer: `leader.*`.
It ends when stdin ends.
"""

from __future__ import annotations

import json
import select
import sys

from dueline.scheduler.core.ports import (
    Assignment,
    GroupOffsets,
    GroupReader,
    Kafka,
    Outgoing,
    TransactionWriter,
    Unavailable,
    WriteError,
)
from dueline.scheduler.kafka.cluster import KafkaCluster
from dueline.scheduler.kafka.config import KafkaConfig
from dueline.schemas.topics import Namespace

PACE_S = 0.02


class Child:
    """States: standby -> (holds the control partition) -> opened -> wrote* -> (any failure) -> standby."""

    def __init__(self, cluster: Kafka, ns: Namespace, name: str) -> None:
        self._cluster = cluster
        self._ns = ns
        self._name = name
        self._group: GroupReader = cluster.group_reader(ns.scheduler_group, ns.control)
        self._writer: TransactionWriter | None = None
        self._seen: int | None = None
        self._refused: int | None = None
        self._count = 0

    def run(self) -> None:
        while not select.select([sys.stdin], [], [], 0)[0]:
            assignment, _ = self._group.poll(PACE_S, 10)
            self._tell(assignment)
            leads = assignment is not None and (self._ns.control, 0) in assignment.partitions
            if not leads or assignment is None:
                self._step_down()
            elif assignment.serial != self._refused:  # L3: after a refusal another generation is captured first
                self._write(assignment)
        self._step_down()
        self._group.close()

    def _write(self, assignment: Assignment) -> None:
        try:
            if self._writer is None:
                self._writer = self._cluster.writers().open(self._ns.leader_ids)
                say("opened", generation=assignment.generation)
            value = f"{self._name}:{self._count}"
            self._count += 1
            (delivered,) = self._writer.write(
                [[Outgoing(topic=self._ns.runs, key=self._name.encode(), value=value.encode(), partition=0)]],
                offsets=GroupOffsets(assignment=assignment, offsets={(self._ns.control, 0): 0}),
            )
            say("wrote", value=value, offset=delivered.offset)
        except (WriteError, Unavailable) as error:
            say(type(error).__name__, why=str(error), generation=assignment.generation)
            if type(error).__name__ == "Refused":
                self._refused = assignment.serial
            self._step_down()

    def _step_down(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _tell(self, assignment: Assignment | None) -> None:
        serial = assignment.serial if assignment is not None else None
        if serial != self._seen:
            self._seen = serial
            held = sorted(assignment.partitions) if assignment is not None else []
            generation = assignment.generation if assignment is not None else -1
            say("assigned" if held else "standby", generation=generation)


def say(at: str, **what: object) -> None:
    sys.stdout.write(json.dumps({"at": at, **what}) + "\n")
    sys.stdout.flush()


def main() -> None:
    servers, namespace, name = sys.argv[1:]
    cluster = KafkaCluster(KafkaConfig(bootstrap_servers=servers), client_name=name)
    Child(cluster, Namespace(namespace), name).run()


if __name__ == "__main__":
    main()
