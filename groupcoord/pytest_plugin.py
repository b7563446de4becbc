"""The pytest plugin: the fixtures ``kafka``, ``kafka_sync`` and their variants, and the marker ``kafka``.

pytest loads it wherever groupcoord is installed. The broker itself is imported only by the first test that uses a fixture, so
that other test runs do not pay for it.
"""

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

if TYPE_CHECKING:
    from groupcoord.testing.cluster import Cluster
    from groupcoord.testing.pytest_reports import SeenBefore
    from groupcoord.testing.sync_api import SyncCluster

    ClusterFactory = Callable[..., Awaitable[Cluster]]
    SyncClusterFactory = Callable[..., SyncCluster]

Scope = Literal["function", "class", "module", "package", "session"]

_SCOPES: tuple[Scope, ...] = ("function", "class", "module", "package", "session")
"""pytest's fixture scopes, from the narrowest to the widest."""
_ASYNCHRONOUS: Mapping[str, Scope] = {
    "kafka": "function",
    "kafka_factory": "function",
    "kafka_module": "module",
    "kafka_session": "session",
}
_SYNCHRONOUS: Mapping[str, Scope] = {
    "kafka_sync": "function",
    "kafka_sync_factory": "function",
    "kafka_sync_module": "module",
    "kafka_sync_session": "session",
}
_SCOPE_OF = {**_ASYNCHRONOUS, **_SYNCHRONOUS}

_MARKER = (
    "kafka(topics=, config=, clock=, ...): how the cluster of the fixtures kafka and kafka_sync is made; "
    "the arguments are those of groupcoord.Cluster, and the clock is manual unless the marker says otherwise"
)


@dataclass
class _Shared:
    """A cluster of module or session scope, which several tests use, one after the other."""

    loop: Scope | None
    """The scope of pytest-asyncio's event loop in which it runs; None if it runs in none of them."""
    check: Callable[[bool], None]
    """Raises what the end of a cluster raises; for rules that never acted only if its argument is True."""
    reset: Callable[[], None]
    is_used: bool = False
    """Whether a test has used it, and it was checked, since its start or last reset."""


_ITEM = pytest.StashKey[pytest.Item]()
"""The running test."""
_FAILED = pytest.StashKey[bool]()
_SHARED = pytest.StashKey[dict[str, _Shared]]()
"""The existing shared clusters, by fixture name."""
_SEEN_BEFORE: "pytest.StashKey[SeenBefore]" = pytest.StashKey()
"""The state of each cluster's trace before the test."""


# Options and the marker.


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--rewrite-golden`` and ``--kafka-trace-dir``."""
    group = parser.getgroup("groupcoord")
    group.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write the golden files of groupcoord.assert_golden anew instead of comparing with them",
    )
    group.addoption(
        "--kafka-trace-dir",
        metavar="DIR",
        type=Path,
        help="save the whole trace of each cluster that a failed test used, in a file of DIR that is named after the test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, apply ``--rewrite-golden``, and register the asynchronous fixtures that the public ones use."""
    config.addinivalue_line("markers", _MARKER)
    config.stash[_SHARED] = {}
    if config.getoption("--rewrite-golden"):
        from groupcoord.testing.trace import golden  # noqa: PLC0415 - see above

        golden.rewrite(config.add_cleanup)
    fixtures = ModuleType("groupcoord's fixtures in event loops")
    vars(fixtures).update(_for_anyio())
    if _has_pytest_asyncio(config):
        vars(fixtures).update(_for_pytest_asyncio())
    config.pluginmanager.register(fixtures)


def _has_pytest_asyncio(config: pytest.Config) -> bool:
    return any(config.pluginmanager.has_plugin(name) for name in ("asyncio", "pytest_asyncio.plugin"))


# Fixtures.


@pytest.fixture(scope="session")
def kafka_settings() -> Mapping[str, Any]:
    """Arguments of ``groupcoord.Cluster`` for every cluster of these fixtures; override it, for example in a conftest.py."""
    return {}


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> "Cluster":
    """A ``groupcoord.Cluster`` with a manual clock, in the event loop of an asynchronous test."""
    return cast("Cluster", _asynchronous(request, "kafka"))


