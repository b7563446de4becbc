"""Api, the description of one API: versions, message classes, and where a request names groups, members and topics; and
ApiKey."""

import enum
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupcoord.protocol.codec.message_codec import Codec, codec_for
from groupcoord.protocol.errors import ErrorCode


class ApiKey(enum.IntEnum):
    """The API keys of Kafka 4.3, served here or not (``org.apache.kafka.common.protocol.ApiKeys``)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92

    # Faster than Enum's hash: the handler of every request is looked up by it.
    __hash__ = int.__hash__


class AllTopics:
    """The value of a null list of topics, which means all topics."""

    def __repr__(self) -> str:
        return "all topics"


ALL_TOPICS = AllTopics()


class RequestField(NamedTuple):
    """The path of a request field: ``topics[].name`` is the name of each topic.

    With ``only``, the field counts only if the field next to it has that value: a resource is a topic if its type is 2. Paths
    are those of the newest version (see ``Api.upgrade``), so a field has one path for all versions. A null list means all
    topics, unless ``null_is_all`` is not set: then it means no change, and names nothing.
    """

    path: str
    only: tuple[str, int] | None = None
    null_is_all: bool = True

    def __str__(self) -> str:
        condition = "" if self.only is None else f" if {self.only[0]} is {self.only[1]}"
        return f"{self.path}{condition}"

    def values(self, request: Any) -> Iterator[Any]:
        """The values in ``request`` that are not null; ALL_TOPICS for a null list on the path."""
        *holders, last = self.path.split(".")
        found = [request]
        for name in holders:
            attribute = name.removesuffix("[]")
            lists = [getattr(holder, attribute) for holder in found]
            if None in lists and self.null_is_all:
                yield ALL_TOPICS
            found = [item for items in lists if items is not None for item in items]
        for holder in found:
            if self.only is None or getattr(holder, self.only[0]) == self.only[1]:
                value = getattr(holder, last.removesuffix("[]"))
                if last.endswith("[]"):
                    yield from value or ()
                elif value is not None:
                    yield value


GROUP_ID = RequestField("group_id")
MEMBER_ID = RequestField("member_id")
INSTANCE_ID = RequestField("group_instance_id")
TOPIC_NAME = RequestField("topics[].name")
TOPIC_ID = RequestField("topics[].topic_id")
TOPIC_RESOURCE = RequestField("resources[].resource_name", ("resource_type", 2))
GROUP_RESOURCE = RequestField("resources[].resource_name", ("resource_type", 32))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Api:
    """One API.

    - Versions ``min_version`` to ``max_version`` are served. ``advertised_from``: a lower minimum version in ApiVersions.
    - ``make_error_response`` builds the result of ``error_response``, from (request, version, error code). None: the response
    has the code at the top level, and everything else is at its default.
    - ``upgrade`` converts a request of a version to the newest version; ``downgrade`` converts a response to what a version
    writes. Kafka's request classes and response builders do the same. None: all versions are alike.
    - ``groups``, ``members``, ``instances``, ``topics``, ``partitions`` and ``transactional_ids`` are the fields in which a
    request names these: groups by id, members by member id, static members by ``group.instance.id``, topics by name or id,
    partitions by number.
    - ``may_wait``: the broker may delay a successful response until others act, or until a timeout in the request.
    """

    key: ApiKey
    request: type[Any]
    response: type[Any]
    min_version: int
    max_version: int
    summary: str
    make_error_response: Callable[[Any, int, ErrorCode], Any | None] | None = None
    advertised_from: int | None = None
    upgrade: Callable[[Any, int], Any] | None = None
    downgrade: Callable[[Any, int], Any] | None = None
    groups: tuple[RequestField, ...] = ()
    members: tuple[RequestField, ...] = ()
    instances: tuple[RequestField, ...] = ()
    topics: tuple[RequestField, ...] = ()
    partitions: tuple[RequestField, ...] = ()
    transactional_ids: tuple[RequestField, ...] = ()
    may_wait: bool = False
    name: str = field(init=False)
    """Kafka's name of the API, the prefix of its request's name."""
    package: str = field(init=False)
    """kio's name of the API."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.request.__name__.removesuffix("Request"))
        object.__setattr__(self, "package", self.key.name.lower())

    def __repr__(self) -> str:
        return f"<Api {self.name}>"

    @property
    def advertised_min(self) -> int:
        """The lowest version in ApiVersions."""
        return self.min_version if self.advertised_from is None else self.advertised_from

    def serves(self, version: int) -> bool:
        """Is ``version`` served here?"""
        return self.min_version <= version <= self.max_version

    def request_codec(self, version: int) -> Codec[Any]:
        """The codec of requests at ``version``."""
        return codec_for(self.request, self.package, version, "request")

    def response_codec(self, version: int) -> Codec[Any]:
        """The codec of responses at ``version``."""
        return codec_for(self.response, self.package, version, "response")

    def error_response(self, request: Any, version: int, error: ErrorCode) -> Any | None:
        """The response with ``error`` for everything in ``request``, as ``getErrorResponse`` of Kafka's request classes.

        Older APIs have no top-level error code, so the code is repeated for everything in the request. None if there is no
        response: for a Produce with acks 0, or for a request that could not be parsed (None).
        """
        if request is None:
            return None
        if self.make_error_response is None:
            return self.response(error_code=error)
        return self.make_error_response(request, version, error)


def values_of(fields: tuple[RequestField, ...], request: Any) -> tuple[str | uuid.UUID | AllTopics, ...]:
    """The values of ``fields`` in ``request``, each once; none if the request could not be parsed (None)."""
    if request is None:
        return ()
    return tuple(dict.fromkeys(value for field in fields for value in field.values(request)))
