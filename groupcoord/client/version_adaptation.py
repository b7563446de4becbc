"""Converts requests from the newest version to an older one that a broker supports, and responses back.

Only messages whose older versions use other fields are here (FindCoordinator, LeaveGroup, OffsetFetch); the codec leaves out
fields that a version does not have.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from groupcoord.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from groupcoord.protocol.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup

REGEX_VERSION = 1
"""The first version of ConsumerGroupHeartbeat that has regular expressions."""


def unsupported_by_version(request: Any, version: int) -> str:
    """The part of ``request`` that ``version`` cannot express, as a text; "" if there is none."""
    if (
        isinstance(request, ConsumerGroupHeartbeatRequest)
        and request.subscribed_topic_regex
        and version < REGEX_VERSION
    ):
        return f"subscriptions by regular expression came with version {REGEX_VERSION} of ConsumerGroupHeartbeat"
    return ""


def downgrade_request(request: Any, version: int) -> Any:
    """Convert ``request`` from the newest version to ``version``; one that has an older form already stays as it is."""
    downgrade = _DOWNGRADES.get(type(request))
    return request if downgrade is None else downgrade(request, version)


def _find_coordinator_request(request: FindCoordinatorRequest, version: int) -> FindCoordinatorRequest:
    """v0–3 have one key."""
    return (
        request if version >= 4 or not request.coordinator_keys else replace(request, key=request.coordinator_keys[0])
    )


def _leave_group_request(request: LeaveGroupRequest, version: int) -> LeaveGroupRequest:
    """v0–2 name one member."""
    return request if version >= 3 or not request.members else replace(request, member_id=request.members[0].member_id)


def _offset_fetch_request(request: OffsetFetchRequest, version: int) -> OffsetFetchRequest:
    """v1–7 have one group."""
    if version >= 8 or not request.groups:
        return request
    group = request.groups[0]
    return replace(request, group_id=group.group_id, topics=group.topics)


_DOWNGRADES: Mapping[type, Callable[[Any, int], Any]] = {
    FindCoordinatorRequest: _find_coordinator_request,
    LeaveGroupRequest: _leave_group_request,
    OffsetFetchRequest: _offset_fetch_request,
}


def upgrade_response(request: Any, response: Any, version: int) -> Any:
    """Convert the response to ``request`` from ``version`` to the newest version."""
    upgrade = _UPGRADES.get(type(response))
    return response if upgrade is None else upgrade(request, response, version)


def _find_coordinator_response(
    request: FindCoordinatorRequest, response: FindCoordinatorResponse, version: int
) -> FindCoordinatorResponse:
    """v0–3 have one key and do not name it."""
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


def _offset_fetch_response(
    request: OffsetFetchRequest, response: OffsetFetchResponse, version: int
) -> OffsetFetchResponse:
    """v1–7 have one group and do not name it."""
    if version >= 8:
        return response
    group = OffsetFetchResponseGroup(group_id=request.group_id, topics=response.topics, error_code=response.error_code)
    return replace(response, groups=(group,))


_UPGRADES: Mapping[type, Callable[[Any, Any, int], Any]] = {
    FindCoordinatorResponse: _find_coordinator_response,
    OffsetFetchResponse: _offset_fetch_response,
}
