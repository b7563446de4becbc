"""The schemas of all record types that a group coordinator of Kafka 4.3 writes to ``__consumer_offsets``.

A key is an int16 record type and its fields; a value is an int16 version and its fields, with Kafka's JSON names. Sources:
``CoordinatorRecordType`` and the message definitions of the group coordinator (``ConsumerGroupMetadataKey.json``,
``ConsumerGroupMetadataValue.json`` and so on); KIP-848 for consumer groups, KIP-932 for share groups, KIP-1071 for Streams
groups.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from groupcoord.protocol.codec.schema import MessageSchema, SchemaField

NEVER = 32_767
"""A ``flexible_from`` for structs without flexible versions (KIP-482)."""


class RecordField(NamedTuple):
    """One field of a key, a value or a nested struct.

    ``kind`` is Kafka's type, of the items if the field is an array; ``struct`` has the fields of kind ``"struct"``. Versions
    outside ``versions`` do not have the field. A tagged field that is missing in the bytes has ``default``.
    """

    name: str
    kind: str
    is_array: bool = False
    is_nullable: bool = False
    versions: range = range(5)
    tag: int | None = None
    default: object = None
    struct: "RecordStruct | None" = None


class RecordStruct(NamedTuple):
    """Fields in wire order; versions from ``flexible_from`` on have compact lengths and tagged fields."""

    name: str
    fields: tuple[RecordField, ...]
    flexible_from: int = 0

    def schema(self, version: int) -> MessageSchema:
        """The schema at ``version``, which reads into a dictionary by field name."""
        fields = tuple(
            SchemaField(
                field.name,
                field.kind,
                field.is_array,
                field.is_nullable,
                field.tag,
                field.struct and field.struct.schema(version),
            )
            for field in self.fields
            if version in field.versions
        )
        return MessageSchema(type(self.name, (dict,), {}), version, version >= self.flexible_from, fields)


class RecordType(NamedTuple):
    """One record type: its number, Kafka's name, and the fields of its keys and values.

    Keys have one version, which is not flexible; values have ``versions``.
    """

    number: int
    name: str
    key: RecordStruct
    value: RecordStruct
    versions: range


def _field(
    name: str, said: str, versions: range = range(5), *, tag: int | None = None, default: object = None
) -> RecordField:
    """A field of the type ``said``, as in Kafka's definitions, with a prefix ``?`` if it is nullable and ``[]`` for an
    array."""
    kind = said.removeprefix("?")
    return RecordField(
        name,
        kind.removeprefix("[]"),
        is_array=kind.startswith("[]"),
        is_nullable=said.startswith("?"),
        versions=versions,
        tag=tag,
        default=default,
    )


def _of(field: RecordField, struct: RecordStruct) -> RecordField:
    """``field`` with the nested ``struct``."""
    return field._replace(kind="struct", struct=struct)


_GROUP = (_field("groupId", "string"),)
_MEMBER = (*_GROUP, _field("memberId", "string"))
_OFFSET = (_field("group", "string"), _field("topic", "string"), _field("partition", "int32"))


def _record_type(
    number: int,
    name: str,
    key: tuple[RecordField, ...],
    *fields: RecordField,
    versions: range = range(1),
    flexible_from: int = 0,
) -> RecordType:
    """A record type with these fields in its keys and values."""
    return RecordType(
        number,
        name,
        RecordStruct(f"{name}Key", key, NEVER),
        RecordStruct(f"{name}Value", fields, flexible_from),
        versions,
    )


# --- shared by several record types

_TOPIC_PARTITION = (_field("topicId", "uuid"), _field("partitions", "[]int32"))
_ASSIGNMENT_EPOCHS = _field("assignmentEpochs", "?[]int32", tag=0, default=())
_ASSIGNED = _of(_field("topicPartitions", "[]"), RecordStruct("TopicPartition", _TOPIC_PARTITION))
_EPOCH = _field("epoch", "int32")
_METADATA_HASH = _field("metadataHash", "int64")
_ASSIGNMENT = (
    _field("assignmentEpoch", "int32"),
    _field("assignmentTimestamp", "int64", tag=0, default=0),
)
_MEMBER_EPOCHS = (
    _field("memberEpoch", "int32"),
    _field("previousMemberEpoch", "int32"),
    _field("state", "int8"),
)
_CLIENT = (_field("rackId", "?string"), _field("clientId", "string"), _field("clientHost", "string"))
_TOPIC_NAMES = _field("subscribedTopicNames", "[]string")
_TOPIC = (_field("topicId", "uuid"), _field("topicName", "string"))
_PAIR = (_field("key", "string"), _field("value", "string"))

# --- classic groups and offsets (KIP-211, KIP-320, KIP-345)

_LEGACY_OFFSET_COMMIT = _record_type(
    0,
    "LegacyOffsetCommit",
    _OFFSET,
    _field("offset", "int64"),
    _field("metadata", "string"),
    _field("commitTimestamp", "int64"),
    flexible_from=NEVER,
)

_OFFSET_COMMIT = _record_type(
    1,
    "OffsetCommit",
    _OFFSET,
    _field("offset", "int64"),
    _field("leaderEpoch", "int32", range(3, 5)),
    _field("metadata", "string"),
    _field("commitTimestamp", "int64"),
    _field("expireTimestamp", "int64", range(1, 2)),
    _field("topicId", "uuid", range(4, 5), tag=0),
    versions=range(5),
    flexible_from=4,
)

_CLASSIC_MEMBER = (
    _field("memberId", "string"),
    _field("groupInstanceId", "?string", range(3, 5)),
    _field("clientId", "string"),
    _field("clientHost", "string"),
    _field("rebalanceTimeout", "int32", range(1, 5)),
    _field("sessionTimeout", "int32"),
    _field("subscription", "bytes"),
    _field("assignment", "bytes"),
)
_GROUP_METADATA = _record_type(
    2,
    "GroupMetadata",
    (_field("group", "string"),),
    _field("protocolType", "string"),
    _field("generation", "int32"),
    _field("protocol", "?string"),
    _field("leader", "?string"),
    _field("currentStateTimestamp", "int64", range(2, 5)),
    _of(_field("members", "[]"), RecordStruct("MemberMetadata", _CLASSIC_MEMBER, 4)),
    versions=range(5),
    flexible_from=4,
)

# --- consumer groups (KIP-848)

_RACKS = RecordStruct("PartitionMetadata", (_field("partition", "int32"), _field("racks", "[]string")))
_SUBSCRIBED_TOPIC = (
    *_TOPIC,
    _field("numPartitions", "int32"),
    _of(_field("partitionMetadata", "[]"), _RACKS),
)
_CLASSIC_PROTOCOL = RecordStruct("ClassicProtocol", (_field("name", "string"), _field("metadata", "bytes")))
_CLASSIC_MEMBER_METADATA = RecordStruct(
    "ClassicMemberMetadata",
    (_field("sessionTimeoutMs", "int32"), _of(_field("supportedProtocols", "[]"), _CLASSIC_PROTOCOL)),
)
_NO_CLASSIC_MEMBER = {"sessionTimeoutMs": 0, "supportedProtocols": ()}
"""Kafka's default, which is not null: null means no classic member, an absent field a member without protocols."""
_OWNED = RecordStruct("TopicPartitions", (*_TOPIC_PARTITION, _ASSIGNMENT_EPOCHS))

