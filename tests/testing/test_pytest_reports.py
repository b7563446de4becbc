"""What the pytest plugin adds to the report of a failed test. The plugin itself: tests/test_pytest_plugin.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from groupcoord.core.events import AdminAction, Event, event_class
from groupcoord.testing import Cluster
from groupcoord.testing.cluster import STARTED
from groupcoord.testing.pytest_reports import SeenBefore, file_name, sections, seen_now
from groupcoord.testing.trace import Trace

ORDERS = {"orders": 1}
TEST = "tests/test_orders.py::test_it"


@pytest.fixture(autouse=True)
def _only_own_clusters() -> Iterator[None]:
    """Those of tests before may be alive still."""
    others = dict(STARTED)
    STARTED.clear()
    yield
    STARTED.update(others)


def told(seen_before: SeenBefore, directory: Path | None = None) -> dict[str, str]:
    return dict(sections(TEST, seen_before, directory))


@pytest.mark.asyncio
async def test_a_cluster_is_told_if_something_happened_on_it_since_the_test_began() -> None:
    async with Cluster(topics=ORDERS) as kafka:
        assert told({}) == {"what happened on the broker": kafka.report()}
        await kafka.produce("orders", b"before")
        before = seen_now()
        assert told(before) == {}
        await kafka.produce("orders", b"now")
        assert told(before) == {"what happened on the broker": kafka.report(after=2)}
    assert told(before) == {"what happened on the broker": kafka.report(after=2)}
    assert seen_now() == {}
    assert told({}) == {}, "no later test can use a cluster that has ended"


@pytest.mark.asyncio
async def test_each_of_several_clusters_is_told_by_its_address(tmp_path: Path) -> None:
    async with Cluster(topics=ORDERS) as one, Cluster(topics=ORDERS) as other:
        await other.produce("orders", b"an espresso")
        assert list(told({})) == [f"what happened on the broker at {each.address}" for each in (one, other)]
        assert [text.splitlines()[-1] for text in told({}, tmp_path / "ci").values()] == [
            f"the whole trace is in {tmp_path}/ci/tests.test_orders.py--test_it.jsonl",
            f"the whole trace is in {tmp_path}/ci/tests.test_orders.py--test_it-2.jsonl",
        ]
        saved = Trace.load(tmp_path / "ci" / "tests.test_orders.py--test_it-2.jsonl")
        assert saved.text() == other.trace.text()


@event_class
class Broken(Event):
    def text(self) -> str:
        raise ZeroDivisionError("in an event of the user's")


@pytest.mark.asyncio
async def test_what_cannot_be_told_does_not_hide_the_failure(tmp_path: Path) -> None:
    async with Cluster(topics=ORDERS) as kafka:
        kafka.trace(Broken(at_ms=0, cause=AdminAction("a test")))
        (text,) = told({}, tmp_path).values()
        cannot = '(this cannot be told: ZeroDivisionError("in an event of the user\'s"))'
        assert text.startswith(cannot)
        assert "events of tests.testing.test_pytest_reports.Broken cannot be saved" in text


@pytest.mark.parametrize(
    ("test_id", "name"),
    [
        ("test_a.py::test_it", "test_a.py--test_it.jsonl"),
        ("a/test_b.py::TestC::test_it[x-1]", "a.test_b.py--TestC--test_it[x-1].jsonl"),
        ("test_a.py::test_it[a.b]", "test_a.py--test_it[a.b].jsonl"),
        ("test_a.py::test_it[a/b]", "test_a.py--test_it[a-b]-e42b0d93.jsonl"),
        ("test_a.py::test_it[a*b]", "test_a.py--test_it[a-b]-71cc8399.jsonl"),
        ("test_a.py::" + "x" * 200, f"test_a.py--{'x' * 169}-47cd03b3.jsonl"),
    ],
)
def test_a_file_is_named_after_its_test(test_id: str, name: str) -> None:
    assert file_name(test_id) == name
