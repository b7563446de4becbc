"""Groups of KIP-848: their target assignments as generations, and the groups there are.

Their records are a state machine, one record for each thing that changes: the group's epoch (3), a member (5), the epoch of
the target assignment (6), a member's target (7), what a member has (8). So the records of each group are played one after the
other, in plain Python, a group a task at the most. Topics have ids there; commits with ids, and records of kind 4, say which
name that is. Source: KIP-848, ``GroupMetadataManager.replay``.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.record_decoder import millis
from groupcoord.pipeline.schemas import GENERATIONS, MODERN_CURRENT_GROUPS, MODERN_GENERATIONS, table_schema

EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT = 3, 4, 5, 6, 7, 8
FIRST_EPOCH = 2
"""The epoch of a group once its first member is in it; Kafka makes a group with 1 and counts that member at once."""
REPLAYED_GROUPS = table_schema(
    """
    replayed by log_partition, log_offset: What replaying the records of a group gives: generations, and at last the group
        as it is.
    is_current boolean: is it the group as it is at the end of the log?
    group_epoch int: epoch of the group
    assignment_epoch int: epoch of the newest target assignment
    members_at_epoch int: members that have reached that epoch
    """,
    GENERATIONS.columns,
)


def topic_names(commits: DataFrame, modern: DataFrame) -> DataFrame:
    """One row with a map from topic id to name."""
    by_commits = commits.where("topic_id is not null").select("topic_id", "topic").distinct()
    pairs = "array<struct<topicId:string,topicName:string>>"
    by_records = (
        modern.where((F.col("record_type") == TOPICS) & ~F.col("is_tombstone"))
        .select(F.inline(F.from_json("value", f"struct<topics:{pairs}>")["topics"]))
        .toDF("topic_id", "topic")
    )
    return (
        by_commits.unionByName(by_records)
        .groupBy("topic_id")
        .agg(F.max("topic").alias("topic"))
        .agg(F.map_from_entries(F.collect_list(F.struct("topic_id", "topic"))).alias("names"))
    )


def replay_group_records(modern: DataFrame, names: DataFrame) -> DataFrame:
    """REPLAYED_GROUPS of all groups of KIP-848 in ``modern`` (MODERN_RECORDS), with names of topics where they are known."""
    rows = (
        modern.where(F.col("record_type").isin(EPOCH, MEMBER, TARGET_EPOCH, TARGET, CURRENT))
        .groupBy("group")
        .applyInArrow(_play, REPLAYED_GROUPS.ddl)
    )
    named = """transform(members, m -> struct(m.member_id, m.instance_id, m.client_id, m.client_host, m.rebalance_timeout_ms,
        m.session_timeout_ms, m.topics, m.owned,
        transform(m.assigned, a -> struct(coalesce(names[a.topic], a.topic) as topic, a.partitions as partitions)) as assigned,
        m.owned_generation, m.rack))"""
    return rows.crossJoin(F.broadcast(names)).select(
        *(F.expr(named).alias("members") if name == "members" else F.col(name) for name in REPLAYED_GROUPS.names)
    )


def modern_generations(play: DataFrame) -> DataFrame:
    """The generations in REPLAYED_GROUPS."""
    return play.where("not is_current").select(*MODERN_GENERATIONS.names)


def modern_current_groups(play: DataFrame) -> DataFrame:
    """The groups in REPLAYED_GROUPS that there are at the end."""
    return play.where("is_current").select(*MODERN_CURRENT_GROUPS.names)


def outside_of_consumer_groups(rows: DataFrame, modern: DataFrame) -> DataFrame:
    """``rows`` of groups at places in the log, but not those from a time in which the group was one of KIP-848."""
    in_group = Window.partitionBy("group").orderBy("log_offset")
    epochs = modern.where(F.col("record_type") == EPOCH).select(
        F.col("group").alias("of"),
        "is_tombstone",
        F.col("log_offset").alias("since"),
        F.lead("log_offset").over(in_group).alias("until"),
    )
    is_then = F.expr("`group` = of and log_offset >= since and (until is null or log_offset < until)")
    return rows.join(epochs.where("not is_tombstone"), is_then, "left_anti")


def _play(table: Any) -> Any:
    """The rows of REPLAYED_GROUPS that the records of one group give."""
    records = sorted(table.to_pylist(), key=lambda record: record["log_offset"])
    return pa.Table.from_pylist(list(_states(records)), schema=arrow_schema(REPLAYED_GROUPS.columns))


def _states(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    members: dict[str, dict[str, Any]] = {}
    targets: dict[str, list[dict[str, Any]]] = {}
    current: dict[str, dict[str, Any]] = {}
    kinds: dict[int, dict[str, Any]] = {MEMBER: members, TARGET: targets, CURRENT: current}
    group_epoch = target_epoch = None
    where: dict[str, Any] = {}
    for record in records:
        where = {name: record[name] for name in ("log_partition", "log_offset", "append_ts", "group")}
        value = None if record["value"] is None else json.loads(record["value"])
        kind, member_id = record["record_type"], record["member"]
        if kind == EPOCH:
            if value is None:
                yield where | {"is_tombstone": True, "is_current": False}
            elif group_epoch is None and value["epoch"] <= FIRST_EPOCH:
                yield where | {"generation": 0, "members": [], "is_tombstone": False, "is_current": False}
            group_epoch = value and value["epoch"]
        elif kind == TARGET_EPOCH:
            target_epoch = value and value["assignmentEpoch"]
            if value is not None:
                described = [_member(one, fields, targets.get(one, [])) for one, fields in members.items()]
                yield where | {
                    "protocol_type": "consumer",
                    "generation": target_epoch,
                    "protocol": _assignor(members),
                    "state_ts": millis(value.get("assignmentTimestamp") or -1),
                    "members": described,
                    "value_version": record["value_version"],
                    "is_tombstone": False,
                    "is_current": False,
                }
        else:
            held: dict[str, Any] = kinds[kind]
            if value is None:
                held.pop(member_id, None)
            else:
                held[member_id] = value["topicPartitions"] if kind == TARGET else value
    if group_epoch is not None:
        yield where | {
            "is_current": True,
            "group_epoch": group_epoch,
            "assignment_epoch": target_epoch,
            "members_at_epoch": sum(one["memberEpoch"] == target_epoch for one in current.values()),
            "members": [
                _member(one, fields, current.get(one, {}).get("assignedPartitions", []))
                for one, fields in members.items()
            ],
        }


def _member(member_id: str, fields: dict[str, Any], assigned: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "member_id": member_id,
        "instance_id": fields["instanceId"],
        "client_id": fields["clientId"],
        "client_host": fields["clientHost"],
        "rebalance_timeout_ms": fields["rebalanceTimeoutMs"],
        "topics": fields["subscribedTopicNames"],
        "assigned": [{"topic": one["topicId"], "partitions": one["partitions"]} for one in assigned],
        "rack": fields["rackId"],
    }


def _assignor(members: dict[str, dict[str, Any]]) -> str | None:
    """What most members ask for; None: they leave it to the broker."""
    wanted = Counter(one["serverAssignor"] for one in members.values() if one["serverAssignor"] is not None)
    return max(wanted, key=lambda name: (wanted[name], name)) if wanted else None
