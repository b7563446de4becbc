"""The fixtures and the marker, in a pytest of their own."""

from pathlib import Path

import pytest

from groupcoord.testing.trace import RequestReceived, Trace

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.slow, pytest.mark.untraced]

SETTINGS = """
[pytest]
asyncio_default_fixture_loop_scope = function
"""

BOTH = """
import pytest

ORDERS = {"orders": 6}

@pytest.mark.kafka(topics=ORDERS)
async def test_asynchronous(kafka):
    a, b = await kafka.consumers(2, group="app", topics="orders")
    b.vanish()
    await kafka.clock.advance(50)
    assert len(a.assigned) == 6

@pytest.mark.kafka(topics=ORDERS)
def test_synchronous(kafka_sync):
    member = kafka_sync.manual_member("app", "orders")
    member.join().result()
    member.sync().result()
    assert len(member.assigned) == 6
"""

ANYIO = """
import pytest

pytestmark = pytest.mark.anyio

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


def told(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    """What a pytest within this one says of a test file."""
    if "no:asyncio" not in options:
        pytester.makefile(".ini", pytest=SETTINGS)
    pytester.makepyfile(text)
    return pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-W", "error", *options)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (BOTH.replace("async def", "@pytest.mark.asyncio\nasync def"), ["--asyncio-mode=strict"]),
        (BOTH, ["--asyncio-mode=auto"]),
        (ANYIO + BOTH, ["--asyncio-mode=strict", "-p", "anyio"]),
    ],
    ids=["strict", "auto", "anyio"],
)
def test_the_fixtures_work_with_each_plugin_for_asyncio(
    pytester: pytest.Pytester, text: str, options: list[str]
) -> None:
    if "anyio" in options:
        pytest.importorskip("anyio")
    told(pytester, text, *options).assert_outcomes(passed=2)


def test_without_a_plugin_for_asyncio_there_is_the_synchronous_one(pytester: pytest.Pytester) -> None:
    result = told(pytester, BOTH.replace("test_asynchronous", "asynchronous"), "-p", "no:asyncio")
    result.assert_outcomes(passed=1)


FAILING = """
import pytest
from groupcoord import Cluster

@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 6})
async def test_it(kafka):
    kafka.faults.when("Heartbeat").drop()
    a, b = await kafka.consumers(2, group="app", topics="orders")
    b.vanish()
    await kafka.clock.advance(100)
    await kafka.clock.advance(3_600)
    assert False, "because"

def test_synchronous(kafka_sync):
    kafka_sync.manual_member("app", "orders").join().result()
    assert False

@pytest.mark.asyncio
async def test_own():
    async with Cluster(clock="manual") as kafka:
        await kafka.manual_member("own", "orders").join()
        assert False

def test_own_synchronous():
    with Cluster(clock="manual").sync() as kafka:
        kafka.manual_member("own", "orders").join().result()
        assert False

def test_unrelated():
    assert False
"""


def test_a_failure_shows_what_happened_on_the_broker(pytester: pytest.Pytester) -> None:
    result = told(pytester, FAILING, "-k", "test_it")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*because*",
            "*what happened on the broker*",
            "groups:",
            "  app Stable gen=2, 1 member: app-1",
            "*generation 1: member app-1 came at*",
            "*generation 2: member app-2's session of 45,000 ms ran out*",
            "pending at 3,700.0 s:",
            "  group app: sessions end unless members are heard: app-1 at * s",
            "fault rules:",
            "  rule 1 acted once: when(Heartbeat).drop()",
            "what happened, what changed nothing in one line:",
            "#1 @0 (* ms) app app-1 asks FindCoordinator*",
            "#* times Heartbeat of app-1, all fine, * to 3,699.* s",
        ]
    )
    story = result.outlines[result.outlines.index("what happened, what changed nothing in one line:") :]
    assert sum("asks Heartbeat" in line for line in story) < 5


def test_every_cluster_that_a_failed_test_used_is_told_whoever_made_it(pytester: pytest.Pytester) -> None:
    result = told(pytester, FAILING)
    result.assert_outcomes(failed=5)
    titles = [line for line in result.outlines if "what happened on the broker" in line or line.startswith("____")]
    assert ["what happened" in line for line in titles] == [False, True] * 4 + [False]
    result.stdout.fnmatch_lines(["*test_own *", "groups:", "  own *", "*test_own_synchronous*", "groups:", "  own *"])


def test_the_whole_traces_of_failed_tests_are_saved(pytester: pytest.Pytester) -> None:
    result = told(pytester, FAILING, "--kafka-trace-dir", "traces")
    result.stdout.fnmatch_lines(["the whole trace is in traces/test_*.py--test_it.jsonl"])
    names = sorted(path.name.partition("--")[2] for path in (pytester.path / "traces").iterdir())
    assert names == ["test_it.jsonl", "test_own.jsonl", "test_own_synchronous.jsonl", "test_synchronous.jsonl"]
    (path,) = (pytester.path / "traces").glob("*--test_it.jsonl")
    assert len(Trace.load(path).of(RequestReceived, api="Heartbeat")) > 1_000


def test_a_rule_that_was_not_used_fails_the_test(pytester: pytest.Pytester) -> None:
    result = told(
        pytester,
        """
        import pytest

        @pytest.mark.asyncio
        async def test_it(kafka):
            kafka.faults.when("Heartbeat").drop()

        def test_that(kafka_sync):
            kafka_sync.faults.when("Heartbeat").drop()
        """,
    )
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*rule 1 never acted: when(Heartbeat).drop()*"])


def test_markers_that_cannot_be_are_told(pytester: pytest.Pytester) -> None:
    result = told(
        pytester,
        """
        import pytest

        @pytest.mark.kafka({"orders": 6})
        def test_it(kafka_sync):
            pass

        @pytest.mark.kafka(clock="virtual")
        def test_that(kafka_sync):
            pass

        @pytest.mark.kafka(topic={"orders": 6})
        def test_those(kafka_sync):
            pass
        """,
    )
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(
        [
            "*the marker kafka takes named arguments only*",
            "*virtual_time around the test*",
            "*the marker kafka, has no argument topic; did you mean topics?*",
        ]
    )


def test_golden_files_are_written_anew_on_request(pytester: pytest.Pytester) -> None:
    text = """
        from pathlib import Path
        from groupcoord.testing import assert_golden

        def test_it():
            assert_golden("now\\n", Path(__file__).parent / "golden.txt")
    """
    golden = pytester.path / "golden.txt"
    golden.write_text("then\n")
    told(pytester, text).assert_outcomes(failed=1)
    told(pytester, text, "--rewrite-golden").assert_outcomes(passed=1)
    assert Path(golden).read_text() == "now\n"


def test_who_uses_none_of_it_imports_none_of_it(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ini", pytest=SETTINGS)
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "groupcoord.pytest_plugin" in sys.modules
            assert "groupcoord.testing" not in sys.modules
        """
    )
    pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider").assert_outcomes(passed=1)
