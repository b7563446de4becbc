"""The whole run: on the log of a real Kafka, and on a log that groupcoord itself has read and written to."""

import base64
import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from groupcoord.pipeline.log_generator import GROUPS_A_PARTITION, PARTITIONS, TURN, LogChunk, records_of
from groupcoord.pipeline.schemas import LOG
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.sources.kafka_source import OffsetsSource
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from tests.pipeline.cluster import Coordinator, Offsets, serving
from tests.pipeline.frames import log_of
from tests.pipeline.random_log import RandomLog
from tests.pipeline.whole_run import RECORDED, Tables, run, tables_in


def committed(tables: Tables) -> dict[str, Offsets]:
    found: dict[str, Offsets] = {}
    for row in tables["current_offsets"]:
        said = row["committed_offset"], row["leader_epoch"], row["metadata"].rstrip("\0")  # which librdkafka adds
        found.setdefault(row["group"], {})[row["topic"], row["partition"]] = said
    return found


@pytest.fixture(scope="module")
def recorded(recorded_out: Path) -> Tables:
    return tables_in(recorded_out)


def test_of_a_real_kafka_it_says_what_that_says_is_committed(recorded: Tables) -> None:
    said = json.loads((RECORDED / "committed.json").read_text(encoding="utf-8"))
    expected = {
        group: {
            (topic, partition): (offset, -1 if epoch is None else epoch, metadata)
            for topic, partition, offset, epoch, metadata in rows
        }
        for group, rows in said.items()
    }
    assert committed(recorded) == {group: offsets for group, offsets in expected.items() if offsets}
    assert {row["group"] for row in recorded["current_groups"]} == set(expected)


def test_of_a_real_kafka_it_can_read_everything(recorded: Tables) -> None:
    assert recorded["bad_records"] == []
    assert all(row["problem"] is None for row in recorded["generations"])
    assert {row["missing"] for row in recorded["log_partitions"]} >= {0}
    warnings = {row["what"]: row["records"] for row in recorded["source_warnings"]}
    assert warnings["records of aborted transactions"] == 6
    assert warnings["records of transactions without an end"] == 6


def test_of_a_real_kafka_it_tells_how_groups_lived(recorded: Tables) -> None:
    of_group = Counter(row["group"] for row in recorded["rebalances"])
    assert of_group["eager"] >= 4
    assert of_group["cooperative"] > of_group["eager"]
    assert all(row["moved"] <= row["partitions_total"] for row in recorded["rebalances"])
    causes = [row["likely_cause"] for row in recorded["rebalances"] if row["group"] == "eager"]
    assert any("client-3 joined" in cause for cause in causes)
    assert any("client-1 left or timed out" in cause for cause in causes)
    static = [row for row in recorded["generations"] if row["group"] == "static" and row["members"]]
    assert {member["instance_id"] for member in static[-1]["members"]} == {"instance-1", "instance-2", "instance-3"}


def test_of_a_real_kafka_it_tells_of_groups_of_kip_848(recorded: Tables) -> None:
    rebalances = [row for row in recorded["rebalances"] if row["group"] == "modern"]
    assert {row["kind"] for row in rebalances} == {"consumer"}
    assert [row["generation"] for row in rebalances] == sorted(row["generation"] for row in rebalances)
    full = [row for row in rebalances if row["members_after"] == 3]
    assert full
    assert full[-1]["partitions_total"] == 9
    generation = next(row for row in recorded["modern_generations"] if row["log_offset"] == full[-1]["log_offset"])
    assert {one["topic"] for member in generation["members"] for one in member["assigned"]} == {"orders", "payments"}
    [group] = [row for row in recorded["current_groups"] if row["group"] == "modern"]
    assert (group["kind"], group["state"], group["members"]) == ("consumer", "Empty", [])


