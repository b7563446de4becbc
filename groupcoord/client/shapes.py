"""Old shapes of answers made new: what is behind the connection sees the newest shape alone.

The mirror image of :mod:`groupcoord.protocol.version_compat`, which does it for requests on the side of a server.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from groupcoord.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from groupcoord.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def response_from(request: Any, response: Any, version: int) -> Any:
    """The answer to ``request`` that came in ``version``, in the shape of the newest version."""
    upgrade = _UPGRADES.get(type(response))
    return response if upgrade is None else upgrade(request, response, version)


def _find_coordinator(
    request: FindCoordinatorRequest, response: FindCoordinatorResponse, version: int
) -> FindCoordinatorResponse:
    """v0–3 answer one key and do not name it."""
    if version >= 4:
        return response
    found = Coordinator(
        key=request.key,
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )
    return replace(response, coordinators=(found,))


def _offset_fetch(request: OffsetFetchRequest, response: OffsetFetchResponse, version: int) -> OffsetFetchResponse:
    """v1–7 answer one group and do not name it."""
    if version >= 8:
        return response
    topics = tuple(
        OffsetFetchResponseTopics(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartitions(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ),
        )
        for topic in response.topics
    )
    group = OffsetFetchResponseGroup(group_id=request.group_id, topics=topics, error_code=response.error_code)
    return replace(response, groups=(group,))


_UPGRADES: Mapping[type, Callable[[Any, Any, int], Any]] = {
    FindCoordinatorResponse: _find_coordinator,
    OffsetFetchResponse: _offset_fetch,
}
