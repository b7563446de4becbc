"""Groups live on a real Kafka, with two incidents among them. Then every number on the first screen of the report, and in the
tables behind it, is what Kafka's own tools say.

``PIPELINE_REAL_GROUPS=300`` is the large version.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from groupcoord.core.java_hash_order import partition_for
from tests.clients.kafka_tools import KafkaTools, NoTools
from tests.clients.support import eventually
from tests.offsets_log.lone_kafka import LoneKafka
from tests.pipeline.kafka_says import LogRecord, described, line, log_records, places
from tests.pipeline.living_groups import (
    ASLEEP_S,
    BOOKS,
    DELETED,
    HELD_UP,
    LOG_PARTITIONS,
    PROPERTIES,
    SIMPLE,
    SLEEPER,
    TOPICS,
    WRITER,
    LivingGroups,
    Plan,
)
from tests.pipeline.whole_run import Tables, run
from tests.real_kafka import RealKafkaUnavailable

pytestmark = [pytest.mark.real_kafka, pytest.mark.spark, pytest.mark.minutes(3)]

GROUPS = int(os.environ.get("PIPELINE_REAL_GROUPS", "24"))
TOLD = 5
"""How many incidents of each kind the first screen tells."""
Place = tuple[str, str, int]


@dataclass(frozen=True)
class Lived:
    """What became of the groups: by the pipeline, and by Kafka's tools."""

    plans: list[Plan]
    tables: Tables
    report: dict[str, Any]
    offsets: dict[Place, dict[str, str]]
    states: dict[str, dict[str, str]]
    members: dict[str, list[dict[str, str]]]
    kinds: dict[str, tuple[str, str]]
    ends: dict[tuple[str, int], int]
    transactions: list[dict[str, str]]
    hanging: dict[str, str]
    producers: dict[int, list[dict[str, str]]]
    log: list[LogRecord]


@pytest.fixture(scope="module")
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    folder = tmp_path_factory.mktemp("lived")
    try:
        kafka = LoneKafka(folder / "kafka", PROPERTIES)
    except RealKafkaUnavailable as reason:
        why = f"no real Kafka: {reason}"
        if os.environ.get("REQUIRE_REAL_KAFKA") == "1":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    with kafka, LivingGroups(kafka.bootstrap_servers, GROUPS) as world, ThreadPoolExecutor(2) as pool:
        try:
            tools = KafkaTools(kafka.bootstrap_servers, folder)
        except NoTools as reason:
            pytest.skip(str(reason))
        spark: SparkSession = request.getfixturevalue("spark")  # it starts while the groups live
        world.wait()
        eventually(lambda: are_settled(kafka.bootstrap_servers), 120, saying="all groups are stable or empty")
        # Everything stands still: Kafka's tools may look at it while the pipeline does.
        offsets = pool.submit(described, tools)
        states = pool.submit(described, tools, "--state")
        members = pool.submit(described, tools, "--members", "--verbose")
        kinds = pool.submit(tools.rows, "kafka-groups", "--list")
        ends = pool.submit(tools, "kafka-get-offsets", "--time", "latest")
        transactions = pool.submit(line, tools, "list")
        hanging = pool.submit(line, tools, "describe", "--transactional-id", "gone")
        place = ("describe-producers", "--broker-id", "1", "--topic", "ledger", "--partition")
        producers = {number: pool.submit(line, tools, *place, str(number)) for number in range(TOPICS["ledger"])}
        files = ",".join(str(path) for path in sorted(kafka.data.glob("__consumer_offsets-*/*.log")))
        dump = ("org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", files)
        dumped = pool.submit(kafka.run_class, *dump)
        out = folder / "out"
        tables = run(spark, f"kafka:{kafka.bootstrap_servers}", out)
        members_of: dict[str, list[dict[str, str]]] = defaultdict(list)
        for row in members.result():
            members_of[row["GROUP"]].append(row)
        yield Lived(
            plans=world.plans,
            tables=tables,
            report=json.loads((out / "report.json").read_text(encoding="utf-8")),
            offsets={(row["GROUP"], row["TOPIC"], int(row["PARTITION"])): row for row in offsets.result()},
            states={row["GROUP"]: row for row in states.result()},
            members=members_of,
            kinds={group: (kind, "".join(protocol)) for group, kind, *protocol in kinds.result()[1:]},
            ends={
                (topic, int(partition)): int(end)
                for topic, partition, end in (said.rsplit(":", 2) for said in ends.result().split())
            },
            transactions=transactions.result(),
            hanging=hanging.result()[0],
            producers={number: told.result() for number, told in producers.items()},
            log=log_records(dumped.result().stdout),
        )


