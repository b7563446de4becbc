"""groupcoord in this process, serving from a thread, and questions to its coordinator."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groupcoord import Cluster
from groupcoord.client.connection import BrokerConnection
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup

TIMEOUT_MS = 30_000
VERSIONS = {
    ApiKey.OFFSET_FETCH: 8,
    ApiKey.LIST_GROUPS: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.OFFSET_COMMIT: 7,
}
Offsets = dict[tuple[str, int], tuple[int, int, str]]


@contextmanager
def serving(data_dir: Path, config: dict[str, object]) -> Iterator[str]:
    """HOST:PORT of a server on ``data_dir``."""
    topics = {"orders": 4, "payments": 4}
    with Cluster(config=config, data_dir=data_dir, topics=topics).sync() as kafka:
        yield kafka.address


class Coordinator:
    """One connection to the coordinator of everything."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._runner = asyncio.Runner()
        connecting = BrokerConnection.connect(host, int(port), client_id="test", timeout_ms=TIMEOUT_MS)
        self._connection = self._runner.run(connecting)

    def ask(self, key: ApiKey, request: Any) -> Any:
        return self._runner.run(self._connection.request(request, TIMEOUT_MS, limit=VERSIONS[key]))

    def committed(self, group: str) -> Offsets:
        """What OffsetFetch says of all partitions of ``group``."""
        [found] = self.ask(
            ApiKey.OFFSET_FETCH, m.OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))
        ).groups
        assert found.error_code == 0
        return {
            (topic.name, one.partition_index): (one.committed_offset, one.committed_leader_epoch, one.metadata)
            for topic in found.topics
            for one in topic.partitions
        }

    def groups(self) -> dict[str, tuple[str, str]]:
        """Group → (state, protocol type)."""
        listed = self.ask(ApiKey.LIST_GROUPS, m.ListGroupsRequest())
        assert listed.error_code == 0
        return {group.group_id: (group.group_state, group.protocol_type) for group in listed.groups}

    def members(self, group: str) -> list[tuple[str, str]]:
        """The member ids and client ids of ``group``."""
        [found] = self.ask(ApiKey.DESCRIBE_GROUPS, m.DescribeGroupsRequest(groups=(group,))).groups
        return sorted((member.member_id, member.client_id) for member in found.members)

    def close(self) -> None:
        self._connection.close()
        self._runner.close()
