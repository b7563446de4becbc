"""FindCoordinator: which broker coordinates a group. Source: ``KafkaApis.handleFindCoordinatorRequest``."""

from collections.abc import Callable

from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.runtime.runtime import Address
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
NO_NODE = -1

CoordinatorOf = Callable[[str], Address | None]
"""The broker that coordinates a group, if there is one."""


def find_coordinator(
    config: CoordinatorConfig,
    coordinator_of: CoordinatorOf,
    ctx: HandlerContext,
    call: Call,
    request: FindCoordinatorRequest,
) -> None:
    """Answer ``call``: the coordinator of each group that has one, and this broker for every transactional id."""
    found = tuple(_found(config, coordinator_of, request.key_type, key) for key in request.coordinator_keys)
    ctx.reply(call, FindCoordinatorResponse(coordinators=found))


def this_broker(config: CoordinatorConfig) -> Address:
    """The address of the broker with this configuration."""
    return Address(config.node_id, config.host, config.port)


def _found(config: CoordinatorConfig, coordinator_of: CoordinatorOf, key_type: int, key: str) -> Coordinator:
    if key_type in (GROUP, TRANSACTION):
        address = coordinator_of(key) if key_type == GROUP else this_broker(config)
        if address is None:
            return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node_id, host, port = address
        return Coordinator(key=key, node_id=node_id, host=host, port=port, error_message="")
    code = ErrorCode.INVALID_REQUEST
    # Share groups do not live here; Kafka refuses their keys too, unless they are of its internal form.
    return _no_coordinator(key, code, "" if key_type == SHARE else code.text)


def _no_coordinator(key: str, code: ErrorCode, text: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=code, error_message=text)