def are_settled(bootstrap: str) -> bool:
    """Are all groups stable or empty?"""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return {group.state for group in admin.list_consumer_groups().result().valid} <= {
        ConsumerGroupState.STABLE,
        ConsumerGroupState.EMPTY,
    }


def test_the_first_screen_tells_of_each_incident_once(lived: Lived) -> None:
    [transaction] = lived.report["open_transactions"]
    assert str(transaction["producer_id"]) == lived.hanging["ProducerId"]
    assert transaction["transactional_id"] == "gone"
    assert [(one["topic"], one["partition"]) for one in transaction["places"]] == [
        ("ledger", n) for n in sorted(HELD_UP)
    ]
    assert (transaction["partitions"], lived.report["open_transactions_left_out"]) == (len(HELD_UP), 0)
    assert (transaction["waiting"], transaction["waiting_left_out"]) == ([BOOKS], 0)
    awaiting = {row["group"]: row for row in lived.tables["group_health"] if row["awaited_transactions"]}
    assert awaiting.keys() == {BOOKS}
    late = {
        row["partition"] for row in lived.tables["lag"] if row["group"] == BOOKS and row["status"] not in (None, "OK")
    }
    # What waits for the transaction is not late. Another partition is, where the machine is too busy for its consumer.
    assert (awaiting[BOOKS]["awaited_transactions"], awaiting[BOOKS]["late_partitions"]) == (1, len(late - HELD_UP))
    [pause] = [one for one in lived.report["pauses"] if one["group"] == SLEEPER]
    assert pause in lived.report["pauses"][:TOLD]
    assert pause["partitions"] == TOPICS["deliveries"]


