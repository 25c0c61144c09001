"""Deterministic draws from the job id: the values of H and the jitter of starts. The same on every node, for ever."""

from __future__ import annotations

from hashlib import blake2b

from dueline.scheduler.core.schedule.cron_field import Draw

_BITS = 64


def draw_for(job_id: str) -> Draw | None:
    """The draw of a job for its H fields; None without an id, which refuses H."""
    if not job_id:
        return None

    def draw(field: str, size: int) -> int:
        return _uniform(f"H\0{job_id}\0{field}", size)

    return draw


def jitter_ms(job_id: str, due: int, limit_ms: int) -> int:
    """An offset of 0 <= offset < `limit_ms` for a due time (ms)."""
    return _uniform(f"jitter\0{job_id}\0{due}", limit_ms) if limit_ms > 0 else 0


def _uniform(text: str, size: int) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_BITS // 8).digest()
    return int.from_bytes(digest, "big") * size >> _BITS
