"""Who is in a cluster, in the layout in which Kafka kept it in ZooKeeper until version 3: paths, each with its JSON.

A KRaft cluster has no such paths; they are made here of what its brokers answer. What no request tells is -1: timestamps and
``jmx_port``. Source: ``kafka.zk.ZkData`` of Kafka 3.9.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from groupcoord.protocol.apis.describe_quorum import DescribeQuorumResponse
from groupcoord.protocol.apis.list_partition_reassignments import ListPartitionReassignmentsResponse
from groupcoord.protocol.apis.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from groupcoord.protocol.coordinator_records.record_formatting import id_text

_UNKNOWN = -1
_ROOT = "/"
_Ongoing = Mapping[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]
"""What is being added to a partition, and removed from it."""


class RegistryTree(Mapping[str, Any]):
    """Paths with what is stored at each of them: what was JSON there, and None for a path that only has others below it."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, path: str) -> Any:
        """What is stored at ``path``. Raises KeyError, which says what is there."""
        if path not in self._entries:
            parent = path.rpartition("/")[0] or _ROOT
            while parent not in self._entries:
                parent = parent.rpartition("/")[0] or _ROOT
            raise KeyError(f"there is no {path}; {parent} has {', '.join(self.children(parent)) or 'nothing below it'}")
        return self._entries[path]

    def __iter__(self) -> Iterator[str]:
        """Every path, each before those below it."""
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<RegistryTree of {len(self)} paths>"

    def children(self, path: str = _ROOT) -> list[str]:
        """The names right below ``path``."""
        prefix = path.rstrip("/") + "/"
        below = (each.removeprefix(prefix) for each in self._entries if each.startswith(prefix) and each != path)
        return [name for name in below if "/" not in name]

    def tree(self, path: str = _ROOT) -> dict[str, Any]:
        """``path`` and all that is below it, with what is stored there. Raises KeyError, as looking it up does."""
        self[path]
        prefix = path.rstrip("/") + "/"
        return {each: stored for each, stored in self._entries.items() if each == path or each.startswith(prefix)}

    def text(self, path: str = _ROOT) -> str:
        """The same, a path a line. Raises KeyError."""
        return "\n".join(registry_line(each, stored) for each, stored in self.tree(path).items())


def registry_line(path: str, stored: Any) -> str:
    """A path with what is stored there, as JSON without spaces."""
    return path if stored is None else f"{path} {json.dumps(stored, separators=(',', ':'))}"


def registry_tree(
    metadata: MetadataResponse,
    quorum: DescribeQuorumResponse | None = None,
    reassignments: ListPartitionReassignmentsResponse | None = None,
    *,
    has_controller: bool = True,
) -> RegistryTree:
    """The tree of a cluster whose broker answered so, asked for all topics, and that has a controller, or none now.

    Without ``quorum``, as an old cluster cannot tell it, the controller is the broker that metadata names, in an unknown epoch.
    """
    controller, epoch = _controller(metadata, quorum)
    ongoing: _Ongoing = {
        (topic.name, each.partition_index): (each.adding_replicas, each.removing_replicas)
        for topic in (() if reassignments is None else reassignments.topics)
        for each in topic.partitions
    }
    found: dict[str, Any] = {_ROOT: None, "/brokers": None, "/brokers/ids": None}
    for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id):
        found[f"/brokers/ids/{broker.node_id}"] = _broker(broker)
    found["/brokers/topics"] = None
    for topic in sorted(metadata.topics, key=lambda topic: topic.name or ""):
        found |= _topic(topic, epoch, ongoing)
    found["/cluster"] = None
    found["/cluster/id"] = {"version": "1", "id": metadata.cluster_id}
    if controller >= 0 and has_controller:
        found["/controller"] = {"version": 1, "brokerid": controller, "timestamp": str(_UNKNOWN)}
    found["/controller_epoch"] = epoch
    return RegistryTree(found)


def _controller(metadata: MetadataResponse, quorum: DescribeQuorumResponse | None) -> tuple[int, int]:
    """The id of the controller that decides, and its epoch."""
    for topic in () if quorum is None else quorum.topics:
        for partition in topic.partitions:
            if not partition.error_code:
                return partition.leader_id, partition.leader_epoch
    return metadata.controller_id, _UNKNOWN


def _broker(broker: MetadataResponseBroker) -> dict[str, Any]:
    """``BrokerIdZNode``, version 5, with the listener by which was asked."""
    host = f"[{broker.host}]" if ":" in broker.host else broker.host
    return {
        "version": 5,
        "host": broker.host,
        "port": broker.port,
        "endpoints": [f"PLAINTEXT://{host}:{broker.port}"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        **({} if broker.rack is None else {"rack": broker.rack}),
        "jmx_port": _UNKNOWN,
        "timestamp": str(_UNKNOWN),
        "features": {},
    }


def _topic(topic: MetadataResponseTopic, controller_epoch: int, ongoing: _Ongoing) -> dict[str, Any]:
    """``TopicZNode``, version 3, and a ``TopicPartitionStateZNode`` for each of its partitions."""
    path = f"/brokers/topics/{topic.name}"
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    moving = {
        each.partition_index: ongoing[topic.name or "", each.partition_index]
        for each in partitions
        if (topic.name, each.partition_index) in ongoing
    }
    topic_id = {} if topic.topic_id is None else {"topic_id": id_text(topic.topic_id)}
    found: dict[str, Any] = {
        path: {
            "version": 3,
            **topic_id,
            "partitions": {str(each.partition_index): list(each.replica_nodes) for each in partitions},
            "adding_replicas": {str(index): list(adding) for index, (adding, _) in moving.items() if adding},
            "removing_replicas": {str(index): list(removing) for index, (_, removing) in moving.items() if removing},
        },
        f"{path}/partitions": None,
    }
    for each in partitions:
        found[f"{path}/partitions/{each.partition_index}"] = None
        found[f"{path}/partitions/{each.partition_index}/state"] = {
            "controller_epoch": controller_epoch,
            "leader": each.leader_id,
            "version": 1,
            "leader_epoch": each.leader_epoch,
            "isr": list(each.isr_nodes),
        }
    return found