def test_committed_offsets_ends_and_lags_are_those_that_kafka_says(lived: Lived) -> None:
    said = {
        place: tuple(int(row[name]) for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"))
        for place, row in lived.offsets.items()
        if row["CURRENT-OFFSET"] != "-"
    }
    lags = {place_of(row): (row["committed_offset"], row["end_offset"], row["lag"]) for row in lived.tables["lag"]}
    assert lags == said
    current = {place_of(row): row["committed_offset"] for row in lived.tables["current_offsets"]}
    assert current == {place: committed for place, (committed, _, _) in said.items()}
    assert all(lived.ends[topic, partition] == end for (_, topic, partition), (_, end, _) in said.items())
    assert (WRITER, "orders", 0) not in current  # what the transaction that hangs would commit


def place_of(row: dict[str, Any]) -> Place:
    return row["group"], row["topic"], row["partition"]


def test_groups_are_those_that_kafka_says_with_their_kinds_states_and_members(lived: Lived) -> None:
    found = {row["group"]: row for row in lived.tables["current_groups"]}
    assert len(found) == len(lived.plans) - 1 + 1  # without DELETED, with SIMPLE
    kinds = {"classic": ("Classic", "consumer"), "simple": ("Classic", ""), "consumer": ("Consumer", "consumer")}
    assert {group: kinds[row["kind"]] for group, row in found.items()} == lived.kinds
    states = {group: (row["STATE"], int(row["#MEMBERS"])) for group, row in lived.states.items()}
    assert {group: (row["state"], len(row["members"])) for group, row in found.items()} == states
    assert states[SIMPLE] == ("Empty", 0)
    for group, row in found.items():
        members = {
            (one["member_id"], one["instance_id"] or "", one["client_host"], one["client_id"]): {
                (topic["topic"], partition) for topic in one["assigned"] for partition in topic["partitions"]
            }
            for one in row["members"]
        }
        assert members == {
            (one["CONSUMER-ID"], one.get("GROUP-INSTANCE-ID", ""), one["HOST"], one["CLIENT-ID"]): places(
                one["CURRENT-ASSIGNMENT"]
            )
            for one in lived.members[group]
        }, group


def test_the_open_transaction_is_the_one_that_kafka_says(lived: Lived) -> None:
    assert [one["TransactionalId"] for one in lived.transactions if one["TransactionState"] == "Ongoing"] == ["gone"]
    rows = {row["partition"]: row for row in lived.tables["open_transactions"]}
    open_in = {
        partition: one
        for partition, said in lived.producers.items()
        for one in said
        if one["CurrentTransactionStartOffset"] != "None"
    }
    assert rows.keys() == open_in.keys() == HELD_UP
    for partition, one in open_in.items():
        row = rows[partition]
        assert (row["topic"], row["producer_id"]) == ("ledger", int(one["ProducerId"]))
        assert row["stable_offset"] == int(one["CurrentTransactionStartOffset"])
        assert row["end_offset"] == lived.ends["ledger", partition]
        assert milliseconds(row["since"]) == int(one["LastTimestamp"])  # it has written one record there
        readers = {group for group, topic, number in lived.offsets if (topic, number) == ("ledger", partition)}
        assert row["groups"] == sorted(readers)
        stopped = {
            group
            for (group, topic, number), said in lived.offsets.items()
            if (topic, number, said["CURRENT-OFFSET"]) == ("ledger", partition, one["CurrentTransactionStartOffset"])
        }
        assert row["waiting"] == sorted(stopped) == [BOOKS]


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_the_pause_is_as_long_as_in_the_log_of_the_broker(lived: Lived) -> None:
    commits: dict[int, list[int]] = defaultdict(list)
    for record in lived.log:
        if record.type == 1 and record.key["group"] == SLEEPER and record.value is not None:
            commits[record.key["partition"]].append(int(record.value["commitTimestamp"]))
    gaps = [
        (before, after)
        for times in commits.values()
        for before, after in pairwise(times)
        if after - before > 1000 * ASLEEP_S - 1000
    ]
    [pause] = [row for row in lived.tables["commit_pauses"] if row["group"] == SLEEPER]
    assert (pause["partitions"], len(gaps)) == (TOPICS["deliveries"], TOPICS["deliveries"])
    first, last = min(before for before, _ in gaps), max(after for _, after in gaps)
    assert (milliseconds(pause["from_ts"]), milliseconds(pause["to_ts"])) == (first, last)
    assert pause["seconds"] == (last - first) / 1000


def test_the_sums_of_the_overview_are_those_of_kafka(lived: Lived) -> None:
    of = lived.report["overview"]
    assert of["lag"] == sum(int(row["LAG"]) for row in lived.offsets.values() if row["LAG"] != "-")
    assert of["partitions"] == sum(row["CURRENT-OFFSET"] != "-" for row in lived.offsets.values())
    assert (of["groups"], of["groups_gone"]) == (len(lived.kinds) + 1, 1)
    assert DELETED not in lived.kinds
    assert of["groups_with_members"] == sum(row["#MEMBERS"] != "0" for row in lived.states.values())
    assert of["records"] == len(lived.log)
    assert of["commits"] == sum(record.type == 1 and record.value is not None for record in lived.log)
    assert (of["missing"], of["zombies"], of["log_partitions"]) == (0, 0, len(partitions_of(lived)))


def partitions_of(lived: Lived) -> set[int]:
    groups = {record.key.get("group") or record.key["groupId"] for record in lived.log}
    return {partition_for(group, LOG_PARTITIONS) for group in groups}


def test_rebalances_are_the_generations_and_target_assignments_in_the_log_of_the_broker(lived: Lived) -> None:
    written: dict[str, set[int]] = defaultdict(set)
    for record in lived.log:
        value = record.value or {}
        if record.type == 2 and value.get("generation"):
            written[record.key["group"]].add(value["generation"])
        elif "assignmentEpoch" in value:
            written[record.key["groupId"]].add(value["assignmentEpoch"])
    emptied = Counter(
        row["group"]
        for row in lived.tables["rebalances"]
        if row["kind"] == "consumer" and row["cause_kind"] == "group_emptied"
    )
    found = Counter(row["group"] for row in lived.tables["rebalances"])
    # Without members there is no target assignment.
    assert found - emptied == Counter({group: len(numbers) for group, numbers in written.items()})
    assert lived.report["overview"]["rebalances"] == found.total()
