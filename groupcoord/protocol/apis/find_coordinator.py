"""FindCoordinator (API key 10): request and response messages, and their Api."""

from dataclasses import replace

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message

GROUP, TRANSACTION, SHARE = 0, 1, 2
"""What a key is: the ``key_type``."""


@message
class FindCoordinatorRequest:
    """Find the broker that coordinates a group or a transactional id.

    v1 adds the kind of key and says errors in words, v3 is flexible, v4 asks for many keys at once (KIP-699), v5 may answer
    TRANSACTION_ABORTABLE (KIP-890), v6 knows share groups (KIP-932). Handlers see
    ``coordinator_keys`` in all versions.
    """

    key: str = ""  # v0–3
    key_type: int = GROUP  # v1+; SHARE v6+
    coordinator_keys: tuple[str, ...] = ()  # v4+


@message
class Coordinator:
    """The broker for one key: v4+. Errors: COORDINATOR_NOT_AVAILABLE, INVALID_REQUEST."""

    key: str = ""
    node_id: int = 0  # -1 with an error, and so the port
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


@message
class FindCoordinatorResponse:
    """The brokers. v1 adds message and throttle time, v3 is flexible, v4 answers many keys (KIP-699).

    Handlers fill in ``coordinators`` in all versions.
    """

    error_code: int = 0  # v0–3
    error_message: str | None = ""  # v1–3
    node_id: int = 0  # v0–3
    host: str = ""  # v0–3
    port: int = 0  # v0–3
    throttle_time_ms: int = 0  # v1+
    coordinators: tuple[Coordinator, ...] = ()  # v4+


def _error_response(request: FindCoordinatorRequest, _version: int, error: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=error.text)
            for key in request.coordinator_keys
        )
    )


def _upgrade(request: FindCoordinatorRequest, version: int) -> FindCoordinatorRequest:
    """v0–3 ask for one key (KIP-699)."""
    return replace(request, coordinator_keys=(request.key,)) if version < 4 else request


def _downgrade(response: FindCoordinatorResponse, version: int) -> FindCoordinatorResponse:
    """v0–3 answer one key; v1–3 say "NONE" in the message of a success, and the standard text in an error's."""
    if version >= 4 or not response.coordinators:
        return response
    found = response.coordinators[0]
    return replace(
        response,
        error_code=found.error_code,
        error_message=found.error_message or ErrorCode(found.error_code).text,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


API = Api(
    key=ApiKey.FIND_COORDINATOR,
    request=FindCoordinatorRequest,
    response=FindCoordinatorResponse,
    min_version=0,
    max_version=6,
    summary="Find the coordinator of a group or transaction",
    make_error_response=_error_response,
    upgrade=_upgrade,
    downgrade=_downgrade,
    groups=(RequestField("coordinator_keys[]", ("key_type", GROUP)),),
    transactional_ids=(RequestField("coordinator_keys[]", ("key_type", TRANSACTION)),),
)
