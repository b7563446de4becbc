"""Runs a function in a daemon thread, for which the interpreter does not wait when it exits."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any


def run_in_daemon_thread(function: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
    """Call ``function`` in a thread of its own; the future gets its result or its exception.

    ``asyncio.to_thread`` would not do for a function that may never return: its threads are joined when the program ends.
    """
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return  # nobody waits any more
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = function(*arguments)
        except Exception as problem:
            error = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=f"groupcoord {function.__name__}", daemon=True).start()
    return future
