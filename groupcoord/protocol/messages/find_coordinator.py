"""FindCoordinator: versions 0–6."""

from groupcoord.protocol.codec.message import message


@message
class FindCoordinatorRequest:
    """Which broker coordinates this group (or transactional id)?

    v1 adds the kind of key and says errors in words, v3 is flexible, v4 asks for many keys at once (KIP-699), v5 may answer
    TRANSACTION_ABORTABLE (KIP-890), v6 knows share groups (KIP-932). What is behind the protocol looks at
    ``coordinator_keys`` in all versions; see protocol.shapes.
    """

    key: str = ""  # v0–3
    key_type: int = 0  # v1+; 0 group, 1 transaction, 2 share (v6+)
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

    What is behind the protocol fills in ``coordinators`` in all versions; see protocol.shapes.
    """

    error_code: int = 0  # v0–3
    error_message: str | None = ""  # v1–3
    node_id: int = 0  # v0–3
    host: str = ""  # v0–3
    port: int = 0  # v0–3
    throttle_time_ms: int = 0  # v1+
    coordinators: tuple[Coordinator, ...] = ()  # v4+
