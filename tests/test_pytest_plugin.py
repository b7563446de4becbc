"""The fixtures and the marker, in a pytest of their own."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

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
    """What a pytest in another process says of a test file."""
    if "no:asyncio" not in options:
        pytester.makefile(".ini", pytest=SETTINGS)
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess(
        "-p", "no:randomly", "-p", "no:cacheprovider", "-W", "error", *options, timeout=120
    )


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


def test_a_failure_shows_what_happened_on_the_broker(pytester: pytest.Pytester) -> None:
    result = told(
        pytester,
        """
        import pytest

        @pytest.mark.asyncio
        async def test_it(kafka):
            kafka.faults.when("Heartbeat").drop()
            await kafka.manual_member("app", "orders").join()
            assert False, "because"
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*because*", "*what happened on the broker*", "*app-1 joins, offers range*"])


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
        """,
    )
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*the marker kafka takes named arguments only*", "*virtual_time around the test*"])


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
    told(
        pytester,
        """
        import sys

        def test_it():
            assert "groupcoord.pytest_plugin" in sys.modules
            assert "groupcoord.testing" not in sys.modules
        """,
    ).assert_outcomes(passed=1)
