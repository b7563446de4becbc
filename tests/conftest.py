"""Set-up of all tests: which need a real Kafka broker or a Docker daemon, no Hypothesis deadlines, less garbage collection."""

import gc
import logging
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import pytest
from hypothesis import HealthCheck, settings

from tests import real_kafka as real
from tests.conformance.settings import FAST
from tests.real_kafka import alone
from tests.real_kafka.broker import end_of_log
from tests.real_kafka.process import KafkaProcess
from tests.real_kafka.starting import KINDS, Kind
from tests.untraced import untraced

MARK = "real_kafka"
ALONE = "kafka_alone"
ONLY_IF_ASKED_FOR = (MARK, "docker")
FIXTURES = {"real_kafka", "start_real_kafka", "start_kafka_process"}

# Time is the machine's, which may be busy with something else: an example that takes long shows nothing.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# Which lines are covered is not to depend on chance: the same examples every time.
settings.register_profile("same", settings.get_profile("patient"), derandomize=True, database=None)

StartRealKafka = Callable[[Mapping[str, str]], AbstractContextManager[real.Broker]]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Tests that need a real broker or an image take minutes and a quiet machine: they run only if ``-m`` names their mark.

    Files marked with ``minutes`` begin first: for a long one that begins last, all other workers would wait.
    KAFKA_ALONE=changed leaves out tests of a real Kafka alone that have passed as they are.
    """
    for item in items:
        if FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARK)
    unasked = [mark for mark in ONLY_IF_ASKED_FOR if mark not in (config.option.markexpr or "")]
    left_out = [item for item in items if any(item.get_closest_marker(mark) for mark in unasked)]
    if os.environ.get("KAFKA_ALONE") == "changed":
        noted, now = alone.notes(), alone.digest()
        left_out += [item for item in items if item.get_closest_marker(ALONE) and noted.get(item.nodeid) == now]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    yield
    items.sort(key=_minutes, reverse=True)


# To collect the tests makes a million objects, and none is garbage: to look for some took half the time of it in a fresh clone,
# and later a sixth of the time of all tests.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but not looked for among what is there before the first test."""
    gc.enable()
    gc.freeze()


def _minutes(item: pytest.Item) -> float:
    mark = item.get_closest_marker("minutes")
    return float(mark.args[0]) if mark else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """What is marked with ``untraced`` reaches no line that others do not reach."""
    with untraced() if item.get_closest_marker("untraced") else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the real broker logged, if one is running."""
    report = yield
    if report.failed:
        report.sections += [("real Kafka", end_of_log(broker.what, broker.log())) for broker in real.RUNNING]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which tests of a real Kafka alone have passed is noted for later runs."""

    def of(*outcomes: str) -> set[str]:
        reports = (report for outcome in outcomes for report in terminalreporter.getreports(outcome))
        return {report.nodeid for report in reports if ALONE in report.keywords}

    passed, failed = of("passed"), of("failed", "error")
    if passed or failed:
        alone.note(passed - failed, failed)


@pytest.fixture(scope="session")
def start_real_kafka() -> StartRealKafka:
    """Starts a fresh real broker with the given properties, as a context manager.

    Where none can be started: a skip with the reason, or under REQUIRE_REAL_KAFKA=1 a failure.
    """
    return _starting(KINDS)


@pytest.fixture(scope="session")
def start_kafka_process() -> StartRealKafka:
    """The same as a child process, whatever listeners the properties add: of a container one port alone can be reached."""
    return _starting((KafkaProcess,))


def _starting(kinds: Sequence[Kind]) -> StartRealKafka:
    @contextmanager
    def start(properties: Mapping[str, str]) -> Iterator[real.Broker]:
        try:
            with real.running(properties, kinds=kinds) as broker:
                yield broker
        except real.RealKafkaUnavailable as reason:
            why = f"no real Kafka: {reason}"
            if os.environ.get("REQUIRE_REAL_KAFKA") == "1":
                pytest.fail(why, pytrace=False)
            pytest.skip(why)

    return start


@pytest.fixture(scope="session")
def real_kafka(start_real_kafka: StartRealKafka) -> Iterator[real.Broker]:
    """A real broker for the whole run, without an initial delay and with sessions as short as wanted."""
    with start_real_kafka(FAST.properties) as broker:
        yield broker


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Afterwards logging is as it was before, and what a test set up is closed."""
    loggers = [logging.getLogger(name) for name in ("groupcoord", "asyncio")]
    before = [(logger, logger.handlers, logger.propagate, logger.level) for logger in loggers]
    raises = logging.raiseExceptions
    yield
    logging.raiseExceptions = raises
    for logger, handlers, propagate, level in before:
        for handler in set(logger.handlers) - set(handlers):
            with suppress(ValueError):  # the stderr of a test is closed by now
                handler.close()
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
