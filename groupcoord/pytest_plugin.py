"""The fixtures ``kafka`` and ``kafka_sync`` and the marker ``kafka``, for every pytest where groupcoord is installed.

The broker itself is imported by the first test that wants one: all others should not notice that this is here.
"""

from collections.abc import AsyncIterator, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from groupcoord.testing.cluster import Cluster
    from groupcoord.testing.sync_api import SyncCluster

_CLUSTER = pytest.StashKey["Cluster"]()
_FAILED = pytest.StashKey[bool]()
_LINES = 200
"""How many lines of the trace are in a report: the last ones."""

_MARKER = (
    "kafka(topics=, config=, clock=, ...): how the cluster of the fixtures kafka and kafka_sync is made; "
    "the arguments are those of groupcoord.Cluster, and the clock is manual unless the marker says otherwise"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--rewrite-golden``."""
    parser.getgroup("groupcoord").addoption(
        "--rewrite-golden",
        action="store_true",
        help="write the golden files of groupcoord.assert_golden anew instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and tell the golden files what the option says."""
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("--rewrite-golden"):
        from groupcoord.testing.trace import golden  # noqa: PLC0415 - see above

        golden.rewrite(config.add_cleanup)


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> "Cluster":
    """A ``groupcoord.Cluster`` in the event loop of an asynchronous test, on a clock that the test moves."""
    by_anyio = "anyio_backend" in request.fixturenames
    found: Cluster = request.getfixturevalue("_kafka_of_anyio" if by_anyio else "_kafka_of_asyncio")
    return found


@pytest.fixture
def kafka_sync(request: pytest.FixtureRequest) -> Generator["SyncCluster"]:
    """The same for tests without asyncio, every method without ``await``: the broker runs in a thread of its own."""
    kafka = _cluster(request).sync()
    kafka.__enter__()
    try:
        yield kafka
    finally:
        kafka.__exit__(_failure(request), None, None)


async def _kafka_by_anyio(request: pytest.FixtureRequest) -> AsyncIterator["Cluster"]:
    async for cluster in _served(request):
        yield cluster


async def _kafka_by_asyncio(request: pytest.FixtureRequest) -> AsyncIterator["Cluster"]:
    async for cluster in _served(request):
        yield cluster


# Two functions, for pytest-asyncio marks the one that it is given as its own.
_kafka_of_anyio = pytest.fixture(_kafka_by_anyio, name="_kafka_of_anyio")
try:
    import pytest_asyncio
except ImportError:  # without a plugin for asyncio, use `async with Cluster()`, kafka_sync or anyio
    pass
else:
    _kafka_of_asyncio = pytest_asyncio.fixture(_kafka_by_asyncio, name="_kafka_of_asyncio")


async def _served(request: pytest.FixtureRequest) -> AsyncIterator["Cluster"]:
    cluster = _cluster(request)
    await cluster.__aenter__()
    try:
        yield cluster
    finally:
        await cluster.__aexit__(_failure(request), None, None)


def _cluster(request: pytest.FixtureRequest) -> "Cluster":
    from groupcoord.testing.cluster import Cluster  # noqa: PLC0415 - see above

    marker = request.node.get_closest_marker("kafka")
    if marker is not None and marker.args:
        raise pytest.UsageError("the marker kafka takes named arguments only, those of groupcoord.Cluster")
    settings = {"clock": "manual"} | ({} if marker is None else marker.kwargs)
    if settings["clock"] == "virtual":
        raise pytest.UsageError(
            "a test on simulated time makes its broker itself: groupcoord.virtual_time around the test, and in it "
            "`async with Cluster(clock='virtual')`"
        )
    cluster = request.node.stash[_CLUSTER] = Cluster(**settings)
    return cluster


def _failure(request: pytest.FixtureRequest) -> type[BaseException] | None:
    """What the end of the block is told: after a failure, rules that were not used are no news."""
    return AssertionError if request.node.stash.get(_FAILED, False) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:  # noqa: ARG001 - pytest's signature
    """A failure shows what happened on the broker."""
    report: pytest.TestReport = yield
    if report.failed:
        item.stash[_FAILED] = True
        cluster = item.stash.get(_CLUSTER, None)
        if cluster is not None and cluster.is_started:
            report.sections.append(("what happened on the broker", cluster.trace.text(limit=_LINES)))
    return report
