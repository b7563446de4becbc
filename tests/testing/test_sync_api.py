"""The generated synchronous classes: each method and property is that of the asynchronous class, with the same arguments."""

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from groupcoord.testing import sync_api
from groupcoord.testing.sync import LoopThread, SyncProxy
from tools.sync_api import PROXIES


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    running = LoopThread()
    running.start()
    yield running
    running.stop()


class Attribute(str):
    """What an attribute gives; it is its own synchronous face."""

    __slots__ = ()

    def sync(self) -> "Attribute":
        return self


class Target:
    """Takes the place of an asynchronous object: says what was called, or gives its name for an attribute."""

    def __init__(self, original: type) -> None:
        self.original = original
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        found = inspect.getattr_static(self.original, name, None)
        if not inspect.isfunction(found):
            return Attribute(f"the {name}")

        def called(*positional: Any, **named: Any) -> Any:
            self.calls.append((name, positional, named))
            if inspect.iscoroutinefunction(found):
                return _result(name)
            if "Future" in str(inspect.signature(found).return_annotation):
                future = asyncio.get_running_loop().create_future()
                future.set_result(f"what {name} returns")
                return future
            return f"what {name} returns"

        return called


def test_a_thread_that_never_began_can_be_stopped() -> None:
    never = LoopThread()
    never.stop()
    with pytest.raises(RuntimeError, match="use it inside its `with` block"):
        _ = never.loop


async def _result(name: str) -> str:
    return f"what {name} returns"


def arguments(method: Any) -> tuple[list[Any], dict[str, Any]]:
    """One of each parameter of ``method``, which is bound."""
    positional, named = [], {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = f"the {parameter.name}"
        elif parameter.kind is not parameter.VAR_KEYWORD:
            positional.append(f"the {parameter.name}")
    return positional, named


def unwrapped(result: Any) -> Any:
    """What a proxy, a list of proxies or a future stands for."""
    if isinstance(result, SyncProxy):
        return result._target
    if isinstance(result, list):
        return "".join(map(unwrapped, result))
    return result.result(timeout=10) if hasattr(result, "result") else result


@pytest.mark.parametrize("name", PROXIES)
def test_every_member_does_what_that_of_the_asynchronous_class_does(name: str, thread: LoopThread) -> None:
    module, _, original_name = name.rpartition(".")
    original = getattr(__import__(module, fromlist=[original_name]), original_name)
    proxy_class = getattr(sync_api, PROXIES[name])
    shown = [
        key
        for key, member in inspect.getmembers_static(proxy_class)
        if not key.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    ]
    assert shown
    for key in shown:
        target = Target(original)
        proxy = proxy_class(target, thread)
        member = inspect.getattr_static(proxy_class, key)
        if isinstance(member, property):
            assert unwrapped(getattr(proxy, key)) == f"the {key}", key
            if member.fset is not None:
                setattr(proxy, key, "another")
                assert target.__dict__[key] == "another"
            continue
        positional, named = arguments(getattr(proxy, key))
        assert unwrapped(getattr(proxy, key)(*positional, **named)) in {f"what {key} returns", None}, key
        ((called, given, by_name),) = target.calls
        assert called == key
        assert [*given, *by_name.values()] == [*positional, *named.values()], key
