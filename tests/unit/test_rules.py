"""docs/rules.md names a test for every rule, and the tests it names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "rules.md"


def test_every_rule_has_a_test_and_every_test_named_exists() -> None:
    text = PAGE.read_text()
    named = set(re.findall(r"`(test_\w+)`", text))
    written = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), flags=re.MULTILINE)
    }
    assert named - written == set(), "docs/rules.md names tests that do not exist"
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    for rule in [f"L{number}" for number in range(1, 13)] + [f"W{number}" for number in range(1, 11)]:
        assert "`test_" in rows[rule], f"{rule} has no test in docs/rules.md"
    for situation in [f"T{number}" for number in range(1, 30)] + [f"T17{letter}" for letter in "abcde"]:
        assert "`test_" in rows[situation], f"{situation} has no test in docs/rules.md"
