"""Where each API says which groups, members and topics a request is about: one table, for matching and for the docs.

Requests are in the shape of the newest version (``groupcoord.protocol.version_compat``), so each has its fields in one place.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groupcoord.protocol.apis import ApiKey


class Field(NamedTuple):
    """A field by its path: ``topics[].name`` is that of each topic.

    ``only``: it counts only where a field beside it has a value, as a resource is a topic if its type is 2.
    """

    path: str
    only: tuple[str, int] | None = None

    def __str__(self) -> str:
        condition = "" if self.only is None else f" if {self.only[0]} is {self.only[1]}"
        return f"{self.path}{condition}"

    def values(self, request: Any) -> Iterator[Any]:
        """What it has in ``request``; an EVERY for a list that is null, which means all there are."""
        *holders, last = self.path.split(".")
        found = [request]
        for name in holders:
            attribute = name.removesuffix("[]")
            lists = [getattr(holder, attribute) for holder in found]
            if None in lists:
                yield EVERY
            found = [item for items in lists if items is not None for item in items]
        for holder in found:
            if self.only is None or getattr(holder, self.only[0]) == self.only[1]:
                value = getattr(holder, last.removesuffix("[]"))
                if last.endswith("[]"):
                    yield from value
                elif value is not None:
                    yield value


class Every:
    """Stands for all the topics there are."""

    def __repr__(self) -> str:
        return "all topics"


EVERY = Every()


class Fields(NamedTuple):
    """Where requests of one API name groups, members (by member id or instance id) and topics (by name or id)."""

    groups: tuple[Field, ...] = ()
    members: tuple[Field, ...] = ()
    topics: tuple[Field, ...] = ()


_GROUP = (Field("group_id"),)
_MEMBER = (Field("member_id"), Field("group_instance_id"))
_NAMES = (Field("topics[].name"),)
_NAMES_AND_IDS = (Field("topics[].name"), Field("topics[].topic_id"))
_OLD_NAMES = (Field("topics[].topic"),)
_RESOURCES = "resources[].resource_name"
_TOPIC_RESOURCE, _GROUP_RESOURCE = ("resource_type", 2), ("resource_type", 32)

FIELDS: Mapping[int, Fields] = {
    ApiKey.PRODUCE: Fields(topics=(Field("topic_data[].name"), Field("topic_data[].topic_id"))),
    ApiKey.FETCH: Fields(topics=(Field("topics[].topic"), Field("topics[].topic_id"))),
    ApiKey.LIST_OFFSETS: Fields(topics=_NAMES),
    ApiKey.METADATA: Fields(topics=_NAMES_AND_IDS),
    ApiKey.OFFSET_COMMIT: Fields(_GROUP, _MEMBER, _NAMES_AND_IDS),
    ApiKey.OFFSET_FETCH: Fields(
        (Field("groups[].group_id"),),
        (Field("groups[].member_id"),),
        (Field("groups[].topics[].name"), Field("groups[].topics[].topic_id")),
    ),
    ApiKey.FIND_COORDINATOR: Fields((Field("coordinator_keys[]", ("key_type", 0)),)),
    ApiKey.JOIN_GROUP: Fields(_GROUP, _MEMBER),
    ApiKey.HEARTBEAT: Fields(_GROUP, _MEMBER),
    ApiKey.LEAVE_GROUP: Fields(_GROUP, (Field("members[].member_id"), Field("members[].group_instance_id"))),
    ApiKey.SYNC_GROUP: Fields(_GROUP, _MEMBER),
    ApiKey.DESCRIBE_GROUPS: Fields((Field("groups[]"),)),
    ApiKey.LIST_GROUPS: Fields(),
    ApiKey.API_VERSIONS: Fields(),
    ApiKey.CREATE_TOPICS: Fields(topics=_NAMES),
    ApiKey.DELETE_TOPICS: Fields(topics=_NAMES_AND_IDS),
    ApiKey.DELETE_RECORDS: Fields(topics=_NAMES),
    ApiKey.INIT_PRODUCER_ID: Fields(),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Fields(topics=_OLD_NAMES),
    ApiKey.DESCRIBE_CONFIGS: Fields((Field(_RESOURCES, _GROUP_RESOURCE),), (), (Field(_RESOURCES, _TOPIC_RESOURCE),)),
    ApiKey.CREATE_PARTITIONS: Fields(topics=_NAMES),
    ApiKey.DELETE_GROUPS: Fields((Field("groups_names[]"),)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Fields(
        (Field(_RESOURCES, _GROUP_RESOURCE),), (), (Field(_RESOURCES, _TOPIC_RESOURCE),)
    ),
    ApiKey.OFFSET_DELETE: Fields(_GROUP, (), _NAMES),
    ApiKey.DESCRIBE_CLUSTER: Fields(),
}


def values(fields: tuple[Field, ...], request: Any) -> tuple[str | uuid.UUID | Every, ...]:
    """What ``fields`` have in ``request``, each once; a request that was not understood has nothing."""
    if request is None:
        return ()
    return tuple(dict.fromkeys(value for field in fields for value in field.values(request)))
