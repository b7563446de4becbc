"""The metadata of a cluster (brokers, topics, controller) in the layout of Kafka's ZooKeeper paths.

Each path, such as ``/brokers/ids/1``, has the JSON that Kafka before 4.0 stored there. A KRaft cluster has no such paths; the
tree is built from responses of its brokers. Values that no response contains are -1: timestamps and ``jmx_port``. Source:
``kafka.zk.ZkData`` of Kafka 3.9.
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
"""The adding and the removing replicas of each partition that is being reassigned."""


class ZooKeeperTree(Mapping[str, Any]):
    """A mapping from path to the parsed JSON stored there, or to None for a path that only has children."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, path: str) -> Any:
        """The value at ``path``. Raises KeyError, which lists the paths that exist nearby."""
        if path not in self._entries:
            parent = path.rpartition("/")[0] or _ROOT
            while parent not in self._entries:
                parent = parent.rpartition("/")[0] or _ROOT
            raise KeyError(f"there is no {path}; {parent} has {', '.join(self.children(parent)) or 'nothing below it'}")
        return self._entries[path]

    def __iter__(self) -> Iterator[str]:
        """All paths, parents before children."""
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<ZooKeeperTree of {len(self)} paths>"

    def children(self, path: str = _ROOT) -> list[str]:
        """The names of the children of ``path``."""
        prefix = path.rstrip("/") + "/"
        below = (each.removeprefix(prefix) for each in self._entries if each.startswith(prefix) and each != path)
        return [name for name in below if "/" not in name]

    def tree(self, path: str = _ROOT) -> dict[str, Any]:
        """The subtree at ``path``. Raises KeyError if there is no such path."""
        self[path]
        prefix = path.rstrip("/") + "/"
        return {each: stored for each, stored in self._entries.items() if each == path or each.startswith(prefix)}

    def text(self, path: str = _ROOT) -> str:
        """The subtree at ``path``, one path per line. Raises KeyError if there is no such path."""
        return "\n".join(tree_line(each, stored) for each, stored in self.tree(path).items())


def tree_line(path: str, stored: Any) -> str:
    """A path and its value, as JSON without spaces."""
    return path if stored is None else f"{path} {json.dumps(stored, separators=(',', ':'))}"


def zookeeper_tree(
    metadata: MetadataResponse,
    quorum: DescribeQuorumResponse | None = None,
    reassignments: ListPartitionReassignmentsResponse | None = None,
    *,
    has_controller: bool = True,
) -> ZooKeeperTree:
    """Build the tree from the Metadata of all topics, DescribeQuorum and ListPartitionReassignments responses.

    Without ``quorum``, as from an old cluster, the controller is the broker that ``metadata`` names, in epoch -1.
    With ``has_controller`` false, the path ``/controller`` is missing.
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
    return ZooKeeperTree(found)


def _controller(metadata: MetadataResponse, quorum: DescribeQuorumResponse | None) -> tuple[int, int]:
    """The id and the epoch of the active controller."""
    for topic in () if quorum is None else quorum.topics:
        for partition in topic.partitions:
            if not partition.error_code:
                return partition.leader_id, partition.leader_epoch
    return metadata.controller_id, _UNKNOWN


def _broker(broker: MetadataResponseBroker) -> dict[str, Any]:
    """``BrokerIdZNode``, version 5, with the listener that the metadata names."""
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
