"""Every story told to a real broker in a container and to groupcoord over real sockets: ``make conformance``.

Both transcripts are compared step by step with each other, and the real broker's with what was recorded of one. Stories of
several settings are told at the same time, to both, with a broker for each setting: they mostly wait.

On a busy machine a broker may do a step after the answer that usually follows it. So a story that differs is told again, alone,
to new servers, twice if need be, and each difference becomes a warning of the run: what depends on the load is seen, and what
is a defect comes again. Only some stories get this chance, for each telling starts a broker.
"""

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import pytest

from tests.clients.in_process import groupcoord
from tests.conformance import settings
from tests.conformance.compare import explain, recorded
from tests.conformance.live import Transcripts, tell_to
from tests.conformance.record import KAFKA_VERSION, RECORDINGS
from tests.conformance.settings import Settings
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales
from tests.conftest import StartRealKafka
from tests.real_kafka import kafka_version

pytestmark = pytest.mark.minutes(5)

HERE = Path(__file__)

AT_A_TIME = 4
"""So many brokers run together; those of the last few settings have a story or two each, and take the place of others."""

AGAIN = 2
"""So many times a story may be told again."""
AGAIN_IN_ALL = 12
"""So many times stories of a run may be told again, all together."""


class DiffersUnderLoad(UserWarning):
    """A story was not the same beside all others, and is told again."""


class Both(NamedTuple):
    """What the stories of one setting became at each server, and what groupcoord stumbled over."""

    kafka: Transcripts
    groupcoord: Transcripts
    errors: Sequence[Exception]


class Telling:
    """Tells the stories that this run has chosen, some settings at a time, from the moment that it is made."""

    def __init__(
        self, tales: Sequence[Tale], start: StartRealKafka, say: Callable[[str], None], pool: ThreadPoolExecutor
    ) -> None:
        self._start, self._say = start, say
        self._starting = Lock()  # each broker looks for free ports, and takes them only later
        self._told: dict[str, Future[Both]] = {}
        self._told_again: Counter[str] = Counter()
        for setting in settings.ALL:
            chosen = [tale for tale in tales if tale.settings is setting]
            if chosen:
                self._told[setting.name] = pool.submit(self._tell, setting, chosen)

    def of(self, setting: Settings) -> Both:
        """Both transcripts of every chosen story of ``setting``. Raises what the telling raised."""
        if setting.name not in self._told:
            pytest.skip("no story of this setting was chosen")
        return self._told[setting.name].result()

    def alone(self, tale: Tale) -> Both | None:
        """Both transcripts of ``tale``, told again with no other beside it; None if that was done often enough."""
        if self._told_again[tale.name] == AGAIN or self._told_again.total() == AGAIN_IN_ALL:
            return None
        self._told_again[tale.name] += 1
        for others in self._told.values():
            others.exception()  # returns when all is told
        return self._tell(tale.settings, [tale])

    def _tell(self, setting: Settings, tales: Sequence[Tale]) -> Both:
        errors: Sequence[Exception] = ()
        with contextlib.ExitStack() as running:
            running.enter_context(
                contextlib.suppress(ExceptionGroup)
            )  # groupcoord's errors: a test of their own tells them
            with self._starting:
                broker = running.enter_context(self._start(setting.properties))
            server = running.enter_context(groupcoord(setting.properties, dev=False))
            pool = running.enter_context(ThreadPoolExecutor(2))
            self._say(f"\n{setting.name}: telling {len(tales)} stories to a {broker.what}, and to groupcoord")
            telling = [pool.submit(tell_to, _port(each), tales) for each in (broker.bootstrap_servers, server.address)]
            kafka, ours = (told.result() for told in telling)
            errors = server.server_errors
        return Both(kafka, ours, errors)


@pytest.fixture(scope="session")
def telling(request: pytest.FixtureRequest, start_real_kafka: StartRealKafka) -> Iterator[Telling]:
    if kafka_version() != KAFKA_VERSION:
        pytest.exit(
            f"groupcoord answers as Kafka {KAFKA_VERSION} does; `KAFKA_VERSION={kafka_version()} make kafka-versions` "
            "says what that one does otherwise",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    here = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == HERE]
    chosen = [item.callspec.params["tale"] for item in here if "tale" in item.callspec.params]
    plugins = request.config.pluginmanager

    def say(line: str) -> None:
        terminal = plugins.getplugin("terminalreporter")  # a worker of xdist has none
        if terminal is not None:
            with plugins.getplugin("capturemanager").global_and_fixture_disabled():
                terminal.write_line(line)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield Telling([tale for tale in all_tales() if tale in chosen], start_real_kafka, say, pool)


@pytest.mark.filterwarnings("default::tests.conformance.test_live.DiffersUnderLoad")
@pytest.mark.parametrize("tale", [pytest.param(tale, id=f"{tale.topic}.{tale.name}") for tale in all_tales()])
def test_nobody_can_tell_the_two_apart(tale: Tale, telling: Telling) -> None:
    lines = _differences(tale, telling.of(tale.settings))
    while lines and (told_again := telling.alone(tale)):
        warnings.warn("\n".join([f"{tale.name} on a busy machine:", *lines]), DiffersUnderLoad, stacklevel=1)
        assert not told_again.errors
        lines = _differences(tale, told_again)
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("setting", [pytest.param(known, id=known.name) for known in settings.ALL])
def test_groupcoord_stumbles_over_nothing(setting: Settings, telling: Telling) -> None:
    assert not telling.of(setting).errors


def _differences(tale: Tale, told: Both) -> list[str]:
    """In words: where groupcoord is not like the real broker, and where that one is not like its recording."""
    kafka, ours = told.kafka[tale.name], told.groupcoord[tale.name]
    lines = _titled("groupcoord (got) is not like the real broker (expected):", explain(kafka, ours))
    if expected := recorded(RECORDINGS / KAFKA_VERSION, tale):
        return lines + _titled("the real broker (got) is not like its recording (expected):", explain(expected, kafka))
    return [*lines, "the story is not recorded yet: `make record`"]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _titled(title: str, lines: list[str]) -> list[str]:
    return [title, *(f"  {line}" for line in lines)] if lines else []
