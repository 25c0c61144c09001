"""How many examples a property is tried with: few while one works, 10,000 in CI, more by DUELINE_EXAMPLES=100000."""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import HealthCheck, settings

_LOCAL = 400
_CI = 10_000


def examples(*, share: float = 1.0) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Settings for a property; `share` is the part of the full number that a costly one takes."""
    given = os.environ.get("DUELINE_EXAMPLES")
    full = int(given) if given else _CI if os.environ.get("CI") else _LOCAL
    return settings(
        max_examples=max(50, int(full * share)),
        deadline=None,  # two shared cores: a slow moment is no failure
        suppress_health_check=[HealthCheck.too_slow],
    )