@pytest.fixture
def kafka_factory(request: pytest.FixtureRequest) -> "ClusterFactory":
    """An asynchronous function that creates clusters for one test, each with settings of its own."""
    return cast("ClusterFactory", _asynchronous(request, "kafka_factory"))


@pytest.fixture(scope="module")
def kafka_module(request: pytest.FixtureRequest) -> "Cluster":
    """One cluster for all tests of a module, ``reset`` after each of them."""
    return cast("Cluster", _asynchronous(request, "kafka_module"))


@pytest.fixture(scope="session")
def kafka_session(request: pytest.FixtureRequest) -> "Cluster":
    """One cluster for all tests, ``reset`` after each of them that uses it."""
    return cast("Cluster", _asynchronous(request, "kafka_session"))


@pytest.fixture
def kafka_sync(request: pytest.FixtureRequest) -> Generator["SyncCluster"]:
    """As ``kafka``, for tests without asyncio: no method needs ``await``, and the broker runs in a thread of its own."""
    with _synchronous(request) as make:
        yield make()


@pytest.fixture
def kafka_sync_factory(request: pytest.FixtureRequest) -> Generator["SyncClusterFactory"]:
    """A function that creates clusters for one test without asyncio, each with settings of its own."""
    with _synchronous(request) as make:
        yield make


@pytest.fixture(scope="module")
def kafka_sync_module(request: pytest.FixtureRequest) -> Generator["SyncCluster"]:
    """One cluster for all tests of a module, ``reset`` after each of them."""
    with _synchronous(request, shared="kafka_sync_module") as make:
        yield make()


@pytest.fixture(scope="session")
def kafka_sync_session(request: pytest.FixtureRequest) -> Generator["SyncCluster"]:
    """One cluster for all tests, ``reset`` after each of them that uses it."""
    with _synchronous(request, shared="kafka_sync_session") as make:
        yield make()


# Creating clusters.


def _cluster(request: pytest.FixtureRequest, own: Mapping[str, Any], *, is_shared: bool) -> "Cluster":
    from groupcoord.did_you_mean import did_you_mean  # noqa: PLC0415 - see above
    from groupcoord.testing.cluster import Cluster  # noqa: PLC0415

    marker = request.node.get_closest_marker("kafka")
    if marker is not None and marker.args:
        pytest.fail("the marker kafka takes named arguments only, those of groupcoord.Cluster", pytrace=False)
    common = request.getfixturevalue("kafka_settings")
    settings = {"clock": "manual", **common, **({} if marker is None else marker.kwargs), **own}
    arguments = list(inspect.signature(Cluster).parameters)
    for name in settings:
        if name not in arguments:
            hint = did_you_mean(name, arguments, otherwise=f"there are {', '.join(arguments)}")
            pytest.fail(f"groupcoord.Cluster, and so the marker kafka, has no argument {name}; {hint}", pytrace=False)
    if settings["clock"] == "virtual":
        pytest.fail(
            "a test on simulated time makes its broker itself: groupcoord.virtual_time around the test, and in it "
            "`async with Cluster(clock='virtual')`",
            pytrace=False,
        )
    if is_shared and settings.get("data_dir") is not None:
        pytest.fail(
            "a cluster that several tests share is reset after each, and one with data_dir cannot be", pytrace=False
        )
    return Cluster(**settings)


def _failure(request: pytest.FixtureRequest, shared: str | None) -> type[BaseException] | None:
    """The exception type for the cluster's ``__exit__``: with one, rules that never acted are not reported. That is so after a
    failed test, and after a check that has reported them already."""
    known = None if shared is None else request.config.stash[_SHARED].pop(shared, None)
    was_checked = known is not None and known.is_used
    has_failed = request.config.stash[_ITEM].stash.get(_FAILED, False)
    return AssertionError if has_failed or was_checked else None


