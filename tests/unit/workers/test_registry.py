"""Handlers by name: what can be registered, and what is said when not."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from dueline.workers.errors import HandlerError
from dueline.workers.registry import Registry, make_handler, parse_handler
from dueline.workers.settings import WorkerSettings, default_worker_id


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's module in the current folder, which is not on the import path yet."""
    (tmp_path / "kitchen_of_test.py").write_text(
        "NUMBER = 7\n"
        "def menu(ctx): return 1\n"
        "async def later(ctx): return 1\n"
        "def no_context(): return 1\n"
        "def two(ctx, more): return 1\n"
        "class Cook:\n    def bake(self, ctx): return 1\ncook = Cook()\n"
    )
    (tmp_path / "broken_of_test.py").write_text("1 / 0\n")
    (tmp_path / "needy_of_test.py").write_text("import nothing_of_that_name\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    return "kitchen_of_test"


def test_a_function_in_the_current_folder_is_found(module: str) -> None:
    handler = parse_handler(f"menu={module}:menu")
    assert (handler.name, handler.asynchronous, handler.function(None)) == ("menu", False, 1)
    assert parse_handler(f"menu={module}:later").asynchronous
    assert parse_handler(f"menu={module}:cook.bake").function(None) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("menu", "write name=module:attribute"),
        ("menu=kitchen_of_test", "write name=module:attribute"),
        ("=kitchen_of_test:menu", "handler name is empty"),
        ("a b=kitchen_of_test:menu", "holds ' '"),
        ("menu=no_such_module:menu", "no module 'no_such_module'"),
        ("menu=kitchen_of_test.deep:menu", "no module"),
        ("menu=kitchen_of_test:dinner", "has no 'dinner'"),
        ("menu=kitchen_of_test:NUMBER", "is a int, not a function"),
        ("menu=kitchen_of_test:no_context", "called with the context alone"),
        ("menu=kitchen_of_test:two", "called with the context alone"),
        ("menu=broken_of_test:menu", "fails when imported: ZeroDivisionError"),
        ("menu=needy_of_test:menu", "needs 'nothing_of_that_name'"),
    ],
)
def test_what_is_wrong_is_said(module: str, text: str, says: str) -> None:
    with pytest.raises(HandlerError, match=says):
        parse_handler(text)


def test_objects_that_can_be_called_are_handlers_too() -> None:
    class Later:
        async def __call__(self, _ctx: object) -> int:
            return 1

    async def two(more: int, _ctx: object) -> int:
        return more

    assert make_handler("a", Later()).asynchronous
    assert make_handler("b", partial(two, 1)).asynchronous


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(HandlerError, match="given twice"):
        Registry([make_handler("a", lambda ctx: 1), make_handler("a", lambda ctx: 2)])


def test_settings_that_cannot_work_are_refused() -> None:
    assert WorkerSettings(queue="q", worker_timeout_s=10).lease_s == 7.0
    for wrong in ({"slots": 0}, {"heartbeat_s": 5.0}, {"queue": "a b"}, {"worker": ""}, {"prefetch": -1}):
        with pytest.raises(ValueError, match=r"."):
            WorkerSettings(**{"queue": "q", **wrong})  # type: ignore[arg-type]
    assert WorkerSettings(queue="q").worker == default_worker_id()
