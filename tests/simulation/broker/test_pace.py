"""How fast the brokers are. Printed, not judged: the figure is the machine's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tests.simulation.broker.driver import Driver, settle


def test_what_a_transaction_costs(record_property: Callable[[str, object], None]) -> None:
    driver = Driver()
    member = driver.member(session_s=1000.0)
    settle(member)
    writer = driver.writer()
    start = time.perf_counter()
    count = 2000
    for number in range(count):
        assert writer.add() == 0
        assert writer.put(*(f"{number}" for _ in range(10))) == 0
        assert writer.add_offsets() == 0
        assert writer.offsets(number, member.generation, member.name) == 0
        assert writer.end() == 0
        assert driver.read(offset=driver.end() - 2).code == 0
    each_us = (time.perf_counter() - start) / count * 1e6
    record_property("us_each", each_us)
    sys.stdout.write(f"{each_us:.0f} µs a transaction of 10 records and offsets, with one fetch\n")
    assert driver.committed() == count - 1