@contextmanager
def _synchronous(request: pytest.FixtureRequest, shared: str | None = None) -> Iterator["SyncClusterFactory"]:
    with ExitStack() as stack:

        def make(**own: Any) -> "SyncCluster":
            cluster = _cluster(request, own, is_shared=shared is not None)
            kafka = cluster.sync()
            kafka.__enter__()
            stack.push(lambda *_: kafka.__exit__(_failure(request, shared), None, None))
            if shared is not None:
                request.config.stash[_SHARED][shared] = _Shared(
                    None, lambda rules: kafka.check(rules=rules), lambda: kafka.reset(rules=False)
                )
            return kafka

        yield make


@asynccontextmanager
async def _factory(request: pytest.FixtureRequest, name: str, loop: Scope | None) -> AsyncIterator["ClusterFactory"]:
    async with AsyncExitStack() as stack:

        async def make(**own: Any) -> "Cluster":
            is_shared = _SCOPE_OF[name] != "function"
            cluster = _cluster(request, own, is_shared=is_shared)
            if loop is not None:
                cluster.loop_hint = _same_loop(name, loop)
            await cluster.__aenter__()
            stack.push_async_exit(lambda *_: cluster.__aexit__(_failure(request, name), None, None))
            if is_shared:
                import asyncio  # noqa: PLC0415 - see above

                # Between tests the loop does not run, so that a hook can run a coroutine on it.
                run = asyncio.get_running_loop().run_until_complete
                request.config.stash[_SHARED][name] = _Shared(
                    loop, lambda rules: run(cluster.check(rules=rules)), lambda: run(cluster.reset(rules=False))
                )
            return cluster

        yield make


# Choosing the event loop.


def _asynchronous(request: pytest.FixtureRequest, name: str) -> Any:
    """The value of the fixture ``name`` in the event loop of the test."""
    item = request.config.stash[_ITEM]
    loop = _loop_for(item, name)
    return request.getfixturevalue(f"_{name}_by_anyio" if loop is None else f"_{name}_in_{loop}_loop")


def _loop_for(item: pytest.Item, name: str) -> Scope | None:
    """The loop scope of pytest-asyncio for the fixture ``name`` in that test; None for anyio. Fails the test without both."""
    if "anyio_backend" in getattr(item, "fixturenames", ()):
        return None
    if not _has_pytest_asyncio(item.config):
        pytest.fail(
            f"the fixture {name} needs pytest-asyncio, which is in groupcoord[testing], or anyio; "
            f"{name.replace('kafka', 'kafka_sync')} needs neither",
            pytrace=False,
        )
    own = _SCOPE_OF[name]
    marker = item.get_closest_marker("asyncio")
    if marker is None:
        if inspect.iscoroutinefunction(getattr(item, "function", None)):
            pytest.fail(
                "nothing runs this asynchronous test: mark it with @pytest.mark.asyncio, or say asyncio_mode = auto in the "
                "settings of pytest",
                pytrace=False,
            )
        return own
    default = item.config.getini("asyncio_default_test_loop_scope")
    of_test: Scope = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope") or default
    shared = item.config.stash[_SHARED].get(name)
    wanted = own if shared is None or shared.loop is None else shared.loop
    if _SCOPES.index(of_test) < _SCOPES.index(own) or (shared is not None and of_test != wanted):
        pytest.fail(
            f"this test runs in another event loop, where no client of {name} would be answered: "
            f"{_same_loop(name, wanted)}",
            pytrace=False,
        )
    return of_test


def _same_loop(name: str, loop: Scope) -> str:
    return (
        f'{name} lives in the loop of scope "{loop}", so a test needs @pytest.mark.asyncio(loop_scope="{loop}"), '
        f'and an asynchronous fixture @pytest_asyncio.fixture(loop_scope="{loop}")'
    )


