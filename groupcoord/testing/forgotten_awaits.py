"""Detects calls whose ``await`` was forgotten: ``kafka.clock.advance(46)`` alone does nothing, and the test would still pass.

Such a call only creates a coroutine, which starts when it is awaited. Coroutines that the test gets from ``noted`` classes are
recorded until they start; those that have not started when a cluster ends fail the test.
"""

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

_PACKAGE = __name__.rpartition(".")[0]
_OWN_REFERENCES = 2
"""The references to a coroutine that the test does not keep: one from its ``_Call``, one from ``sys.getrefcount``."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A coroutine, with the call that created it, its file and line."""

    coroutine: Coroutine[Any, Any, Any]
    loop: asyncio.AbstractEventLoop | None
    name: str
    file: str
    line: int

    @property
    def has_begun(self) -> bool:
        return inspect.getcoroutinestate(self.coroutine) != inspect.CORO_CREATED

    @property
    def is_kept(self) -> bool:
        """Does the test keep a reference to it, so that it may still await it?"""
        return sys.getrefcount(self.coroutine) > _OWN_REFERENCES

    def __str__(self) -> str:
        return f"{self.name}(…) at {self.file}:{self.line}"


_calls: list[_Call] = []
"""The recorded calls. Each new call removes those that have started."""


def noted(of_class: C) -> C:
    """Class decorator that records the calls of the class's public asynchronous methods."""
    for name, member in list(vars(of_class).items()):
        if inspect.iscoroutinefunction(member) and not name.startswith("_"):
            setattr(of_class, name, _noting(member))
    return of_class


def _noting(method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @functools.wraps(method)
    def call(self: Any, /, *arguments: Any, **named: Any) -> Coroutine[Any, Any, Any]:
        made = method(self, *arguments, **named)
        caller = sys._getframe(1)  # noqa: SLF001 - where the call stands
        if not caller.f_globals.get("__name__", "").startswith(_PACKAGE):
            _calls[:] = [each for each in _calls if not each.has_begun]
            name = f"{type(self).__name__}.{method.__name__}"
            _calls.append(_Call(made, _running_loop(), name, caller.f_code.co_filename, caller.f_lineno))
        return made

    return call


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def check(error: BaseException | None = None) -> None:
    """Raise AssertionError for calls in this event loop, or in none, that were never awaited; with an ``error``, add them to it
    as a note instead.

    Tasks that were created of such a call just before have started by then. Coroutines that the test still keeps are left out:
    Python warns if they are never awaited.
    """
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    found = [each for each in _calls if each.loop in (loop, None) and not each.has_begun and not each.is_kept]
    _calls[:] = [each for each in _calls if each.loop not in (loop, None) and not each.has_begun]
    for each in found:
        each.coroutine.close()
    if not found:
        return
    advice = "Write `await` before it"
    if any(each.loop is None for each in found):
        advice += ", in an `async def`; a test without asyncio uses the fixture kafka_sync, without `await`"
    text = f"never awaited, so nothing of it was done: {', '.join(map(str, found))}. {advice}"
    if error is None:
        raise AssertionError(text)
    error.add_note(text)
