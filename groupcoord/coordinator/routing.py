"""Which broker coordinates which groups: the leader of their partition of ``__consumer_offsets`` (FindCoordinator).

Each broker sees its own shards and, instead of each shard of another broker, one that refuses every request. Sources:
``CoordinatorRuntime``, of which each broker has one, and ``KafkaApis.handleFindCoordinatorRequest``.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from groupcoord.coordinator.availability import Unavailable
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.shard import Shard
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
NO_NODE = -1


class Address(NamedTuple):
    """A broker as clients are told of it."""

    node_id: int
    host: str
    port: int


CoordinatorOf = Callable[[str], Address | None]
"""The broker that coordinates a group, if there is one."""


class BrokersView(Protocol):
    """Which brokers there are, and which of them have ``__consumer_offsets``, read-only."""

    def ids(self) -> Sequence[int]:
        """The ids of all brokers, the first one's first; they do not change."""

    def offsets_leaders(self) -> tuple[int, ...]:
        """Of each partition of ``__consumer_offsets`` the id of its leader; the same tuple as long as nothing changes."""

    def address(self, broker_id: int) -> Address:
        """Where the broker of that id is."""


class CoordinatorRouting:
    """The shards as each of ``brokers`` sees them; ``new_shard`` makes one that stands for those of others."""

    def __init__(self, shards: Sequence[Shard], brokers: BrokersView, new_shard: Callable[[int], Shard]) -> None:
        self._shards = shards
        self._brokers = brokers
        self._elsewhere = tuple(new_shard(shard.partition) for shard in shards)
        for shard in self._elsewhere:
            why = f"another broker has partition {shard.partition} of __consumer_offsets"
            shard.groups = Unavailable(ErrorCode.NOT_COORDINATOR, why)
        self._leaders: tuple[int, ...] | None = None
        self._seen: list[tuple[Shard, ...]] = []

    def seen_by(self, broker: int) -> tuple[Shard, ...]:
        """All shards, as broker ``broker`` (counted from 0) sees them."""
        leaders = self._brokers.offsets_leaders()
        if leaders is not self._leaders:
            self._leaders = leaders
            self._seen = [self._as_seen_by(broker_id, leaders) for broker_id in self._brokers.ids()]
        return self._seen[broker]

    def _as_seen_by(self, broker_id: int, leaders: tuple[int, ...]) -> tuple[Shard, ...]:
        # A shard whose partition is nowhere refuses by itself.
        return tuple(
            shard if shard.partition >= len(leaders) or leaders[shard.partition] == broker_id else elsewhere
            for shard, elsewhere in zip(self._shards, self._elsewhere, strict=True)
        )

    def coordinator_of(self, partition: int) -> Address | None:
        """The broker that coordinates the groups of ``partition``, if there is one."""
        leaders = self._brokers.offsets_leaders()
        return self._brokers.address(leaders[partition]) if partition < len(leaders) else None


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
            return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node_id, host, port = address
        return Coordinator(key=key, node_id=node_id, host=host, port=port, error_message="")
    code = ErrorCode.INVALID_REQUEST
    # Share groups do not live here; Kafka refuses their keys too, unless they are of its internal form.
    return _no_coordinator(key, code, "" if key_type == SHARE else code.text)


def _no_coordinator(key: str, code: ErrorCode, text: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=code, error_message=text)
