"""Side effects as lines of a file: what happened outside Kafka and can't be taken back by an aborted transaction."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Final

from proof.faults.clock import now_ms
from proof.history.acts import Effect

FILE_ENVIRONMENT: Final = "PROOF_EFFECTS"
PROCESS_ENVIRONMENT: Final = "PROOF_PROCESS"


def happen(*, job: str, due_ms: int, step: str, key: str, run: str, attempt: int, began_ms: int) -> None:
    """Append one line in one write: a killed process leaves a whole line or none. `began_ms`: when the step was called."""
    effect = Effect(
        job=job, due_ms=due_ms, step=step, key=key, run=run, attempt=attempt, at_ms=now_ms(),
        process=os.environ[PROCESS_ENVIRONMENT], began_ms=began_ms,
    )  # fmt: skip
    line = json.dumps(asdict(effect)) + "\n"
    file = os.open(os.environ[FILE_ENVIRONMENT], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def read_effects(path: Path) -> tuple[Effect, ...]:
    """All of the file, in the order they happened."""
    if not path.exists():
        return ()
    return tuple(Effect(**json.loads(line)) for line in path.read_bytes().splitlines())
