"""A puppet's process: functions of `acts`, called by lines of JSON on stdin; answers are lines of JSON on stdout.

    python -m tests.simulation.conformance.child SERVERS
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.simulation.conformance import acts
from tests.simulation.conformance.real import RealBench


def main() -> None:
    bench = RealBench(sys.argv[1])
    held: dict[str, Any] = {}
    for line in sys.stdin:
        act, *arguments = json.loads(line)
        answer = getattr(acts, act)(bench, held, *arguments)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
