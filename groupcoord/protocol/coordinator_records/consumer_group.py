"""Records of consumer groups (KIP-848) in ``__consumer_offsets``, as dataclasses; ``typed`` reads and writes them.

All values have one version, 0, which is flexible. Sources: the message definitions of the group coordinator
(``ConsumerGroupMetadataKey.json`` and so on) and ``GroupCoordinatorRecordHelpers``.
"""

import uuid

from groupcoord.protocol.codec.message_decorator import message

CONSUMER_GROUP_VALUE_VERSION = 0
"""The version of the values of consumer groups."""


@message
class ConsumerGroupMetadataKey:
    """Which group a record describes: record type 3."""

    group_id: str


@message
class ConsumerGroupMetadataValue:
    """The epoch of a group, which says that it exists."""

    epoch: int
    metadata_hash: int = 0  # tag 0; int64 over the topics that the group subscribes to; 0: none of them exists


@message
class ConsumerGroupPartitionMetadataKey:
    """Whose subscribed topics a record describes: record type 4. Kafka 4.1 and newer only write tombstones of it."""

    group_id: str


@message
class PartitionRacks:
    """The racks of the replicas of one partition."""

    partition: int
    racks: tuple[str, ...] = ()


@message
class SubscribedTopic:
    """A topic that a group subscribes to."""

    topic_id: uuid.UUID | None
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionRacks, ...] = ()


@message
class ConsumerGroupPartitionMetadataValue:
    """The topics that a group subscribes to, as Kafka up to 4.0 wrote them; a hash in the group's record replaces them."""

    topics: tuple[SubscribedTopic, ...] = ()


@message
class ConsumerGroupMemberMetadataKey:
    """Which member a record describes: record type 5."""

    group_id: str
    member_id: str


@message
class ClassicProtocol:
    """A protocol that a member of the classic protocol offers."""

    name: str
    metadata: bytes


@message
class ClassicMemberMetadata:
    """What a member that speaks the classic protocol said in JoinGroup."""

    session_timeout_ms: int = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


@message
class ConsumerGroupMemberMetadataValue:
    """What a member says of itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()  # sorted
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    # Tag 0. None: the member speaks the consumer protocol; that is not the default, so it takes bytes.
    classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()


@message
class ConsumerGroupTargetAssignmentMetadataKey:
    """Of which group a record describes the target assignment: record type 6."""

    group_id: str


@message
class ConsumerGroupTargetAssignmentMetadataValue:
    """For which epoch of the group the target assignment was computed."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0  # tag 0; when it was computed


@message
class ConsumerGroupTargetAssignmentMemberKey:
    """Whose part of the target assignment a record describes: record type 7."""

    group_id: str
    member_id: str


@message
class TargetPartitions:
    """Partitions of one topic that a member is to have."""

    topic_id: uuid.UUID | None
    partitions: tuple[int, ...] = ()


@message
class ConsumerGroupTargetAssignmentMemberValue:
    """What a member is to have."""

    topic_partitions: tuple[TargetPartitions, ...] = ()


@message
class ConsumerGroupCurrentMemberAssignmentKey:
    """Of which member a record describes the current assignment: record type 8."""

    group_id: str
    member_id: str


@message
class CurrentPartitions:
    """Partitions of one topic that a member has, or must give back."""

    topic_id: uuid.UUID | None
    partitions: tuple[int, ...] = ()
    # Tag 0 (KIP-1251): the member epoch at which each of the partitions was assigned, in the same order. Empty in records of
    # Kafka up to 4.2.
    assignment_epochs: tuple[int, ...] | None = ()


@message
class ConsumerGroupCurrentMemberAssignmentValue:
    """How far a member has come on its way to the target assignment."""

    member_epoch: int
    previous_member_epoch: int
    state: int  # 0: stable, 1: it must give partitions back, 2: it waits for partitions of others, 127: unknown
    assigned_partitions: tuple[CurrentPartitions, ...] = ()
    partitions_pending_revocation: tuple[CurrentPartitions, ...] = ()


@message
class ConsumerGroupRegularExpressionKey:
    """Which regular expression of which group a record describes: record type 16."""

    group_id: str
    regular_expression: str


@message
class ConsumerGroupRegularExpressionValue:
    """The topics that a regular expression matches."""

    topics: tuple[str, ...] = ()  # sorted
    version: int  # of the cluster's metadata in which they were looked for
    timestamp_ms: int  # when they were looked for


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