_CONSUMER_GROUPS = (
    _record_type(3, "ConsumerGroupMetadata", _GROUP, _EPOCH, _METADATA_HASH._replace(tag=0, default=0)),
    _record_type(
        4,
        "ConsumerGroupPartitionMetadata",
        _GROUP,
        _of(_field("topics", "[]"), RecordStruct("TopicMetadata", _SUBSCRIBED_TOPIC)),
    ),
    _record_type(
        5,
        "ConsumerGroupMemberMetadata",
        _MEMBER,
        _field("instanceId", "?string"),
        *_CLIENT,
        _TOPIC_NAMES,
        _field("subscribedTopicRegex", "?string"),
        _field("rebalanceTimeoutMs", "int32"),
        _field("serverAssignor", "?string"),
        _of(
            _field("classicMemberMetadata", "?", tag=0, default=_NO_CLASSIC_MEMBER),
            _CLASSIC_MEMBER_METADATA,
        ),
    ),
    _record_type(6, "ConsumerGroupTargetAssignmentMetadata", _GROUP, *_ASSIGNMENT),
    _record_type(7, "ConsumerGroupTargetAssignmentMember", _MEMBER, _ASSIGNED),
    _record_type(
        8,
        "ConsumerGroupCurrentMemberAssignment",
        _MEMBER,
        *_MEMBER_EPOCHS,
        _of(_field("assignedPartitions", "[]"), _OWNED),
        _of(_field("partitionsPendingRevocation", "[]"), _OWNED),
    ),
    _record_type(
        16,
        "ConsumerGroupRegularExpression",
        (*_GROUP, _field("regularExpression", "string")),
        _field("topics", "[]string"),
        _field("version", "int64"),
        _field("timestamp", "int64"),
    ),
)

# --- share groups (KIP-932)

_SHARED = RecordStruct("TopicPartitionsInfo", (*_TOPIC, _field("partitions", "[]int32")))

