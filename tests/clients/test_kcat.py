"""kcat, that is an older librdkafka, as everybody has it in a terminal."""

import json
import shutil
import time
from collections.abc import Callable

import pytest

from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import Flavour
from tests.clients.processes import Running, run, running
from tests.clients.support import eventually, unique
from tests.clients.ungrouped import COMPRESSIONS

pytestmark = pytest.mark.slow

Kcat = Callable[..., list[str]]


@pytest.fixture
def kcat(cluster: Cluster) -> Kcat:
    """Runs kcat to its end and answers its lines; skips where it is not installed."""
    if shutil.which("kcat") is None:
        pytest.skip("there is no kcat here; on Debian: apt-get install kcat")

    def ask(*arguments: str, stdin: str = "") -> list[str]:
        command = ["kcat", "-b", cluster.bootstrap, "-q", "-X", "fetch.wait.max.ms=50", *arguments]
        return run(command, stdin).splitlines()

    return ask


def test_it_lists_brokers_and_topics(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.topic(partitions=3)

    [metadata] = map(json.loads, kcat("-L", "-J", "-t", topic))

    [broker] = metadata["brokers"]
    assert broker["name"] == cluster.bootstrap
    [listed] = metadata["topics"]
    assert listed["topic"] == topic
    assert [(each["partition"], each["leader"]) for each in listed["partitions"]] == [
        (n, broker["id"]) for n in range(3)
    ]


def test_it_reads_what_it_wrote(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.topic()
    start_ms = int(time.time() * 1000)

    for compression in COMPRESSIONS:
        options = ("-z", compression, "-K", ":", "-H", f"packed={compression}", "-Z")
        kcat("-P", "-t", topic, *options, stdin="a:one\nb:two\nc:\n")

    records = [json.loads(line) for line in kcat("-C", "-t", topic, "-e", "-J", "-o", "beginning")]
    three = [("a", "one"), ("b", "two"), ("c", None)]
    assert [(record["key"], record["payload"]) for record in records] == three * len(COMPRESSIONS)
    assert [record["headers"][1] for record in records[::3]] == list(COMPRESSIONS)
    assert [record["offset"] for record in records] == list(range(3 * len(COMPRESSIONS)))
    assert all(start_ms <= record["ts"] <= time.time() * 1000 for record in records)


def test_it_starts_anywhere(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.topic()
    now_ms = int(time.time() * 1000)
    sent = cluster.produce(topic, [f"value {number}" for number in range(10)])

    def values(offset: str) -> list[str]:
        return kcat("-C", "-t", topic, "-e", "-o", offset)

    assert values("beginning") == [f"value {number}" for number in range(10)]
    assert values("7") == ["value 7", "value 8", "value 9"]
    assert values("-2") == ["value 8", "value 9"]
    assert values(f"s@{now_ms - 1}") == values("0")
    assert kcat("-Q", "-t", f"{topic}:0:{sent[0].timestamp_ms}") == [f"{topic} [0] offset 0"]
    assert kcat("-Q", "-t", f"{topic}:0:{sent[-1].timestamp_ms + 1}") == [f"{topic} [0] offset -1"]


def test_it_creates_a_topic_by_writing_to_it(cluster: Cluster, kcat: Kcat) -> None:
    topic = unique("unheard-of")

    kcat("-P", "-t", topic, stdin="value\n")

    assert kcat("-C", "-t", topic, "-e", "-o", "beginning") == ["value"]


@pytest.mark.usefixtures("kcat")
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_it_shares_a_group_with_a_newer_librdkafka(
    cluster: Cluster, group: str, member: MakeMember, assignor: str
) -> None:
    topic = cluster.topic(partitions=4)
    settings = [f"partition.assignment.strategy={assignor}", "heartbeat.interval.ms=100", "auto.offset.reset=earliest"]
    options = [argument for setting in settings for argument in ("-X", setting)]
    command = ["kcat", "-b", cluster.bootstrap, "-u", "-X", "client.id=kcat", *options, "-J", "-G", group, topic]

    with running(command) as old:
        new = member(Flavour("confluent", assignor), topic)
        eventually(lambda: cluster.owners(group) == {"kcat": 2, "confluent-0": 2}, saying="both own two partitions")
        sent = cluster.produce(topic, [f"value {number}" for number in range(8)], partitions=4)
        eventually(
            lambda: heard(old) | {record[:3] for record in new.received} == {record[:3] for record in sent},
            saying="both read their own",
        )
        assert len(heard(old)) == 4

        old.terminate()
        eventually(lambda: len(new.owned) == 4, saying="the other takes over when kcat leaves")


def heard(kcat: Running) -> set[tuple[str, int, int]]:
    """The places of the records that it printed."""
    records = [json.loads(line) for line in kcat.lines]
    return {(record["topic"], record["partition"], record["offset"]) for record in records}
