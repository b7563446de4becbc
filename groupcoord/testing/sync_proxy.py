"""The base of the synchronous classes: an event loop in a thread of its own, and a factory of proxy classes that call into it.

The proxy classes, one for each asynchronous class, are in :mod:`groupcoord.testing.sync_api`.
"""

import asyncio
import concurrent.futures
import functools
import inspect
import threading
from collections.abc import Callable, Collection, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own, from ``start`` to ``stop``."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(loop,), name="groupcoord cluster", daemon=True)
        self._thread.start()
        self._loop = loop

    def stop(self) -> None:
        """End the loop and its thread."""
        if self._thread is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self._thread = self._loop = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._loop is not None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop. Raises RuntimeError while the thread does not run."""
        if self._loop is None:
            raise RuntimeError("the cluster does not run: use it inside its `with` block")
        return self._loop

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` on the loop, and return its result. Raises what it raises.

        Called on the loop itself, as by a condition, it can only run coroutines that do not wait; others raise RuntimeError.
        """
        if threading.current_thread() is not self._thread:
            return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()
        try:
            coroutine.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        coroutine.close()
        raise RuntimeError("a condition cannot wait: it may only look at what is there")

    def call(self, function: Callable[[], T]) -> T:
        """Call ``function`` on the loop, and return its result. Raises what it raises."""
        if threading.current_thread() is self._thread:
            return function()

        async def called() -> T:
            return function()

        return self.wait_for(called())


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class SyncProxy:
    """The base class of the proxies: the methods of ``target`` run on the loop of ``thread``."""

    def __init__(self, target: Any, thread: LoopThread) -> None:
        self._target = target
        self._thread = thread

    def __repr__(self) -> str:
        return repr(self._target)

    def _call(self, function: Callable[[], Any], *, awaits: bool) -> Any:
        """The result of ``function``, awaited if it ``awaits``; asynchronous objects in it are replaced by their proxies.

        An asyncio future becomes a concurrent one, for which any thread can wait; what it stands for has started already.
        """
        if awaits:
            _ = self._thread.loop  # raises before a coroutine is made that nothing would run
            found = self._thread.wait_for(function())
        else:
            found = self._thread.call(lambda: _threadsafe(function()))
        if isinstance(found, list) and found and _proxy_of(found[0]) is not None:
            return [self._synchronous(each) for each in found]
        return self._synchronous(found)

    def _synchronous(self, found: Any) -> Any:
        proxy = _proxy_of(found)
        return found if proxy is None else proxy(found, self._thread)


class SyncContext(SyncProxy):
    """A proxy of an asynchronous context manager, whose thread runs while the ``with`` block runs."""

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._thread.wait_for(self._target.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._thread.wait_for(self._target.__aexit__(kind, error, traceback))
        finally:
            self._thread.stop()


PROXIES: dict[type, Callable[[Any, LoopThread], Any]] = {}
"""Asynchronous class → the factory of its synchronous proxy."""


def sync_class(
    original: type, base: type[SyncProxy] = SyncProxy, *, without: Collection[str] = (), settable: Collection[str] = ()
) -> type[SyncProxy]:
    """Create the proxy class of ``original``, with its public attributes, properties and methods except those in ``without``.

    Only the attributes in ``settable`` can be set. Methods have the original signatures, and wait for their results.
    """
    doc = (original.__doc__ or "").replace("``async with``", "``with``")
    members: dict[str, Any] = {"__doc__": doc, "__module__": "groupcoord.testing.sync_api"}
    for name in (*inspect.get_annotations(original), *vars(original)):
        member = vars(original).get(name)
        if name.startswith("_") or name in without:
            continue
        if isinstance(member, property):
            members[name] = _property(name, member)
        elif inspect.isfunction(member):
            members[name] = _method(name, member)
        else:
            members[name] = _attribute(name, settable=name in settable)
    made = PROXIES[original] = type(f"Sync{original.__name__}", (base,), members)
    return made


def _attribute(name: str, *, settable: bool) -> property:
    def get(self: SyncProxy) -> Any:
        return getattr(self._target, name)

    def put(self: SyncProxy, value: Any) -> None:
        setattr(self._target, name, value)

    return property(get, put if settable else None)


def _property(name: str, original: property) -> property:
    def get(self: SyncProxy) -> Any:
        return self._call(lambda: getattr(self._target, name), awaits=False)

    return property(get, doc=original.__doc__)


def _method(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    awaits = inspect.iscoroutinefunction(inspect.unwrap(original))

    @functools.wraps(original)
    def method(self: SyncProxy, /, *arguments: Any, **named: Any) -> Any:
        return self._call(lambda: getattr(self._target, name)(*arguments, **named), awaits=awaits)

    return method


def _proxy_of(found: Any) -> Callable[[Any, LoopThread], Any] | None:
    return next((PROXIES[each] for each in type(found).__mro__ if each in PROXIES), None)


def _threadsafe(found: Any) -> Any:
    """``found``; an asyncio future is replaced by a concurrent one, for which any thread can wait."""
    if not isinstance(found, asyncio.Future):
        return found
    outer: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(inner: "asyncio.Future[Any]") -> None:
        if inner.cancelled():
            outer.cancel()
        elif (error := inner.exception()) is not None:
            outer.set_exception(error)
        else:
            outer.set_result(inner.result())

    found.add_done_callback(done)
    return outer