_SHARE_GROUPS = (
    _record_type(10, "ShareGroupMemberMetadata", _MEMBER, *_CLIENT, _TOPIC_NAMES),
    _record_type(11, "ShareGroupMetadata", _GROUP, _EPOCH, _METADATA_HASH),
    _record_type(12, "ShareGroupTargetAssignmentMetadata", _GROUP, *_ASSIGNMENT),
    _record_type(13, "ShareGroupTargetAssignmentMember", _MEMBER, _ASSIGNED),
    _record_type(
        14,
        "ShareGroupCurrentMemberAssignment",
        _MEMBER,
        *_MEMBER_EPOCHS,
        _of(_field("assignedPartitions", "[]"), RecordStruct("TopicPartitions", _TOPIC_PARTITION)),
    ),
    _record_type(
        15,
        "ShareGroupStatePartitionMetadata",
        _GROUP,
        _of(_field("initializingTopics", "[]"), _SHARED),
        _of(_field("initializedTopics", "[]"), _SHARED),
        _of(_field("deletingTopics", "[]"), RecordStruct("TopicInfo", _TOPIC)),
    ),
)

# --- Streams groups (KIP-1071)

_TASK_IDS = (_field("subtopologyId", "string"), _field("partitions", "[]int32"))
_ASSIGNED_TASKS = RecordStruct("TaskIds", _TASK_IDS)
_OWNED_TASKS = RecordStruct("TaskIds", (*_TASK_IDS, _ASSIGNMENT_EPOCHS))
_TASK_ROLES = ("activeTasks", "standbyTasks", "warmupTasks")
_ENDPOINT = RecordStruct("Endpoint", (_field("host", "string"), _field("port", "uint16")))
_TOPIC_INFO = RecordStruct(
    "TopicInfo",
    (
        _field("name", "string"),
        _field("partitions", "int32"),
        _field("replicationFactor", "int16"),
        _of(_field("topicConfigs", "[]"), RecordStruct("TopicConfig", _PAIR)),
    ),
)
_COPARTITION_GROUP = RecordStruct(
    "CopartitionGroup",
    (
        _field("sourceTopics", "[]int16"),
        _field("sourceTopicRegex", "[]int16"),
        _field("repartitionSourceTopics", "[]int16"),
    ),
)
_SUBTOPOLOGY = RecordStruct(
    "Subtopology",
    (
        _field("subtopologyId", "string"),
        _field("sourceTopics", "[]string"),
        _field("sourceTopicRegex", "[]string"),
        _of(_field("stateChangelogTopics", "[]"), _TOPIC_INFO),
        _field("repartitionSinkTopics", "[]string"),
        _of(_field("repartitionSourceTopics", "[]"), _TOPIC_INFO),
        _of(_field("copartitionGroups", "[]"), _COPARTITION_GROUP),
    ),
)

_STREAMS_GROUPS = (
    _record_type(
        17,
        "StreamsGroupMetadata",
        _GROUP,
        _EPOCH,
        _METADATA_HASH,
        _field("validatedTopologyEpoch", "int32", tag=0, default=-1),
        _of(_field("lastAssignmentConfigs", "?[]", tag=1, default=()), RecordStruct("LastAssignmentConfig", _PAIR)),
    ),
    _record_type(
        19,
        "StreamsGroupMemberMetadata",
        _MEMBER,
        _field("instanceId", "?string"),
        *_CLIENT,
        _field("rebalanceTimeoutMs", "int32"),
        _field("topologyEpoch", "int32"),
        _field("processId", "string"),
        _of(_field("userEndpoint", "?"), _ENDPOINT),
        _of(_field("clientTags", "[]"), RecordStruct("KeyValue", _PAIR)),
    ),
    _record_type(20, "StreamsGroupTargetAssignmentMetadata", _GROUP, *_ASSIGNMENT),
    _record_type(
        21,
        "StreamsGroupTargetAssignmentMember",
        _MEMBER,
        *(_of(_field(role, "[]"), _ASSIGNED_TASKS) for role in _TASK_ROLES),
    ),
    _record_type(
        22,
        "StreamsGroupCurrentMemberAssignment",
        _MEMBER,
        *_MEMBER_EPOCHS,
        *(_of(_field(role, "[]"), _OWNED_TASKS) for role in _TASK_ROLES),
        *(_of(_field(f"{role}PendingRevocation", "[]"), _OWNED_TASKS) for role in _TASK_ROLES),
    ),
    _record_type(
        23,
        "StreamsGroupTopology",
        _GROUP,
        _EPOCH,
        _of(_field("subtopologies", "[]"), _SUBTOPOLOGY),
    ),
)


_ALL = (
    _LEGACY_OFFSET_COMMIT,
    _OFFSET_COMMIT,
    _GROUP_METADATA,
    *_CONSUMER_GROUPS,
    *_SHARE_GROUPS,
    *_STREAMS_GROUPS,
)

RECORD_TYPES: Mapping[int, RecordType] = MappingProxyType({kind.number: kind for kind in sorted(_ALL)})
"""The record types by number. No release of Kafka has used 9 and 18."""