@pytest.fixture(scope="module")
def modern(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Two recordings, of different groups, as one log of twice as many partitions."""
    folder = tmp_path_factory.mktemp("modern")
    with (folder / "log.jsonl").open("w", encoding="utf-8") as log:
        for half, name in enumerate(("consumer-groups.jsonl", "share-and-streams.jsonl")):
            for line in (RECORDED.parent / name).read_text(encoding="utf-8").splitlines():
                said = json.loads(line)
                log.write(json.dumps(said | {"partition": said["partition"] + 50 * half}) + "\n")
    return run(spark, f"jsonl:{folder / 'log.jsonl'}", folder / "out")


def of_groups(tables: Tables, *groups: str) -> Tables:
    """What ``tables`` say of ``groups``."""
    return {name: [row for row in rows if row.get("group") in groups] for name, rows in tables.items()}


@pytest.fixture(scope="module")
def consumers(modern: Tables) -> Tables:
    return of_groups(modern, "shop", "stall", "moving")


def test_of_a_real_kafka_it_tells_who_had_what_in_groups_of_kip_848(consumers: Tables) -> None:
    assert {row["topic"] for row in consumers["ownership"]} == {"orders", "payments"}
    epochs = {row["log_offset"]: row["group_epoch"] for row in consumers["epochs"] if row["assigned_ts"]}
    assert set(epochs.values()) <= {row["generation"] for row in consumers["modern_generations"]}
    kinds = {row["group"]: row["kind"] for row in consumers["group_health"]}
    assert kinds == {"shop": "consumer", "stall": "consumer", "moving": "classic"}
    assert consumers["zombies"] == []
    causes = {row["cause"] for row in consumers["epochs"]}
    assert {"a classic group became a consumer group", "carol asked for other topics or another assignor"} <= causes
    assert any(row["is_revoking"] for row in consumers["ownership"])


def test_a_consumer_group_that_loses_all_members_has_a_row_and_its_members_end_there(consumers: Tables) -> None:
    rebalances = [row for row in consumers["rebalances"] if row["group"] == "shop"]
    last = rebalances[-1]
    assert (last["cause_kind"], last["members_after"], last["generation"]) == ("group_emptied", 0, 11)
    gone = "everybody left or timed out; the last: alice, carol; before it, 1 epoch without a target assignment"
    assert last["likely_cause"] == gone
    ends = [row for row in consumers["members"] if row["group"] == "shop" and row["client_id"] == "carol"]
    assert (ends[-1]["event"], ends[-1]["append_ts"]) == ("left", last["at"])


def test_a_log_that_begins_with_the_first_epoch_of_a_group_has_no_gap_before_it(modern: Tables) -> None:
    for group in ("shop", "stall", "jobs", "copier"):
        first = next(row for row in modern["rebalances"] if row["group"] == group)
        assert (first["generation"], first["hidden_generations"], first["members_before"]) == (2, None, 0)
        assert first["cause_kind"] == "group_started"
        assert "no record" not in first["likely_cause"]


def test_a_group_that_changes_its_kind_has_one_history(consumers: Tables) -> None:
    moving = [row for row in consumers["rebalances"] if row["group"] == "moving"]
    assert [kind for kind, _ in groupby(row["kind"] for row in moving)] == ["classic", "consumer", "classic"]
    became = {row["cause_kind"]: row for row in moving if row["cause_kind"].startswith("became")}
    assert set(became) == {"became_consumer", "became_classic"}
    assert (became["became_consumer"]["members_before"], became["became_consumer"]["left"]) == (2, [])
    events = [(row["kind"], row["event"]) for row in consumers["members"] if row["client_id"] == "grace"]
    assert ("classic", "converted") in events
    assert ("consumer", "converted") in events


def test_of_a_real_kafka_it_tells_of_share_groups(modern: Tables) -> None:
    of = of_groups(modern, "jobs")
    assert {
        row["kind"] for name in ("rebalances", "members", "skew", "epochs", "current_groups") for row in of[name]
    } == {"share"}
    assert [(row["generation"], row["cause_kind"], row["members_after"]) for row in of["rebalances"]] == [
        (2, "group_started", 1),
        (3, "partitions_added", 1),  # they were initialized
        (4, "members_joined", 2),
        (5, "members_left", 1),
        (6, "group_emptied", 0),
        (7, "group_refilled", 1),
        (8, "group_emptied", 0),
    ]
    assert {row["moved"] for row in of["rebalances"]} == {None}
    assert of["ownership"] == []
    judy = [row["event"] for row in of["members"] if row["client_id"] == "judy"]
    assert (judy[0], judy.count("joined"), judy.count("left"), judy[-1]) == ("joined", 2, 2, "left")
    [group] = of["current_groups"]
    assert (group["state"], group["group_epoch"], group["log_offset"]) == ("Empty", 8, 38)
    [health] = of["group_health"]
    assert (health["kind"], health["state"], health["rebalances"]) == ("share", "Empty", 7)
    [storm] = of["storms"]  # the recording is one
    assert (storm["kind"], storm["rebalances"]) == ("share", 7)


def test_of_a_real_kafka_it_tells_of_streams_groups(modern: Tables) -> None:
    of = of_groups(modern, "copier")
    assert [(row["generation"], row["cause_kind"], row["moved"]) for row in of["rebalances"]] == [
        (2, "group_started", 0),
        (3, "members_joined", 3),
        (4, "members_left", 3),
        (5, "group_emptied", 0),
    ]
    assert {(row["topic"], row["kind"]) for row in of["ownership"]} == {("subtopology 0", "streams")}
    assert any(row["is_revoking"] for row in of["ownership"])
    mia = [row["event"] for row in of["members"] if row["client_id"].startswith("mia")]
    assert mia == ["joined", "waiting", "settled", "retargeted", "settled", "left"]
    generation = of["modern_generations"][0]
    assert generation["members"][0]["topics"] == ["orders"]  # of its topology
    assert {row["kind"] for row in of["group_health"]} == {"streams"}
    assert of["zombies"] == []


def test_the_causes_of_400_groups_are_a_few_kinds(spark: SparkSession, tmp_path: Path) -> None:
    """Of a generated log the generations alone, so that it is short; what the report counts is checked by ``run``."""
    turns = 4
    with (tmp_path / "log.jsonl").open("w", encoding="utf-8") as file:
        for partition in range(PARTITIONS):
            made = records_of(LogChunk(partition, 0, TURN * GROUPS_A_PARTITION * turns), seed=7)
            for row in made.filter(pc.starts_with(made["key"], b"\0\2")).to_pylist():
                said = {"partition": partition, "offset": row["log_offset"]}
                said["timestamp"] = round(row["append_ts"].timestamp() * 1000)
                said |= {name: base64.b64encode(row[name]).decode() for name in ("key", "value")}
                file.write(json.dumps(said) + "\n")
    found = run(spark, f"jsonl:{tmp_path / 'log.jsonl'}", tmp_path / "out")["rebalances"]
    assert len({row["group"] for row in found}) == PARTITIONS * GROUPS_A_PARTITION == 400
    assert len(found) >= 400 * turns
    kinds = {row["cause_kind"] for row in found}
    assert {"group_started", "members_joined", "members_left", "members_joined_and_left"} <= kinds
    assert len({row["likely_cause"] for row in found}) > 10 * len(kinds)


# Nothing is to change while the log is read, however long that takes: nobody drops out, and the cleaner takes nothing.
CONFIG: dict[str, object] = {
    "offsets.topic.num.partitions": 4,
    "offsets.retention.minutes": 2_000_000,
    "log.cleaner.enable": False,
}


def live(coordinator: Coordinator) -> None:
    """A member joins, is given a partition and commits; and somebody commits without a group."""
    said = {"group_id": "live", "protocol_type": "consumer"}
    subscription = write_subscription(ConsumerProtocolSubscription(topics=("orders",)))
    joined = coordinator.ask(
        ApiKey.JOIN_GROUP,
        m.JoinGroupRequest(
            **said,
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription),),
        ),
    )
    assert joined.error_code == 0
    assignment = write_assignment(
        ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 1)),))
    )
    synced = coordinator.ask(
        ApiKey.SYNC_GROUP,
        m.SyncGroupRequest(
            group_id="live",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment),),
        ),
    )
    assert synced.error_code == 0
    for group, generation, member in (("live", joined.generation_id, joined.member_id), ("alone", -1, "")):
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=41, committed_metadata="mine")
        answer = coordinator.ask(
            ApiKey.OFFSET_COMMIT,
            m.OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=generation,
                member_id=member,
                topics=(OffsetCommitRequestTopic(name="orders", partitions=(partition,)),),
            ),
        )
        assert answer.topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize("seed", [1])
def test_the_current_view_is_what_the_coordinator_knows(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """A random log is replayed by the coordinator, which then goes on; the pipeline reads the files of both."""
    log = RandomLog(seed, partitions=4, steps=400)
    log.write(tmp_path / "data")
    with serving(tmp_path / "data", CONFIG) as address:
        coordinator = Coordinator(address)
        live(coordinator)
        known = {group: coordinator.committed(group) for group in [*log.groups, "live", "alone"]}
        listed = coordinator.groups()
        members = {group: coordinator.members(group) for group in listed}
        coordinator.close()
        tables = run(spark, f"segments:{tmp_path}/data", tmp_path / "out")
    assert committed(tables) == {group: offsets for group, offsets in known.items() if offsets}
    found = {row["group"]: row for row in tables["current_groups"]}
    assert {group: (row["state"], row["protocol_type"]) for group, row in found.items()} == {
        group: said for group, said in listed.items() if group in found
    }
    for group, row in found.items():
        assert sorted((one["member_id"], one["client_id"]) for one in row["members"]) == members[group]
    # Of a group that only an aborted transaction names, a reader of committed records knows nothing.
    assert not any(known[group] for group in set(listed) - set(found))
    assert sum(row["records"] for row in tables["log_partitions"]) == len(tables["commits"]) + len(
        tables["generations"]
    )


def test_a_living_cluster_is_read_as_its_files_are(spark: SparkSession, tmp_path: Path) -> None:
    log = RandomLog(2, partitions=4, steps=60, with_transactions=False)
    log.write(tmp_path / "data")
    with serving(tmp_path / "data", CONFIG) as address:
        files = plan_source(f"segments:{tmp_path}/data", {}).surveyed(spark)
        plan = plan_source(f"kafka:{address}", {}).surveyed(spark)
        over_the_wire = log_of(spark, plan)
        assert over_the_wire.schema == spark.createDataFrame([], LOG.ddl).schema
        found = over_the_wire.collect()
        assert len(found) == files.records
        places = sorted((row["log_partition"], row["log_offset"]) for row in found)
        expected = sorted((row["log_partition"], row["log_offset"]) for row in log_of(spark, files).collect())
        assert places == expected
        assert plan.ends is not None
        offsets: list[Any] = [("orders", 0, 0), ("nowhere", 7, 0)]
        wanted = spark.createDataFrame(offsets, "topic string, partition int, committed_offset bigint")
        assert [(row["topic"], row["end_offset"]) for row in plan.ends(wanted).collect()] == [("orders", 0)]
        spark.dataSource.register(OffsetsSource)
        stream = spark.readStream.format("groupcoord").options(bootstrap=address, maxrecords="100").load()
        written = stream.writeStream.format("parquet").option("path", str(tmp_path / "streamed"))
        query = written.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        streamed = pq.read_table(tmp_path / "streamed").to_pylist()
        assert sorted((row["log_partition"], row["log_offset"]) for row in streamed) == expected
