"""The FindCoordinator handler, for groups and transactional ids (``KafkaApis.handleFindCoordinatorRequest``)."""

from collections.abc import Callable, Mapping

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.runtime.coordinator_placement import Address
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.find_coordinator import SHARE, Coordinator
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

CoordinatorOf = Callable[[str, int], Address | None]
"""Returns the coordinator of a group or a transactional id, at the address of a listener (numbered from 0), or None."""

NO_NODE = -1


def find_coordinator(
    coordinators: Mapping[int, CoordinatorOf],
    ctx: HandlerContext,
    call: Call,
    request: FindCoordinatorRequest,
) -> None:
    """Answer ``call`` with the coordinator of each key; ``coordinators`` maps key types to lookup functions."""
    found = tuple(_found(coordinators, request.key_type, key, call.listener) for key in request.coordinator_keys)
    ctx.reply(call, FindCoordinatorResponse(coordinators=found))


def this_broker(config: BrokerConfig, listener: int) -> Address | None:
    """The address of the broker with this configuration for clients of a listener (numbered from 0), or None."""
    found = config.advertised[listener]
    return None if found is None else Address(config.node_id, found.host, found.port)


def _found(coordinators: Mapping[int, CoordinatorOf], key_type: int, key: str, listener: int) -> Coordinator:
    if key_type in coordinators:
        address = coordinators[key_type](key, listener)
        if address is None:
            return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node_id, host, port = address
        return Coordinator(key=key, node_id=node_id, host=host, port=port, error_message="")
    code = ErrorCode.INVALID_REQUEST
    # Share groups are not supported; Kafka also refuses their keys, unless they are of its internal form.
    return _no_coordinator(key, code, "" if key_type == SHARE else code.text)


def _no_coordinator(key: str, code: ErrorCode, text: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=code, error_message=text)