def _async_fixture(name: str, loop: Scope | None) -> Callable[[pytest.FixtureRequest], AsyncIterator[Any]]:
    """A new function for each fixture, because pytest-asyncio marks the functions that it is given."""

    async def made(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        async with _factory(request, name, loop) as make:
            yield make if name.endswith("factory") else await make()

    return made


def _for_anyio() -> Iterator[tuple[str, Any]]:
    for name, scope in _ASYNCHRONOUS.items():
        own_name = f"_{name}_by_anyio"
        yield own_name, pytest.fixture(_async_fixture(name, None), name=own_name, scope=scope)


def _for_pytest_asyncio() -> Iterator[tuple[str, Any]]:
    import pytest_asyncio  # noqa: PLC0415 - it need not be installed

    for name, scope in _ASYNCHRONOUS.items():
        for loop in _SCOPES[_SCOPES.index(scope) :]:
            own_name = f"_{name}_in_{loop}_loop"
            function = _async_fixture(name, loop)
            yield own_name, pytest_asyncio.fixture(function, name=own_name, scope=scope, loop_scope=loop)


# Around each test.


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail tests that would hang or whose marker would have no effect, reset shared clusters that other tests have used, and
    remember the state of all traces, so that the report shows only what this test did."""
    item.config.stash[_ITEM] = item
    fixtures = [name for name in _SCOPE_OF if name in getattr(item, "fixturenames", ())]
    for name in fixtures:
        if name in _ASYNCHRONOUS and _SCOPE_OF[name] != "function":
            _loop_for(item, name)
    if fixtures and not any(_heeds_marker(item, name) for name in fixtures):
        pytest.fail(
            f"{' and '.join(fixtures)} cannot heed the marker kafka of one test: mark the module (pytestmark) for "
            "kafka_module and kafka_sync_module, or override the fixture kafka_settings",
            pytrace=False,
        )
    item.stash[_FAILED] = False  # a failed test may be run again
    for shared in item.config.stash[_SHARED].values():
        if shared.is_used:
            shared.reset()
            shared.is_used = False
    if "groupcoord.testing.cluster" in sys.modules:
        from groupcoord.testing import pytest_reports  # noqa: PLC0415 - see above

        item.stash[_SEEN_BEFORE] = pytest_reports.seen_now()


def _heeds_marker(item: pytest.Item, name: str) -> bool:
    """Does the marker of ``item``, if it has one, apply to the cluster of the fixture ``name``?"""
    marker = item.get_closest_marker("kafka")
    of_module = item.getparent(pytest.Module)
    match _SCOPE_OF[name]:
        case "function":
            return True
        case "module" if of_module is not None:
            return marker is of_module.get_closest_marker("kafka")
        case _:
            return marker is None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """After everything else of the test is torn down, check the clusters that it shares with others.

    They are reset only before the next test, because the report of this one still needs their traces.
    """
    passed = False
    try:
        result = yield
        passed = not item.stash.get(_FAILED, False)
        return result
    finally:
        problems = []
        for shared in _shared_by(item):
            shared.is_used = True
            try:
                shared.check(passed)
            except Exception as problem:
                problems.append(problem)
        if problems:
            raise problems[0] if len(problems) == 1 else ExceptionGroup("several clusters", problems)


def _shared_by(item: pytest.Item) -> list[_Shared]:
    """The clusters that ``item`` shares with other tests."""
    request: pytest.FixtureRequest | None = getattr(item, "_request", None)
    names = () if request is None else request.fixturenames  # including those from getfixturevalue
    return [each for name, each in item.config.stash[_SHARED].items() if name in names]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:  # noqa: ARG001 - pytest's signature
    """Add a section to the report of a failed test for each cluster that it used, including those not from fixtures."""
    report: pytest.TestReport = yield
    if report.failed:
        item.stash[_FAILED] = True
        if "groupcoord.testing.cluster" in sys.modules:
            from groupcoord.testing import pytest_reports  # noqa: PLC0415 - see above

            directory = item.config.getoption("--kafka-trace-dir")
            report.sections += pytest_reports.sections(item.nodeid, item.stash.get(_SEEN_BEFORE, {}), directory)
    return report
