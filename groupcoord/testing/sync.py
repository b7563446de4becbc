"""The cluster for programs without asyncio: a loop in a thread of its own, and everything without ``await``::

    with Cluster(topics={"orders": 6}) as kafka:
        ...                                  # any client, in this thread or elsewhere
        kafka.group("app").stable(members=2)
        kafka.advance(seconds=46)

Every method is that of the cluster, its groups and its members, called where their loop is; what one would await there is
waited for here. Only the steps of a scripted member return at once, with a ``concurrent.futures.Future``.
"""

import asyncio
import concurrent.futures
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from groupcoord.testing.appends import HeldAppends
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.barrier import Barrier
from groupcoord.testing.groups import Group
from groupcoord.testing.manual_member import ManualMember

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own, until ``stop``."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="groupcoord cluster", daemon=True)
        self._thread.start()

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What ``coroutine`` returns, run on the loop. Raises what it raises."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def call(self, function: Callable[[], T]) -> T:
        """What ``function`` returns, called on the loop. Raises what it raises."""
        if threading.current_thread() is self._thread:
            return function()

        async def called() -> T:
            return function()

        return self.wait_for(called())

    def stop(self) -> None:
        """End the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


class Blocking:
    """``target``, whose methods run on the loop of ``thread``."""

    def __init__(self, target: object, thread: LoopThread) -> None:
        self._target = target
        self._thread = thread

    def __repr__(self) -> str:
        return self._thread.call(lambda: repr(self._target))

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._target) if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._thread.call(lambda: getattr(self._target, name))
        if not inspect.ismethod(found):
            return self._given(found)

        def method(*arguments: Any, **named: Any) -> Any:
            return self._given(self._thread.call(lambda: self._begun(found(*arguments, **named))))

        return method

    def _begun(self, result: Any) -> Any:
        """In the loop: what can only be awaited there becomes what can be waited for anywhere."""
        if asyncio.isfuture(result):
            return _future_of(result)
        if inspect.iscoroutine(result):
            return _Waited(asyncio.run_coroutine_threadsafe(result, self._thread.loop))
        return result

    def _given(self, result: Any) -> Any:
        if isinstance(result, _Waited):
            result = result.future.result()
        if isinstance(result, Group | AutoMember | ManualMember | Barrier | HeldAppends):
            return Blocking(result, self._thread)
        if isinstance(result, list):
            return [self._given(each) for each in result]
        return result


class _Waited:
    """The result of a coroutine, which whoever called it gets when it is there."""

    def __init__(self, future: "concurrent.futures.Future[Any]") -> None:
        self.future = future


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
