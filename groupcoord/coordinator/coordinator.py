"""The group coordinator: one call, one timer or one finished append in; effects out.

Source: ``GroupCoordinatorService``. It does no I/O and reads no clock: the same calls at the same times with the same ids
give the same effects.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any

from groupcoord.coordinator import group_admin, offset_delete, retention
from groupcoord.coordinator.classic import expiry
from groupcoord.coordinator.classic.heartbeat import heartbeat
from groupcoord.coordinator.classic.join import join_group
from groupcoord.coordinator.classic.leave import leave_group
from groupcoord.coordinator.classic.sync import sync_group
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.loading import Loading
from groupcoord.coordinator.offset_commit import offset_commit
from groupcoord.coordinator.offset_fetch import offset_fetch
from groupcoord.coordinator.routing import Address, BrokersView, CoordinatorRouting, find_coordinator, this_broker
from groupcoord.coordinator.shard import Shard
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.coordinator.unloading import unload
from groupcoord.core.effects import Append, Call, Effect
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.java import partition_for
from groupcoord.core.timers import Timers
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode

OFFSETS_TOPIC = "__consumer_offsets"
"""Where groups and offsets are stored: as many partitions as there are shards."""

Handler = Callable[[Sequence[Shard], HandlerContext, Call, Any], None]
GroupHandler = Callable[[Shard, HandlerContext, Call, Any], None]


class GroupCoordinator:
    """Coordinates every group. ``new_uuid`` gives the random part of member ids, ``topics`` is what exists to commit for.

    With several ``brokers`` each coordinates those groups whose partition of ``__consumer_offsets`` it leads.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        *,
        new_uuid: Callable[[], str],
        topics: TopicsView,
        now_ms: int,
        brokers: BrokersView | None = None,
    ) -> None:
        self.config = config
        self.timers = Timers()
        self._topics = topics
        next_append_id = count(1).__next__

        def new_shard(partition: int) -> Shard:
            return Shard(
                partition,
                config,
                self.timers,
                new_uuid,
                next_append_id,
                session_over=expiry.session_over,
                pending_over=expiry.pending_over,
            )

        self.shards = tuple(map(new_shard, range(config.offsets_topic_num_partitions)))
        self._routing = None if brokers is None else CoordinatorRouting(self.shards, brokers, new_shard)
        for shard in self.shards:
            retention.schedule(shard, now_ms)
        self._group_handlers: dict[int, GroupHandler] = {
            ApiKey.HEARTBEAT: heartbeat,
            ApiKey.JOIN_GROUP: join_group,
            ApiKey.SYNC_GROUP: sync_group,
            ApiKey.LEAVE_GROUP: leave_group,
            ApiKey.OFFSET_COMMIT: partial(offset_commit, topics=topics),
            ApiKey.OFFSET_DELETE: partial(offset_delete.offset_delete, topics=topics),
        }
        self._handlers: dict[int, Handler] = {
            ApiKey.OFFSET_FETCH: lambda shards, ctx, call, request: offset_fetch(
                _shard_of(shards), ctx, call, request, topics=topics
            ),
            ApiKey.DESCRIBE_GROUPS: lambda shards, ctx, call, request: group_admin.describe_groups(
                _shard_of(shards), ctx, call, request
            ),
            ApiKey.DELETE_GROUPS: lambda shards, ctx, call, request: group_admin.delete_groups(
                _shard_of(shards), ctx, call, request
            ),
            ApiKey.LIST_GROUPS: group_admin.list_groups,
            ApiKey.FIND_COORDINATOR: lambda _, ctx, call, request: find_coordinator(
                self.config, self._coordinator_of, ctx, call, request
            ),
        }

    @property
    def apis(self) -> Iterable[int]:
        """The API keys that ``handle`` answers."""
        return (*self._group_handlers, *self._handlers)

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """What follows from ``request``. A JoinGroup or SyncGroup may be answered by a later call or timer."""
        ctx = HandlerContext(now_ms, call)
        key = call.api.key
        of_group = self._group_handlers.get(key)
        shards = self.shards if self._routing is None else self._routing.seen_by(call.broker)
        if of_group is not None:
            of_group(shards[partition_for(request.group_id, len(shards))], ctx, call, request)
        else:
            self._handlers[key](shards, ctx, call, request)
        return ctx.effects

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire every timer that is due at ``now_ms``, in order."""
        return self.timers.fire_due(now_ms)

    def next_deadline(self) -> int | None:
        """When the next timer is due (ms), or None."""
        return self.timers.next_deadline()

    def appended(self, append: Append, now_ms: int) -> list[Effect]:
        """The records of ``append`` are stored: what waited for that happens now."""
        return self.shards[append.partition].appended(append.append_id, now_ms)

    def append_failed(self, append: Append, error: ErrorCode, now_ms: int) -> list[Effect]:
        """The records of ``append`` could not be stored because of ``error``."""
        return self.shards[append.partition].append_failed(append.append_id, error, now_ms)

    def topics_deleted(self, ctx: HandlerContext, names: Iterable[str]) -> None:
        """Topics are gone, and the offsets committed for them go too."""
        gone = frozenset(names)
        for shard in self.shards:
            offset_delete.topics_deleted(shard, ctx, gone)

    def unload(self, ctx: HandlerContext) -> None:
        """``__consumer_offsets`` is gone, and all groups with it; a shard comes back when its partition is there again."""
        for shard in self.shards:
            why = f"there is no partition {shard.partition} of __consumer_offsets"
            unload(shard, ctx, partial(self._has_log, shard), why)

    def resign(self, partition: int, ctx: HandlerContext) -> None:
        """Another broker coordinates the groups of ``partition`` from now on, until ``load`` takes them back."""
        why = f"another broker has partition {partition} of __consumer_offsets"
        unload(self.shards[partition], ctx, lambda: False, why)

    def load(self, partition: int, ctx: HandlerContext) -> Loading:
        """Read the groups of ``partition`` from its log; whoever reads it gives what it finds to what is returned."""
        return Loading(self.shards[partition], ctx)

    def _has_log(self, shard: Shard) -> bool:
        return (self._topics.partition_count(OFFSETS_TOPIC) or 0) > shard.partition

    def shard_of(self, group_id: str) -> Shard:
        """The shard that ``group_id`` belongs to, by the hash of its name."""
        return self.shards[partition_for(group_id, len(self.shards))]

    def _coordinator_of(self, group_id: str) -> Address | None:
        shard = self.shard_of(group_id)
        if self._routing is None:
            return this_broker(self.config, shard)
        return self._routing.coordinator_of(shard.partition)


def _shard_of(shards: Sequence[Shard]) -> Callable[[str], Shard]:
    return lambda group_id: shards[partition_for(group_id, len(shards))]
