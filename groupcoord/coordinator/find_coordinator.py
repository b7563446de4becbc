"""FindCoordinator: which broker coordinates a group. Source: ``KafkaApis.handleFindCoordinatorRequest``."""

from collections.abc import Callable

from groupcoord.coordinator.availability import Unavailable
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.places import Address
from groupcoord.coordinator.shard import Shard
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.messages.find_coordinator import Coordinator

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOBODY = -1

CoordinatorOf = Callable[[str], Address | None]


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


def this_broker(config: CoordinatorConfig, shard: Shard) -> Address | None:
    """A lone broker coordinates every group, unless the log of its shard is gone; while that is read, it does."""
    lost = isinstance(shard.groups, Unavailable) and shard.groups.is_lost
    return None if lost else _address(config)


def _address(config: CoordinatorConfig) -> Address:
    return Address(config.node_id, config.host, config.port)


def _found(config: CoordinatorConfig, coordinator_of: CoordinatorOf, key_type: int, key: str) -> Coordinator:
    if key_type in (GROUP, TRANSACTION):
        address = coordinator_of(key) if key_type == GROUP else _address(config)
        if address is None:
            return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node_id, host, port = address
        return Coordinator(key=key, node_id=node_id, host=host, port=port, error_message="")
    code = ErrorCode.INVALID_REQUEST
    # Share groups do not live here; Kafka refuses their keys too, unless they are of its internal form.
    return _nobody(key, code, "" if key_type == SHARE else code.text)


def _nobody(key: str, code: ErrorCode, text: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NOBODY, host="", port=NOBODY, error_code=code, error_message=text)
