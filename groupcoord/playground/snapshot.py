"""The state of a playground's cluster as JSON: brokers, topics, groups, members, transactions, deadlines, the offsets log."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from groupcoord.broker.topic_store import Topic
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.offsets_log.compaction_preview import preview_compaction
from groupcoord.offsets_log.entries import LogEntry, entries, entry_json
from groupcoord.offsets_log.log_source import Batch
from groupcoord.playground.actions import Actions, MemberProcess, ProducerProcess
from groupcoord.playground.socketless_cluster import SocketlessCluster
from groupcoord.protocol.batches.record_batch import iter_batches
from groupcoord.testing.group_handle import GroupDescription
from groupcoord.testing.record_reading import read_log
from groupcoord.testing.trace.short_member_names import ShortMemberNames

_INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE)
SHOWN_RECORDS = 50
"""How many records of a partition are in a snapshot, the last ones."""
_PIECE_BYTES = 1 << 20


async def snapshot(cluster: SocketlessCluster, actions: Actions) -> dict[str, Any]:
    """The snapshot, with names as keys; times are milliseconds on the cluster's clock."""
    topics = list(cluster.core.broker.topics.all())
    short = ShortMemberNames(cluster.trace.entries())
    return {
        "now_ms": cluster.clock.now_ms(),
        "brokers": {str(number): cluster.broker(number).state for number in cluster.core.broker.cluster.ids},
        "topics": {topic.name: _topic(topic) for topic in topics if topic.name not in _INTERNAL},
        "groups": {name: await _group(cluster, name, short) for name in await _group_names(cluster, actions)},
        "members": {name: _member(process) for name, process in actions.members.items()},
        "producers": {name: _producer(process) for name, process in actions.producers.items()},
        "transactions": {name: _transaction(cluster, name) for name in await cluster.list_transactions()},
        "deadlines": [
            {
                "at_ms": each.at_ms,
                "kind": each.kind,
                "group": each.group,
                "member": short.of(each.member),
                "reason": short.shortened(each.reason),
            }
            for each in cluster.clock.deadlines()
        ],
        "rules": {name: {"text": str(rule.rule), "uses": rule.uses} for name, rule in actions.rules.items()},
        "offsets_log": list(_offsets_log(topics, cluster.clock.now_ms())),
    }


def named(partitions: Iterable[TopicPartition]) -> list[str]:
    """``orders-0``, ``orders-1`` …, in order."""
    return [f"{topic}-{number}" for topic, number in sorted(partitions)]


def _topic(topic: Topic) -> dict[str, Any]:
    return {
        "partitions": [
            {
                "leader": topic.metadata.leaders[number],
                "end_offset": log.log_end_offset,
                "last_stable_offset": log.last_stable_offset,
                "records": _records(topic.name, number, log),
            }
            for number, log in enumerate(topic.partitions)
        ]
    }


def _records(topic: str, number: int, log: PartitionLog) -> list[dict[str, Any]]:
    """The last records: each is ``committed``, ``aborted``, or ``open``: at or after the last stable offset."""
    committed = {record.offset for record in read_log(topic, number, log, "read_committed")}
    end = log.last_stable_offset
    return [
        {
            "offset": record.offset,
            "value": (record.value or b"").decode("utf-8", "replace"),
            "state": "committed" if record.offset in committed else "open" if record.offset >= end else "aborted",
        }
        for record in read_log(topic, number, log, "read_uncommitted")[-SHOWN_RECORDS:]
    ]


async def _group_names(cluster: SocketlessCluster, actions: Actions) -> list[str]:
    """The existing groups, and groups of members here whose coordinator is not loaded."""
    wanted = {process.member.group for process in actions.members.values()}
    away = {name for name in wanted if cluster.group(name).description().state != GroupState.DEAD}
    return sorted({*await cluster.list_groups(), *away})


async def _group(cluster: SocketlessCluster, name: str, short: ShortMemberNames) -> dict[str, Any]:
    handle = cluster.group(name)
    seen, committed = handle.description(), await handle.offsets()
    log = cluster.core.coordinator.shard_of(name).partition
    leaders = cluster.core.broker.topics.get(CONSUMER_OFFSETS)
    return {
        "type": seen.type,
        "state": seen.state,
        "generation": seen.generation,
        "epoch": seen.epoch,
        "assignment_epoch": seen.assignment_epoch,
        "protocol": seen.protocol,
        "leader": None if seen.leader is None else short.of(seen.leader),
        "coordinator": None if leaders is None else leaders.metadata.leaders[log],
        "members": {short.of(each.member_id): _as_seen(each) for each in seen.members},
        "owners": _owners(seen, short),
        "offsets": {f"{topic}-{number}": committed[topic, number] for topic, number in sorted(committed)},
    }


def _as_seen(member: Any) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "instance_id": member.instance_id,
        "type": member.type,
        "epoch": member.epoch,
        "state": member.state,
        "waits_in": member.waits_in,
        "assigned": named(member.assigned),
        "revoking": named(member.revoking),
        "target": named(member.target),
    }


def _owners(seen: GroupDescription, short: ShortMemberNames) -> dict[str, str]:
    """Partition → the member that the coordinator has assigned it to."""
    owners = {partition: short.of(each.member_id) for each in seen.members for partition in each.assigned}
    return {f"{topic}-{number}": owners[topic, number] for topic, number in sorted(owners)}


def _member(process: MemberProcess) -> dict[str, Any]:
    """A member's own state, which may differ from the coordinator's."""
    member = process.member
    return {
        "group": member.group,
        "protocol": process.protocol,
        "assignors": list(process.assignors),
        "instance_id": member.membership.settings.instance_id,
        "status": process.status,
        "member_id": member.member_id,
        "generation": member.generation,
        "owns": named(member.assigned),
        "errors": [str(error) or type(error).__name__ for error in member.errors],
    }


def _producer(process: ProducerProcess) -> dict[str, Any]:
    producer = process.producer
    return {
        "transactional_id": producer.transactional_id,
        "status": process.status,
        "producer_id": producer.producer_id,
        "epoch": producer.epoch,
    }


def _transaction(cluster: SocketlessCluster, name: str) -> dict[str, Any]:
    seen = cluster.transaction(name).description()
    return {
        "state": seen.state,
        "producer_id": seen.producer_id,
        "epoch": seen.producer_epoch,
        "partitions": named(seen.partitions),
    }


def _offsets_log(topics: Iterable[Topic], now_ms: int) -> Iterator[Mapping[str, Any]]:
    """The records of ``__consumer_offsets``; ``kept`` tells whether a compaction now would keep the record."""
    for topic in topics:
        if topic.name != CONSUMER_OFFSETS:
            continue
        for number, log in enumerate(topic.partitions):
            batches = list(_batches(number, log))
            kept = {record.offset for record in preview_compaction(number, batches, now_ms).after}
            for batch in batches:
                readable = (entry for entry in entries(batch) if isinstance(entry, LogEntry))
                yield from ({**entry_json(entry), "kept": entry.offset in kept} for entry in readable)


def _batches(number: int, log: PartitionLog) -> Iterator[Batch]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, _PIECE_BYTES, at_least_one=True, committed_only=False).data()
        offset += 1  # compaction may have left no records after it
        for header, batch in iter_batches(data):
            offset = header.last_offset + 1
            yield Batch(number, log.log_start_offset, header, batch)
