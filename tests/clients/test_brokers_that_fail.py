"""Applications go on while a broker stops, dies or stands still, and comes back: on groupcoord, and on real brokers.

The broker is the one that leads a partition and coordinates the group. What was acknowledged is there and is read, once; the
group goes on at its next coordinator, with the members and the offsets that it had.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.messages import FindCoordinatorRequest, OffsetFetchRequest
from tests.clients.applications import COMMANDS, PATIENCE_S, REQUEST_TIMEOUT_MS, Application, Written
from tests.clients.program_members import NoClient
from tests.clients.support import eventually, unique
from tests.conformance.trio_requests import metadata
from tests.conformance.trios import OwnTrio, Trio, create_topics, real_trio
from tests.conformance.wire import Hungup
from tests.real_kafka import alone

pytestmark = [pytest.mark.slow, pytest.mark.minutes(3)]

PLACED = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
PARTITIONS = len(PLACED)
RECORDS = 12
PROPERTIES = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
}
OFFSETS = "__consumer_offsets"
BACK = {"stop": "start", "kill": "start", "pause": "resume"}
"""What makes a broker come back."""


@contextmanager
def groupcoord_trio() -> Iterator[Trio]:
    """groupcoord's brokers, in real time; one that is gone is missed sooner."""
    with gc.Cluster(brokers=3, config={**PROPERTIES, "broker.session.timeout.ms": "1000"}).sync() as kafka:
        yield OwnTrio(kafka)


TRIOS = {"groupcoord": groupcoord_trio, "kafka": lambda: real_trio(PROPERTIES)}


@pytest.fixture(scope="module", params=["groupcoord", pytest.param("kafka", marks=alone.MARKS)])
def trio(request: pytest.FixtureRequest) -> Iterator[Trio]:
    """Three brokers."""
    with TRIOS[request.param]() as trio:
        yield trio


@pytest.fixture(scope="module", params=COMMANDS)
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """A client's program; skips where it cannot be run."""
    try:
        return COMMANDS[request.param](tmp_path_factory.mktemp(request.param))
    except NoClient as reason:
        pytest.skip(str(reason))


def bootstrap(trio: Trio) -> str:
    return ",".join(f"{host}:{port}" for host, port in map(trio.address, (1, 2, 3)))


@pytest.fixture
def topic(trio: Trio) -> str:
    """A topic with a partition for each broker to lead, and copies on all."""
    name = unique("topic")
    eventually(lambda: is_whole(trio, OFFSETS), PATIENCE_S, saying="all brokers run")
    create_topics(trio, {name: PLACED}, {name: {"min.insync.replicas": "2"}})
    eventually(lambda: is_whole(trio, name), PATIENCE_S, saying="the topic is on all brokers")
    return name


def answer(trio: Trio, broker_id: int, request: Any, version: int) -> Any:
    """The answer of that broker, or None if it does not run yet."""
    try:
        return trio.ask(broker_id, request, version)
    except (OSError, Hungup):
        return None


def is_whole(trio: Trio, topic: str) -> bool:
    """Do all brokers run, with a copy of all of the topic each?"""
    answer(trio, 1, FindCoordinatorRequest(coordinator_keys=("any",)), 6)  # makes the topic of the offsets
    found = answer(trio, 1, metadata(topic), 12)
    if found is None:
        return False
    partitions = [each for one in found.topics for each in one.partitions]
    return bool(partitions) and all(len(each.isr_nodes) == len(found.brokers) == 3 for each in partitions)


def coordinator(trio: Trio, group: str) -> int:
    """The broker that coordinates the group, as soon as one does."""

    def found() -> int:
        told = answer(trio, 1, FindCoordinatorRequest(coordinator_keys=(group,)), 6)
        return 0 if told is None or told.coordinators[0].error_code else int(told.coordinators[0].node_id)

    return eventually(found, PATIENCE_S, saying=f"{group} has a coordinator")


def committed(trio: Trio, group: str) -> dict[int, int]:
    """The offsets of the group's partitions, as its coordinator has them."""
    asked = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))
    told = answer(trio, coordinator(trio, group), asked, 9)
    topics = () if told is None else told.groups[0].topics
    return {each.partition_index: each.committed_offset for topic in topics for each in topic.partitions}


def writes_reads_and_commits(application: Application, turn: str) -> None:
    """Records go to all partitions, are acknowledged, read, and committed."""
    known = len(application.acknowledged)
    for number in range(RECORDS):
        application.send(number % PARTITIONS, f"{turn}-{number}")
    eventually(lambda: len(application.acknowledged) == known + RECORDS, PATIENCE_S, saying=f"all of {turn} is written")
    eventually(
        lambda: set(acknowledged(application)) <= set(application.read), PATIENCE_S, saying=f"all of {turn} is read"
    )
    application.commit()


def acknowledged(application: Application) -> list[Written]:
    """What it was told is written; a record of which it was not told where is where it was read."""
    read = {record.value: record.offset for record in application.read}
    told = application.acknowledged
    return [each._replace(offset=read.get(each.value, -1)) if each.offset == -1 else each for each in told]


@pytest.mark.parametrize("action", BACK)
def test_nothing_is_lost_and_nothing_comes_twice_while_a_broker_fails(
    trio: Trio, topic: str, command: Sequence[str], action: str
) -> None:
    group = unique("group")
    told = {
        "bootstrap": bootstrap(trio),
        "group": group,
        "topic": topic,
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
    }
    application = Application([*command, *(f"{name}={value}" for name, value in told.items())])
    with ExitStack() as running:
        running.callback(application.kill)
        writes_reads_and_commits(application, "before")
        broker_id = coordinator(trio, group)
        with ExitStack() as gone:
            trio.act(action, broker_id)
            gone.callback(trio.act, BACK[action], broker_id)
            writes_reads_and_commits(application, "meanwhile")
        writes_reads_and_commits(application, "after")

        values = Counter(record.value for record in application.acknowledged)
        assert values == Counter(f"{turn}-{n}" for turn in ("before", "meanwhile", "after") for n in range(RECORDS))
        assert Counter(application.read) == Counter(acknowledged(application))
        assert [line for line in application.lines if line.startswith("assigned")] == ["assigned 3"]
        all_of_it = dict.fromkeys(range(PARTITIONS), 3 * RECORDS // PARTITIONS)
        eventually(lambda: committed(trio, group) == all_of_it, PATIENCE_S, saying="all of it is committed")
        assert application.end() == 0
