"""Free loopback ports."""

from __future__ import annotations

import random
import socket

from .config import HOST, Ports

# Below the range from which Linux (32768) and macOS (49152) take the ports of outgoing connections: a client that
# retries while the broker is down could otherwise be given the broker's own port, and even connect to itself.
LOWEST, HIGHEST = 15_000, 32_000


def is_free(port: int) -> bool:
    """Whether a listener could take the port now. It may be gone a moment later."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka does: TIME_WAIT does no harm
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def accepts(port: int) -> bool:
    """Whether something listens on the port."""
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def choose(*, client: int | None, rng: random.Random) -> Ports:
    """Two free ports; `client` keeps its given value whether free or not."""
    chosen = pick(rng, taken=()) if client is None else client
    return Ports(client=chosen, controller=pick(rng, taken=(chosen,)))


def pick(rng: random.Random, *, taken: tuple[int, ...]) -> int:
    for _ in range(1000):
        port = rng.randrange(LOWEST, HIGHEST)
        if port not in taken and is_free(port):
            return port
    raise OSError(f"no free port between {LOWEST} and {HIGHEST} on {HOST}")
