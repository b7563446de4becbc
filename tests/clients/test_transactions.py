"""Transactions of real clients: committed, aborted, fenced, too long, killed in the middle, and with the offsets of a group.

What is asserted here of groupcoord, ``test_both_servers`` compares with a real broker.
"""

import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.clients import transaction_stories as stories
from tests.clients.cluster import Cluster
from tests.clients.in_process import groupcoord
from tests.clients.members import Flavour
from tests.clients.processes import Running, running
from tests.clients.support import eventually, unique
from tests.clients.transactional import PRODUCERS, read

pytestmark = pytest.mark.minutes(1)

REFUSED = {
    "aiokafka": dict.fromkeys(stories.STEPS, "ProducerFenced"),
    "kafka-python": {**dict.fromkeys(stories.STEPS, "ProducerFencedError"), "write": "InvalidProducerEpochError"},
    "confluent": dict.fromkeys(stories.STEPS, "_FENCED, fatal"),
}
"""By library and step, what a producer is told whose epoch is over."""
AIOKAFKA, KAFKA_PYTHON, CONFLUENT, CONFLUENT_CONSUMER = stories.LOOPS


@pytest.fixture(scope="module")
def impatient() -> Iterator[Cluster]:
    """A broker that looks every 100 ms for transactions that are open for too long."""
    with groupcoord(stories.IMPATIENT) as server:
        cluster = Cluster(server)
        yield cluster
        assert cluster.new_errors() == []
        cluster.close()


@pytest.mark.parametrize("library", PRODUCERS)
def test_readers_of_what_is_committed_see_no_more(cluster: Cluster, library: str) -> None:
    stories.commit_and_abort(cluster, library)


@pytest.mark.parametrize("library", PRODUCERS)
def test_a_successor_fences_its_predecessor(cluster: Cluster, library: str) -> None:
    assert stories.fence(cluster, library) == REFUSED[library]


@pytest.mark.parametrize("library", PRODUCERS)
def test_who_takes_too_long_is_aborted_and_fenced(impatient: Cluster, library: str) -> None:
    assert stories.time_out(impatient, library) == REFUSED[library]


@pytest.mark.slow
@pytest.mark.parametrize("flavour", [AIOKAFKA, CONFLUENT, CONFLUENT_CONSUMER], ids=str)
def test_members_of_a_group_transform_each_record_once(cluster: Cluster, flavour: Flavour) -> None:
    stories.share_and_leave(cluster, flavour)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flavour", "refusal"),
    [
        (AIOKAFKA, "ProducerFenced"),
        (KAFKA_PYTHON, "CommitFailedError"),
        (CONFLUENT, "UNKNOWN_MEMBER_ID, to be aborted"),
        (CONFLUENT_CONSUMER, "UNKNOWN_MEMBER_ID, to be aborted"),
    ],
    ids=str,
)
def test_a_zombie_commits_nothing_of_what_it_lost(cluster: Cluster, flavour: Flavour, refusal: str) -> None:
    assert stories.survive_a_zombie(cluster, flavour) == [f"refused {refusal}"]


@pytest.mark.slow
@pytest.mark.parametrize("flavour", [AIOKAFKA, CONFLUENT], ids=str)
def test_who_is_killed_in_a_transaction_and_started_again_goes_on(cluster: Cluster, flavour: Flavour) -> None:
    stories.survive_a_crash(cluster, flavour)


@pytest.mark.slow
@pytest.mark.parametrize("flavour", [KAFKA_PYTHON, CONFLUENT_CONSUMER], ids=str)
def test_who_takes_over_from_the_killed_waits_for_the_end_of_its_transaction(
    impatient: Cluster, flavour: Flavour
) -> None:
    stories.take_over_after_a_crash(impatient, flavour)


@pytest.mark.slow
def test_a_broker_is_killed_in_the_middle_of_transactions_and_they_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One producer of each library: their second transactions are open when the broker is killed, and are committed later."""
    caplog.set_level(
        logging.CRITICAL, "kafka"
    )  # with its complaints pytest would keep the sockets that it does not close
    topic = unique("topic")
    with running(_serve(tmp_path, "127.0.0.1:0", "--topic", f"{topic}:1")) as server:
        address = _listening(server)
        producers = {library: PRODUCERS[library](address, unique("id")) for library in PRODUCERS}
        for library, producer in producers.items():
            producer.begin()
            producer.write(topic, [f"{library} before"])
            producer.commit()
        for library, producer in producers.items():
            producer.begin()
            producer.write(topic, [f"{library} across"])
    with running(_serve(tmp_path, address)) as server:
        assert _listening(server) == address
        committed = [f"{library} before" for library in PRODUCERS]
        assert read(address, topic) == committed
        for library, producer in producers.items():
            producer.commit()
            committed.append(f"{library} across")
            assert read(address, topic) == committed
            producer.begin()
            producer.write(topic, [f"{library} after"])
            producer.abort()
            producer.close()


def _serve(folder: Path, address: str, *options: str) -> Sequence[str]:
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "groupcoord.cli.main", "serve", "--dev", "--port", port, "--data-dir", str(folder)]
    return [*command, *options]


def _listening(server: Running) -> str:
    [line] = eventually(lambda: server.lines, saying="it says where it listens")
    return line.removeprefix("listening on ")
