"""The records of consumer groups (KIP-848) in ``__consumer_offsets``, as dataclasses; ``group_records`` reads and writes them.

All values have version 0, which is flexible. Sources: the message definitions of the group coordinator
(``ConsumerGroupMetadataKey.json`` and so on) and ``GroupCoordinatorRecordHelpers``.
"""

import uuid

from groupcoord.protocol.message_dataclass import message

CONSUMER_GROUP_VALUE_VERSION = 0
"""The version of the values of consumer groups."""


@message
class ConsumerGroupMetadataKey:
    """A group (record type 3)."""

    group_id: str


@message
class ConsumerGroupMetadataValue:
    """The epoch of a group; shows that it exists."""

    epoch: int
    metadata_hash: int = 0  # tag 0; int64 over the topics that the group subscribes to; 0: none of them exists


@message
class ConsumerGroupPartitionMetadataKey:
    """A group's subscribed topics (record type 4). Kafka 4.1 and newer only write tombstones of it."""

    group_id: str


@message
class PartitionRacks:
    """The racks of the replicas of one partition."""

    partition: int
    racks: tuple[str, ...] = ()


@message
class SubscribedTopic:
    """A topic to which a group subscribes."""

    topic_id: uuid.UUID | None
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionRacks, ...] = ()


@message
class ConsumerGroupPartitionMetadataValue:
    """The subscribed topics of a group, as written by Kafka up to 4.0; replaced by the hash in the group's record."""

    topics: tuple[SubscribedTopic, ...] = ()


@message
class ConsumerGroupMemberMetadataKey:
    """A member of a group (record type 5)."""

    group_id: str
    member_id: str


@message
class ClassicProtocol:
    """A protocol that a member with the classic protocol supports."""

    name: str
    metadata: bytes


@message
class ClassicMemberMetadata:
    """The JoinGroup data of a member that uses the classic protocol."""

    session_timeout_ms: int = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


@message
class ConsumerGroupMemberMetadataValue:
    """The properties of a member."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()  # sorted
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    # Tag 0. None: the member uses the consumer protocol; that is not the default, so it takes bytes.
    classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()


@message
class ConsumerGroupTargetAssignmentMetadataKey:
    """The target assignment of a group (record type 6)."""

    group_id: str


@message
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch for which the target assignment was computed."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0  # tag 0; when it was computed


@message
class ConsumerGroupTargetAssignmentMemberKey:
    """The target assignment of a member (record type 7)."""

    group_id: str
    member_id: str


@message
class TargetPartitions:
    """Partitions of one topic in a target assignment."""

    topic_id: uuid.UUID | None
    partitions: tuple[int, ...] = ()


@message
class ConsumerGroupTargetAssignmentMemberValue:
    """The target assignment of a member."""

    topic_partitions: tuple[TargetPartitions, ...] = ()


@message
class ConsumerGroupCurrentMemberAssignmentKey:
    """The current assignment of a member (record type 8)."""

    group_id: str
    member_id: str


@message
class CurrentPartitions:
    """Partitions of one topic that a member owns, or has to revoke."""

    topic_id: uuid.UUID | None
    partitions: tuple[int, ...] = ()
    # Tag 0 (KIP-1251): the member epoch at which each of the partitions was assigned, in the same order. Empty in records of
    # Kafka up to 4.2.
    assignment_epochs: tuple[int, ...] | None = ()


@message
class ConsumerGroupCurrentMemberAssignmentValue:
    """The current assignment of a member, on its way to the target assignment."""

    member_epoch: int
    previous_member_epoch: int
    state: int  # 0: stable, 1: has to revoke partitions, 2: waits for partitions of others, 127: unknown
    assigned_partitions: tuple[CurrentPartitions, ...] = ()
    partitions_pending_revocation: tuple[CurrentPartitions, ...] = ()


@message
class ConsumerGroupRegularExpressionKey:
    """A regular expression of a group (record type 16)."""

    group_id: str
    regular_expression: str


@message
class ConsumerGroupRegularExpressionValue:
    """The topics that match a regular expression."""

    topics: tuple[str, ...] = ()  # sorted
    version: int  # of the cluster metadata that was searched
    timestamp_ms: int  # of the search


ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)
