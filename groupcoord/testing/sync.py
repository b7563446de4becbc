"""What the synchronous face stands on: an event loop in a thread of its own, and proxies that call into it.

The proxies themselves, one class for each asynchronous class, are generated: :mod:`groupcoord.testing.sync_api`.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")
TargetT = TypeVar("TargetT")
ContextT = TypeVar("ContextT", bound=AbstractAsyncContextManager[Any])


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
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop. Raises RuntimeError while the thread does not run."""
        if self._loop is None:
            raise RuntimeError("the cluster does not run: use it inside its `with` block")
        return self._loop

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` on the loop, and return its result. Raises what it raises.

        On the loop itself, as in a condition that is called there, only coroutines that wait for nothing can run: others raise
        RuntimeError.
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


class SyncProxy(Generic[TargetT]):
    """The base of the generated classes: ``target``, whose methods run on the loop of ``thread``."""

    def __init__(self, target: TargetT, thread: LoopThread) -> None:
        self._target = target
        self._thread = thread

    def __repr__(self) -> str:
        return repr(self._target)

    def _call(self, function: Callable[[], T]) -> T:
        return self._thread.call(function)

    def _wait(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        _ = self._thread.loop  # raises before a coroutine is made that nothing would run
        return self._thread.wait_for(start())

    def _future(self, start: Callable[[], "asyncio.Future[T]"]) -> "concurrent.futures.Future[T]":
        """What ``start`` begins at once, as a future that any thread can wait for."""
        return self._call(lambda: _future_of(start()))


class SyncContext(SyncProxy[ContextT]):
    """A proxy of an asynchronous context manager: the thread runs while the ``with`` block does."""

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._thread.wait_for(_enter(self._target))
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._thread.wait_for(_exit(self._target, kind, error, traceback))
        finally:
            self._thread.stop()


async def _enter(context: AbstractAsyncContextManager[Any]) -> None:
    await context.__aenter__()


async def _exit(
    context: AbstractAsyncContextManager[Any],
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
) -> None:
    await context.__aexit__(kind, error, traceback)


def _future_of(inner: "asyncio.Future[T]") -> "concurrent.futures.Future[T]":
    outer: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(_: object) -> None:
        if inner.cancelled():
            outer.cancel()
        elif (error := inner.exception()) is not None:
            outer.set_exception(error)
        else:
            outer.set_result(inner.result())

    inner.add_done_callback(done)
    return outer
