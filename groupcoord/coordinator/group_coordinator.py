"""GroupCoordinator: passes each request, expired timer and completed append to its group, and returns
effects (see ``core/effects.py``).

Source: ``GroupCoordinatorService``. It has no I/O and no clock: the same requests at the same times with the same
random ids give the same responses and records.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator import group_admin
from groupcoord.coordinator.classic.heartbeat import heartbeat
from groupcoord.coordinator.classic.join import join_group
from groupcoord.coordinator.classic.leave import leave_group
from groupcoord.coordinator.classic.sync import sync_group
from groupcoord.coordinator.consumer.describe import consumer_group_describe
from groupcoord.coordinator.consumer.heartbeat import consumer_group_heartbeat
from groupcoord.coordinator.find_coordinator import CoordinatorOf, find_coordinator, this_broker
from groupcoord.coordinator.group import ConsumerGroupConfig, GroupContext, GroupTable
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, RuntimeShard
from groupcoord.coordinator.offsets import removal
from groupcoord.coordinator.offsets.commit import offset_commit
from groupcoord.coordinator.offsets.fetch import offset_fetch
from groupcoord.coordinator.offsets.txn_offset_commit import txn_offset_commit
from groupcoord.coordinator.runtime.append_queue import AppendSettings
from groupcoord.coordinator.runtime.coordinator_placement import Address, BrokersView, CoordinatorRouting
from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.shard import ShardState, ShardTimers
from groupcoord.coordinator.runtime.undo import UndoRecorder
from groupcoord.coordinator.topics_view import SubscribedTopics, TopicsView
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Effect
from groupcoord.core.java_hash_order import partition_for
from groupcoord.core.timers import Timers
from groupcoord.core.transaction_verification_types import (
    VerifyTransaction,
)
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.find_coordinator import GROUP, TRANSACTION

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic of groups and offsets; each partition has a shard."""

DEFAULT_MAX_BATCH_BYTES = 1_048_588
"""Kafka's default of ``max.message.bytes``."""

Handler = Callable[[Sequence[RuntimeShard], HandlerContext, Call, Any], None]
GroupHandler = Callable[[RuntimeShard, HandlerContext, Call, Any], None]


class GroupCoordinator:
    """The group coordinators of all brokers. ``new_uuid`` returns the random part of member ids; ``topics`` is the metadata.

    With several ``brokers`` each coordinates the groups whose partition of ``__consumer_offsets`` it leads.
    ``max_batch_bytes`` returns the largest batch size of a partition, ``config_of`` the configs of a consumer group,
    ``group_version`` the level of the feature.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        new_uuid: Callable[[], str],
        topics: TopicsView,
        now_ms: int,
        config_of: Callable[[str], ConsumerGroupConfig],
        group_version: Callable[[], int],
        max_batch_bytes: Callable[[int], int] = lambda _: DEFAULT_MAX_BATCH_BYTES,
        brokers: BrokersView | None = None,
    ) -> None:
        self.config = config
        self.timers = Timers()
        self.verify_transaction: VerifyTransaction
        """Asked before offsets are stored in a transaction; set by the node. It need not ask anybody about a partition whose
        log has an open transaction of that producer id and epoch: that is verified already."""
        self._topics = topics

        subscribed = SubscribedTopics(topics)

        def new_machine(partition: int, timers: ShardTimers, undo: UndoRecorder) -> GroupCoordinatorShard:
            groups = GroupTable(undo)
            context = GroupContext(self.config, timers, new_uuid, undo, subscribed, config_of, group_version, groups)
            return GroupCoordinatorShard(partition, context)

        settings = AppendSettings(
            config.offsets_commit_timeout_ms, config.group_coordinator_append_linger_ms, max_batch_bytes
        )
        self.transaction_coordinator_of: CoordinatorOf
        """The broker that coordinates a transactional id; set by the node."""
        self.runtime = CoordinatorRuntime(
            OFFSETS_TOPIC, config.offsets_topic_num_partitions, self.timers, new_machine, settings
        )
        self.shards = self.runtime.shards
        self._deleted = self.runtime.deleted
        self._routing = None if brokers is None else CoordinatorRouting(self.runtime, brokers)
        for shard in self.shards:
            removal.schedule_expiration(shard, self.timers, config.offsets_retention_check_interval_ms, now_ms)
        self._group_handlers: dict[int, GroupHandler] = {
            ApiKey.HEARTBEAT: heartbeat,
            ApiKey.JOIN_GROUP: join_group,
            ApiKey.SYNC_GROUP: sync_group,
            ApiKey.LEAVE_GROUP: leave_group,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat,
            ApiKey.OFFSET_COMMIT: partial(offset_commit, topics=topics),
            ApiKey.TXN_OFFSET_COMMIT: partial(txn_offset_commit, topics=topics, verify=lambda: self.verify_transaction),
            ApiKey.OFFSET_DELETE: partial(removal.offset_delete, topics=topics),
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
            ApiKey.CONSUMER_GROUP_DESCRIBE: lambda shards, ctx, call, request: consumer_group_describe(
                self.config, group_version(), _shard_of(shards), ctx, call, request
            ),
            ApiKey.LIST_GROUPS: group_admin.list_groups,
            ApiKey.FIND_COORDINATOR: lambda _, ctx, call, request: find_coordinator(
                {GROUP: self._coordinator_of, TRANSACTION: self.transaction_coordinator_of}, ctx, call, request
            ),
        }

    @property
    def apis(self) -> Iterable[int]:
        """The API keys that ``handle`` answers."""
        return (*self._group_handlers, *self._handlers)

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """Handle ``request`` and return the effects. A JoinGroup or SyncGroup may be answered by a later call or timer.

        Its records are appended by ``runtime.flush``, unless ``group.coordinator.append.linger.ms`` is set.
        """
        if self._deleted:
            self.runtime.topic_created(self._topics.partition_count(OFFSETS_TOPIC) or 0)
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

    def topics_deleted(self, ctx: HandlerContext, topics: Mapping[str, UUID]) -> None:
        """Topics, with their ids by name, were deleted: remove the offsets committed for them and, with
        ``__consumer_offsets``, all groups."""
        if OFFSETS_TOPIC in topics:
            self.runtime.topic_deleted(ctx)
        for shard in self.shards:
            shard.run(ctx, lambda machine: removal.topics_deleted(machine, topics))

    def shard_of(self, group_id: str) -> RuntimeShard:
        """The shard that ``group_id`` belongs to, by the hash of its name."""
        return self.runtime.shard_of(group_id)

    def _coordinator_of(self, group_id: str, listener: int) -> Address | None:
        shard = self.shard_of(group_id)
        if self._routing is not None:
            return self._routing.coordinator_of(shard.partition, listener)
        # A single broker coordinates every group whose log it has, even while it loads that.
        lost = shard.state not in (ShardState.ACTIVE, ShardState.LOADING)
        return None if lost else this_broker(self.config, listener)


def _shard_of(shards: Sequence[RuntimeShard]) -> Callable[[str], RuntimeShard]:
    return lambda group_id: shards[partition_for(group_id, len(shards))]
