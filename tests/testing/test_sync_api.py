"""The synchronous classes: each method and property is that of the asynchronous class, with the same arguments and a type."""

import ast
import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.testing import KafkaCluster, sync_api
from groupcoord.testing.sync_proxy import LoopThread, SyncProxy
from tools.sync_api import ORIGINALS, PATH


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    running = LoopThread()
    running.start()
    yield running
    running.stop()


class Target:
    """Takes the place of an asynchronous object: says what was called, or gives its name for an attribute."""

    def __init__(self, original: type) -> None:
        self.original = original
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        found = inspect.getattr_static(self.original, name, None)
        if not inspect.isfunction(found):
            return f"the {name}"

        def called(*positional: Any, **named: Any) -> Any:
            self.calls.append((name, positional, named))
            if inspect.iscoroutinefunction(inspect.unwrap(found)):
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


def public(proxy_class: type) -> dict[str, Any]:
    """The methods and properties of the class."""
    return {
        key: member
        for key, member in inspect.getmembers_static(proxy_class)
        if not key.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }


@pytest.mark.parametrize("proxy_class", ORIGINALS, ids=lambda proxy_class: proxy_class.__name__)
def test_every_member_does_what_that_of_the_asynchronous_class_does(
    proxy_class: type[SyncProxy], thread: LoopThread
) -> None:
    assert public(proxy_class)
    for key, member in public(proxy_class).items():
        target = Target(ORIGINALS[proxy_class])
        proxy = proxy_class(target, thread)
        if isinstance(member, property):
            assert getattr(proxy, key) == f"the {key}", key
            if member.fset is not None:
                setattr(proxy, key, "another")
                assert target.__dict__[key] == "another"
            continue
        positional, named = arguments(getattr(proxy, key))
        found = getattr(proxy, key)(*positional, **named)
        result = found.result(timeout=10) if hasattr(found, "result") else found
        assert result == f"what {key} returns", key
        ((called, given, by_name),) = target.calls
        assert called == key
        assert [*given, *by_name.values()] == [*positional, *named.values()], key


def test_what_a_program_can_call_is_what_type_checkers_and_editors_are_told() -> None:
    stub = ast.parse(PATH.read_text(encoding="utf-8"))
    typed: dict[str, set[str]] = {"SyncProxy": set(), "SyncContext": set()}
    for each in stub.body:
        if isinstance(each, ast.ClassDef) and isinstance(each.bases[0], ast.Name):
            own = {it.name for it in each.body if isinstance(it, ast.FunctionDef) and it.name != "__enter__"}
            typed[each.name] = own | typed[each.bases[0].id]
    assert typed == {
        name: set(public(found)) for name, found in vars(sync_api).items() if isinstance(found, type) and name in typed
    } | {"SyncProxy": set(), "SyncContext": set()}
    assert not hasattr(sync_api.SyncCluster, "sync")
    assert sync_api.SyncAutoMember.pause.__doc__ == ORIGINALS[sync_api.SyncAutoMember].pause.__doc__  # type: ignore[attr-defined]


def test_editors_show_the_whole_description_that_the_asynchronous_class_has() -> None:
    stub = ast.parse(PATH.read_text(encoding="utf-8"))
    classes = {each.name: each for each in stub.body if isinstance(each, ast.ClassDef)}
    produce = next(each for each in classes["SyncKafkaCluster"].body if getattr(each, "name", "") == "produce")
    assert isinstance(produce, ast.FunctionDef)
    assert ast.get_docstring(produce) == inspect.getdoc(KafkaCluster.produce)
    assert ast.get_docstring(classes["SyncCluster"]) == inspect.getdoc(sync_api.SyncCluster)
    assert "while its ``with`` block runs" in str(sync_api.SyncCluster.__doc__)


def test_every_public_name_is_one_that_an_editor_completes() -> None:
    """A stub exports only names that it imports as themselves (PEP 484)."""
    stub = ast.parse(Path(gc.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    assert all(
        alias.asname == alias.name for each in stub.body if isinstance(each, ast.ImportFrom) for alias in each.names
    )
