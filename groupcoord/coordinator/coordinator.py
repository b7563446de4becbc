"""The group coordinator: one call, one timer or one finished append in; effects out.

Source: ``GroupCoordinatorService``. It does no I/O and reads no clock: the same calls at the same times with the same ids
give the same effects.
"""

from collections.abc import Callable, Iterable
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
from groupcoord.coordinator.find_coordinator import find_coordinator
from groupcoord.coordinator.offset_commit import offset_commit
from groupcoord.coordinator.offset_fetch import offset_fetch
from groupcoord.coordinator.shard import Shard
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.effects import Append, Call, Effect
from groupcoord.core.java import partition_for
from groupcoord.core.timers import Timers
from groupcoord.core.turn import Turn
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode

Handler = Callable[[Turn, Call, Any], None]
GroupHandler = Callable[[Shard, Turn, Call, Any], None]


class GroupCoordinator:
    """Coordinates every group. ``new_uuid`` gives the random part of member ids, ``topics`` is what exists to commit for."""

    def __init__(
        self, config: CoordinatorConfig, *, new_uuid: Callable[[], str], topics: TopicsView, now_ms: int
    ) -> None:
        self.config = config
        self.timers = Timers()
        next_append_id = count(1).__next__
        self.shards = tuple(
            Shard(
                partition,
                config,
                self.timers,
                new_uuid,
                next_append_id,
                session_over=expiry.session_over,
                pending_over=expiry.pending_over,
            )
            for partition in range(config.offsets_topic_num_partitions)
        )
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
            ApiKey.OFFSET_FETCH: partial(offset_fetch, self.shard_of, topics=topics),
            ApiKey.DESCRIBE_GROUPS: partial(group_admin.describe_groups, self.shard_of),
            ApiKey.DELETE_GROUPS: partial(group_admin.delete_groups, self.shard_of),
            ApiKey.LIST_GROUPS: partial(group_admin.list_groups, self.shards),
            ApiKey.FIND_COORDINATOR: lambda turn, call, request: find_coordinator(self.config, turn, call, request),
        }

    @property
    def apis(self) -> Iterable[int]:
        """The API keys that ``handle`` answers."""
        return (*self._group_handlers, *self._handlers)

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """What follows from ``request``. A JoinGroup or SyncGroup may be answered by a later call or timer."""
        turn = Turn(now_ms, call)
        key = call.api.key
        if key in self._group_handlers:
            self._group_handlers[key](self.shard_of(request.group_id), turn, call, request)
        else:
            self._handlers[key](turn, call, request)
        return turn.effects

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

    def topics_deleted(self, turn: Turn, names: Iterable[str]) -> None:
        """Topics are gone, and the offsets committed for them go too."""
        gone = frozenset(names)
        for shard in self.shards:
            offset_delete.topics_deleted(shard, turn, gone)

    def shard_of(self, group_id: str) -> Shard:
        """The shard that ``group_id`` belongs to, by the hash of its name."""
        return self.shards[partition_for(group_id, len(self.shards))]
