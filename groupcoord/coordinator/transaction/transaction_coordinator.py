"""TransactionCoordinator: the transaction coordinators of all brokers in one object. It passes each request and timer to the
shard of its partition of ``__transaction_state``, and returns the effects (see ``core/effects.py``).

Source: ``TransactionCoordinator``. It has no I/O and no clock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.runtime.append_queue import AppendSettings
from groupcoord.coordinator.runtime.coordinator_placement import Address, BrokersView, CoordinatorRouting
from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.runtime.shard import ShardState, ShardTimers
from groupcoord.coordinator.runtime.undo import UndoRecorder
from groupcoord.coordinator.transaction.add_partitions_to_txn import (
    TopicsOfTransactions,
    add_offsets_to_txn,
    add_partitions_to_txn,
    verify_write,
)
from groupcoord.coordinator.transaction.describe_and_list import describe_transactions, list_transactions
from groupcoord.coordinator.transaction.end_txn import end_txn
from groupcoord.coordinator.transaction.init_producer_id import init_producer_id
from groupcoord.coordinator.transaction.transaction_coordinator_shard import (
    TransactionContext,
    TransactionCoordinatorShard,
    TransactionShard,
    WriteMarker,
)
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Effect
from groupcoord.core.java_hash_order import partition_for
from groupcoord.core.timers import Timers
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionalWrite, Verified
from groupcoord.protocol.apis import ApiKey

TRANSACTION_STATE_TOPIC = "__transaction_state"
"""The topic of transactional ids; each partition has a shard."""

WRITE_TIMEOUT_MS = 60_000
"""The timeout of appends; in Kafka it is the timeout of the transaction, which has the same default."""

Handler = Callable[[Sequence[TransactionShard], HandlerContext, Call, Any], None]


class TransactionCoordinator:
    """The transaction coordinators of all brokers.

    ``new_producer_id`` (of a partition of ``__transaction_state``) raises ApiError if no id is available; ``leader_epoch``
    returns the leader epoch of such a partition, ``offsets_partition`` the partition of ``__consumer_offsets`` of a group,
    ``partition_count`` the number of partitions of a topic, or None. With several ``brokers`` each coordinates the ids whose
    partition of ``__transaction_state`` it leads.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        new_producer_id: Callable[[int], int],
        leader_epoch: Callable[[int], int],
        write_marker: WriteMarker,
        offsets_partition: Callable[[str], TopicPartition],
        partition_count: Callable[[str], int | None],
        internal_topics: frozenset[str],
        max_batch_bytes: Callable[[int], int],
        now_ms: int,
        transaction_version: Callable[[], int],
        brokers: BrokersView | None = None,
    ) -> None:
        self.config = config
        self.timers = Timers()
        self._partition_count = partition_count

        def run(
            partition: int, ctx: HandlerContext, operation: Callable[[TransactionCoordinatorShard], CoordinatorResult]
        ) -> None:
            self.shards[partition].run(ctx, operation)

        context = TransactionContext(
            lambda: self.config, new_producer_id, leader_epoch, write_marker, run, now_ms, transaction_version
        )

        def new_machine(partition: int, timers: ShardTimers, _: UndoRecorder) -> TransactionCoordinatorShard:
            return TransactionCoordinatorShard(partition, timers, context)

        self.runtime = CoordinatorRuntime(
            TRANSACTION_STATE_TOPIC,
            config.transaction_state_log_num_partitions,
            self.timers,
            new_machine,
            AppendSettings(WRITE_TIMEOUT_MS, 0, max_batch_bytes),
        )
        self.shards = self.runtime.shards
        self._routing = None if brokers is None else CoordinatorRouting(self.runtime, brokers)
        topics = TopicsOfTransactions(self._exists, internal_topics)
        self._handlers: Mapping[int, Handler] = {
            ApiKey.INIT_PRODUCER_ID: lambda shards, ctx, call, request: init_producer_id(
                self.config, _shard_of(shards, request.transactional_id), ctx, call, request
            ),
            ApiKey.ADD_PARTITIONS_TO_TXN: lambda shards, ctx, call, request: add_partitions_to_txn(
                partial(_shard_of, shards), topics, ctx, call, request
            ),
            ApiKey.ADD_OFFSETS_TO_TXN: lambda shards, ctx, call, request: add_offsets_to_txn(
                _shard_of(shards, request.transactional_id), offsets_partition(request.group_id), ctx, call, request
            ),
            ApiKey.END_TXN: lambda shards, ctx, call, request: end_txn(
                _shard_of(shards, request.transactional_id), ctx, call, request
            ),
            ApiKey.DESCRIBE_TRANSACTIONS: lambda shards, ctx, call, request: describe_transactions(
                partial(_shard_of, shards), ctx, call, request
            ),
            ApiKey.LIST_TRANSACTIONS: list_transactions,
        }

    @property
    def apis(self) -> Iterable[int]:
        """The API keys that ``handle`` answers; of InitProducerId only requests with a transactional id."""
        return self._handlers

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """Handle ``request`` and return the effects."""
        self._notice_topic()
        ctx = HandlerContext(now_ms, call)
        shards = self.shards if self._routing is None else self._routing.seen_by(call.broker)
        self._handlers[call.api.key](shards, ctx, call, request)
        return ctx.effects

    def verify(
        self,
        ctx: HandlerContext,
        call: Call,
        producer: TransactionalWrite,
        partitions: Sequence[TopicPartition],
        verified: Verified,
    ) -> None:
        """See VerifyTransaction: partition leaders verify transactional writes with the coordinator, on whichever broker."""
        verify_write(self.runtime.shard_of(producer.transactional_id), ctx, call, producer, partitions, verified)

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire every timer that is due at ``now_ms``, in order."""
        return self.timers.fire_due(now_ms)

    def coordinator_of(self, transactional_id: str, this_broker: Address | None, listener: int = 0) -> Address | None:
        """The address of the coordinator of a transactional id for clients of a listener (numbered from 0), or None."""
        self._notice_topic()
        shard = self.runtime.shard_of(transactional_id)
        if self._routing is not None:
            return self._routing.coordinator_of(shard.partition, listener)
        # A single broker coordinates every id whose log it has, even while it loads that.
        lost = shard.state not in (ShardState.ACTIVE, ShardState.LOADING)
        return None if lost else this_broker

    def _notice_topic(self) -> None:
        """Notice that ``__transaction_state`` was created, for the first time or after a deletion."""
        if self.runtime.deleted:
            self.runtime.topic_created(self._partition_count(TRANSACTION_STATE_TOPIC) or 0)

    def _exists(self, partition: TopicPartition) -> bool:
        topic, number = partition
        return 0 <= number < (self._partition_count(topic) or 0)


def _shard_of(shards: Sequence[TransactionShard], transactional_id: str | None) -> TransactionShard:
    return shards[partition_for(transactional_id or "", len(shards))]
