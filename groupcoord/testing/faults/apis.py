"""The APIs by the names that a rule calls them: ``when(Heartbeat)``, ``when("Heartbeat")``, ``when(ApiKey.HEARTBEAT)``."""

import difflib
from collections.abc import Iterable

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.testing.faults.problems import is_number

Produce = APIS[ApiKey.PRODUCE]
Fetch = APIS[ApiKey.FETCH]
ListOffsets = APIS[ApiKey.LIST_OFFSETS]
Metadata = APIS[ApiKey.METADATA]
OffsetCommit = APIS[ApiKey.OFFSET_COMMIT]
OffsetFetch = APIS[ApiKey.OFFSET_FETCH]
FindCoordinator = APIS[ApiKey.FIND_COORDINATOR]
JoinGroup = APIS[ApiKey.JOIN_GROUP]
Heartbeat = APIS[ApiKey.HEARTBEAT]
LeaveGroup = APIS[ApiKey.LEAVE_GROUP]
SyncGroup = APIS[ApiKey.SYNC_GROUP]
DescribeGroups = APIS[ApiKey.DESCRIBE_GROUPS]
ListGroups = APIS[ApiKey.LIST_GROUPS]
ApiVersions = APIS[ApiKey.API_VERSIONS]
CreateTopics = APIS[ApiKey.CREATE_TOPICS]
DeleteTopics = APIS[ApiKey.DELETE_TOPICS]
DeleteRecords = APIS[ApiKey.DELETE_RECORDS]
InitProducerId = APIS[ApiKey.INIT_PRODUCER_ID]
OffsetForLeaderEpoch = APIS[ApiKey.OFFSET_FOR_LEADER_EPOCH]
DescribeConfigs = APIS[ApiKey.DESCRIBE_CONFIGS]
CreatePartitions = APIS[ApiKey.CREATE_PARTITIONS]
DeleteGroups = APIS[ApiKey.DELETE_GROUPS]
IncrementalAlterConfigs = APIS[ApiKey.INCREMENTAL_ALTER_CONFIGS]
OffsetDelete = APIS[ApiKey.OFFSET_DELETE]
DescribeCluster = APIS[ApiKey.DESCRIBE_CLUSTER]

BY_NAME = {api.name: api for api in APIS.values()}
BY_REQUEST: dict[type, Api] = {api.request: api for api in APIS.values()}

ApiLike = Api | ApiKey | type | str
"""What stands for an API: its value in this module, its key, the class of its requests, its name."""


def api_of(what: ApiLike) -> Api:
    """The API that ``what`` stands for. Raises ValueError for one that is not served, with the nearest that is."""
    if isinstance(what, Api):
        return what
    if isinstance(what, str):
        if what in BY_NAME:
            return BY_NAME[what]
        raise ValueError(f"there is no API {what!r}{nearest(what, BY_NAME)}")
    if isinstance(what, type):
        if what in BY_REQUEST:
            return BY_REQUEST[what]
        raise ValueError(f"{what.__name__} is not the class of a request{nearest(what.__name__, _request_names())}")
    key: object = what
    if isinstance(key, int) and is_number(key) and key in APIS:
        return APIS[key]
    raise ValueError(f"{key!r} is no API: give its name, its request class or its ApiKey")


def nearest(word: str, known: Iterable[str]) -> str:
    """``; do you mean X?``, or, if nothing is near, what there is."""
    by_folded = {name.lower().replace("_", ""): name for name in known}
    found = difflib.get_close_matches(word.lower().replace("_", ""), by_folded, n=1)
    if found:
        return f"; do you mean {by_folded[found[0]]}?"
    return f"; there is {', '.join(sorted(by_folded.values()))}" if len(by_folded) <= 30 else ""


def _request_names() -> list[str]:
    return [request.__name__ for request in BY_REQUEST]
