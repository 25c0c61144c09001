"""T24: whose group is it? Asked in a process of its own.

The admin client's questions about groups abort or crash the whole process when they meet a coordinator that is loading or
goes away (librdkafka 2.16: an assertion in `rdkafka_queue.h`, a fault in `rd_kafka_cgrp_op`). Here that costs the answer only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from .config import KafkaConfig

ANSWER_S: Final = 10.0
START_S: Final = 20.0  # of the process itself, on a busy machine


def topics_of_group(config: KafkaConfig, group: str) -> set[str] | None:
    """Topics that members of the group hold partitions of; None when nobody could tell."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dueline.scheduler.kafka.group_check", group],
            input=json.dumps(config.client()),  # not as an argument: it may hold secrets
            capture_output=True,
            text=True,
            timeout=ANSWER_S + START_S,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return set(json.loads(done.stdout)) if done.returncode == 0 else None


def main() -> int:
    """Settings as JSON on standard input, the group as argument; the topics as JSON on standard output."""
    settings = json.load(sys.stdin)
    client = AdminClient({**settings, "log_level": 0})
    [group] = sys.argv[1:]
    try:
        described = client.describe_consumer_groups([group], request_timeout=ANSWER_S)[group].result(ANSWER_S + 1)
    except (KafkaException, TimeoutError):
        return 1
    held = {part.topic for member in described.members if member.assignment for part in member.assignment.topic_partitions}
    json.dump(sorted(held), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
