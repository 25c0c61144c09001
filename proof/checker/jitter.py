"""How far `jitter` puts the start of a due time off, worked out here from the rule in docs/schedules.md.

The offset of a job and a due time is below the jitter of the schedule that names it (the least, if several do) and never reaches
the next due time: BLAKE2b (64 bits) of the word `jitter`, the job's id and the due time in milliseconds with a NUL between each,
times that limit, divided by 2^64.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from proof.checker.schedule import Schedule

BITS: Final = 64


def offset_ms(job: str, dues: Schedule | None, due_ms: int) -> int:
    """Milliseconds from the due time to the start; 0 where the schedule has no jitter."""
    found = [entry.jitter_ms for entry in dues.entries if entry.jitter_ms] if dues is not None else []
    if dues is None or not found:
        return 0
    if len(dues.entries) > 1:
        found = [entry.jitter_ms for entry in dues.entries if any(entry.between(due_ms, due_ms + 1))] or found
    limit = min(found)
    limit = min([limit, *(due - due_ms for due in dues.between(due_ms + 1, due_ms + limit))])
    digest = blake2b(f"jitter\0{job}\0{due_ms}".encode("utf-8", "surrogatepass"), digest_size=BITS // 8).digest()
    return int.from_bytes(digest, "big") * limit >> BITS
