"""The audit judges the leader, so it must not think with the leader's head."""

from __future__ import annotations

import ast
from pathlib import Path

AUDIT = Path(__file__).resolve().parents[3] / "scheduler" / "audit"
ALLOWED = ("dueline.schemas", "dueline.scheduler.audit", "dueline.scheduler.core.ports", "dueline.scheduler.core.schedule")


def test_the_audit_uses_records_ports_and_the_schedule_engine_alone() -> None:
    imported = {
        (path.name, node.module)
        for path in AUDIT.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dueline")
    }
    assert len(imported) > 10
    assert {(file, module) for file, module in imported if not module.startswith(ALLOWED)} == set()
