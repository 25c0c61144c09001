"""The handlers a worker has. Code is named here, on the worker's command line, and nowhere else: no record can name any."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dueline.schemas.errors import NameInvalid
from dueline.schemas.names import check_name
from dueline.workers.errors import HandlerError

HandlerFunction = Callable[[Any], object]
"""Takes the context; returns the run's result, or a coroutine that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A function under the name that jobs use."""

    name: str
    function: HandlerFunction
    asynchronous: bool


class Registry:
    """Handlers by name. Immutable."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._handlers: dict[str, Handler] = {}
        for handler in handlers:
            if handler.name in self._handlers:
                raise HandlerError(f"handler {handler.name!r} is given twice: each name stands for one function")
            self._handlers[handler.name] = handler

    @classmethod
    def of(cls, functions: Mapping[str, HandlerFunction]) -> Registry:
        """A registry of functions by name."""
        return cls(make_handler(name, function) for name, function in functions.items())

    def get(self, name: str) -> Handler | None:
        """The handler, or None."""
        return self._handlers.get(name)

    @property
    def names(self) -> list[str]:
        """Sorted."""
        return sorted(self._handlers)


def parse_handler(text: str) -> Handler:
    """`name=module:attribute` to a handler; the current folder is on the import path. Raises HandlerError."""
    name, equals, target = text.partition("=")
    module, colon, attribute = target.partition(":")
    if not equals or not colon or not module or not attribute:
        raise HandlerError(f"--handler {text!r}: write name=module:attribute, e.g. menu=examples.menu:send_menu")
    return make_handler(name, _find(text, module, attribute), given=text)


def make_handler(name: str, function: object, given: str = "") -> Handler:
    """A handler of this function. Raises HandlerError when it cannot be called with a context alone."""
    where = f"--handler {given!r}" if given else f"handler {name!r}"
    try:
        check_name("handler name", name)
    except NameInvalid as error:
        raise HandlerError(f"{where}: {error}") from error
    if not callable(function):
        raise HandlerError(f"{where}: it is a {type(function).__name__}, not a function")
    try:
        inspect.signature(function).bind(object())
    except TypeError as error:
        raise HandlerError(f"{where}: it is called with the context alone, but {error}: define it as f(ctx)") from error
    except ValueError:
        pass  # some built-in callables have no signature to look at; the call itself will tell
    asynchronous = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is a coroutine function
    )
    return Handler(name=name, function=function, asynchronous=asynchronous)


def _find(given: str, module: str, attribute: str) -> object:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            raise HandlerError(
                f"--handler {given!r}: no module {error.name!r} in {here} or among the installed packages: "
                "check the spelling and the folder you start in"
            ) from error
        raise HandlerError(f"--handler {given!r}: module {module!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        raise HandlerError(
            f"--handler {given!r}: module {module!r} fails when imported: {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise HandlerError(f"--handler {given!r}: module {module!r} has no {attribute!r}") from error
    return found
