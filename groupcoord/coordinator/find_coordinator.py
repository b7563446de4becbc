"""FindCoordinator: which broker coordinates a group. Source: ``KafkaApis.handleFindCoordinatorRequest``."""

from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.core.effects import Call
from groupcoord.core.turn import Turn
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.messages.find_coordinator import Coordinator

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOBODY = -1


def find_coordinator(config: CoordinatorConfig, turn: Turn, call: Call, request: FindCoordinatorRequest) -> None:
    """Answer ``call``: this broker, for every group and every transactional id."""
    found = tuple(_coordinator(config, request.key_type, key) for key in request.coordinator_keys)
    turn.reply(call, FindCoordinatorResponse(coordinators=found))


def _coordinator(config: CoordinatorConfig, key_type: int, key: str) -> Coordinator:
    if key_type in (GROUP, TRANSACTION):
        return Coordinator(key=key, node_id=config.node_id, host=config.host, port=config.port, error_message="")
    code = ErrorCode.INVALID_REQUEST
    # Share groups do not live here; Kafka refuses their keys too, unless they are of its internal form.
    text = "" if key_type == SHARE else code.text
    return Coordinator(key=key, node_id=NOBODY, host="", port=NOBODY, error_code=code, error_message=text)
