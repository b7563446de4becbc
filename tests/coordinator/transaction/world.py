"""A transaction coordinator for unit tests: with a manual clock, logs whose appends can be held, and transaction markers that
can fail. Requests and responses are encoded and parsed in their versions."""

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.runtime.coordinator_placement import BrokersView
from groupcoord.coordinator.transaction.metadata import TransactionData, TransactionMetadata
from groupcoord.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from groupcoord.coordinator.transaction.transaction_coordinator_shard import TransactionShard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Append, Call, Effect, EmitEvent, Reply
from groupcoord.core.events import AdminAction, Event
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionMarker
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.apis.add_partitions_to_txn import (
    BY_TRANSACTION_FROM,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_request, encode_response, parse_request, parse_response

E = TypeVar("E", bound=Event)
P0, P1 = ("t", 0), ("t", 1)


class World:
    """See the module. ``topics`` have so many partitions."""

    def __init__(self, *, brokers: BrokersView | None = None, **config: int) -> None:
        self.now_ms = 1_000
        self.topics = {"t": 3, "__transaction_state": 4}
        self.markers: list[tuple[TransactionMarker, TopicPartition]] = []
        self.marker_errors: dict[TopicPartition, ErrorCode] = {}
        self.untold: list[Callable[[HandlerContext, ErrorCode], None]] | None = None
        """Who waits for markers to be written; None: they are written at once."""
        self.no_producer_ids: ErrorCode | None = None
        self.transaction_version = 2
        self.held: list[Append] | None = None
        """The appends that wait; None: they are stored at once."""
        self.log: list[tuple[int, bytes, bytes | None]] = []
        self.events: list[Event] = []
        self._ids, self._calls = count(1), count(1)
        self._replies: dict[int, Any] = {}
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self.coordinator = TransactionCoordinator(
            BrokerConfig.of({"transaction.state.log.num.partitions": 4, **settings}),
            new_producer_id=self._new_id,
            leader_epoch=lambda _: 7,
            write_marker=self._write_marker,
            offsets_partition=lambda _: ("__consumer_offsets", 5),
            partition_count=self.topics.get,
            internal_topics=frozenset({"__transaction_state"}),
            max_batch_bytes=lambda _: 10_000,
            now_ms=0,
            brokers=brokers,
            transaction_version=lambda: self.transaction_version,
        )

    def _new_id(self, _: int) -> int:
        if self.no_producer_ids is not None:
            raise ApiError(self.no_producer_ids)
        return next(self._ids)

    def _write_marker(
        self,
        _coordinator: int,
        ctx: HandlerContext,
        marker: TransactionMarker,
        partition: TopicPartition,
        told: Callable[[HandlerContext, ErrorCode], None],
    ) -> None:
        self.markers.append((marker, partition))
        if self.untold is not None:
            self.untold.append(told)
            return
        told(ctx, self.marker_errors.get(partition, ErrorCode.NONE))

    # --- what happens

    def ask(self, request: Any, version: int, broker: int = 0) -> Any:
        """The answer as a client of that version reads it; None while there is none."""
        api, number = API_BY_REQUEST[type(request)], next(self._calls)
        read = parse_request(encode_request(api, version, number, "p", request)[4:]).message
        self.last_call = Call(number, number, api, version, "p", "/1.1.1.1", broker)
        self.carry_out(self.coordinator.handle(self.last_call, read, self.now_ms))
        return self.answer(self.last_call)

    def answer(self, call: Call) -> Any:
        """What ``call`` was answered, if it was."""
        response = self._replies.get(call.connection_id)
        if response is None:
            return None
        frame = encode_response(call.api, call.version, call.correlation_id, response)
        return parse_response(call.api, call.version, frame[4:])[1]

    def carry_out(self, effects: list[Effect]) -> None:
        """Store what is to be stored, keep the answers, and write the events down."""
        for effect in effects:
            if isinstance(effect, Append):
                if self.held is None:
                    self.store(effect)
                else:
                    self.held.append(effect)
            elif isinstance(effect, Reply):
                assert effect.call.connection_id not in self._replies
                self._replies[effect.call.connection_id] = effect.response
            elif isinstance(effect, EmitEvent):
                self.events.append(effect.event)
                assert effect.event.text()

    def store(self, append: Append) -> None:
        """The append is in the log."""
        for record in append.records:
            self.log.append((append.partition, record.encoded.key, record.encoded.value))
        self.carry_out(self.coordinator.runtime.appended(append, self.now_ms))

    def fail(self, append: Append, error: ErrorCode) -> None:
        """The append cannot be stored."""
        self.carry_out(self.coordinator.runtime.append_failed(append, error, self.now_ms))

    def wait(self, duration_ms: int) -> None:
        """Let the time go on, from one timer to the next."""
        end = self.now_ms + duration_ms
        while (due := self.coordinator.timers.next_deadline()) is not None and due <= end:
            self.now_ms = max(self.now_ms, due)
            self.carry_out(self.coordinator.expire(self.now_ms))
        self.now_ms = end

    def told(self, kind: type[E]) -> list[E]:
        """The events of that kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def shard(self, transactional_id: str = "x") -> TransactionShard:
        """The shard of a transactional id."""
        return self.coordinator.runtime.shard_of(transactional_id)

    def metadata(self, transactional_id: str = "x") -> TransactionMetadata:
        """What is known of it."""
        return self.shard(transactional_id).machine.transactions[transactional_id]

    def data(self, transactional_id: str = "x") -> TransactionData:
        """What is stored of it."""
        return self.metadata(transactional_id).data

    def reload(self, transactional_id: str = "x") -> None:
        """The partition of a transactional id moves away and comes back: its log is read."""
        ctx = HandlerContext(self.now_ms, AdminAction("a test"))
        partition = self.shard(transactional_id).partition
        self.coordinator.runtime.resign(partition, ctx)
        loader = self.coordinator.runtime.load(partition, ctx)
        loader.apply_run(b"", 0)
        mine = [entry for entry in self.log if entry[0] == partition]
        loader.apply([(offset, key, value) for offset, (_, key, value) in enumerate(mine)])
        loader.finish(ctx, len(mine))
        self.carry_out(ctx.effects)

    # --- what producers say

    def init(self, version: int = 5, *, transactional_id: str = "x", timeout_ms: int = 60_000, **said: int) -> Any:
        """InitProducerId."""
        return self.ask(
            m.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **said),
            version,
        )

    def add(self, *partitions: TopicPartition, version: int = 4, verify: bool = False, **said: Any) -> list[ErrorCode]:
        """AddPartitionsToTxn as the producer that is there: the errors of the partitions, none while there is no answer."""
        answer = self.ask(add_request(version, self.transaction(*partitions, verify=verify, **said)), version)
        if answer is None:
            return []
        if version < BY_TRANSACTION_FROM:
            topics = answer.results_by_topic_v3_and_below
        else:
            topics = answer.results_by_transaction[0].topic_results
        return [ErrorCode(each.partition_error_code) for topic in topics for each in topic.results_by_partition]

    def transaction(
        self, *partitions: TopicPartition, verify: bool = False, transactional_id: str = "x", **said: Any
    ) -> AddPartitionsToTxnTransaction:
        """Partitions to add, by the producer that is there unless said."""
        producer = self._producer(transactional_id, **said)
        topics = tuple(
            AddPartitionsToTxnTopic(
                name=name, partitions=tuple(number for topic, number in partitions if topic == name)
            )
            for name in dict.fromkeys(topic for topic, _ in partitions)
        )
        return AddPartitionsToTxnTransaction(
            transactional_id=transactional_id, topics=topics, verify_only=verify, **producer
        )

    def end(self, version: int = 5, *, commit: bool = True, transactional_id: str = "x", **said: Any) -> Any:
        """EndTxn as the producer that is there."""
        producer = self._producer(transactional_id, **said)
        request = m.EndTxnRequest(transactional_id=transactional_id, committed=commit, **producer)
        return self.ask(request, version)

    def _producer(self, transactional_id: str, **said: int) -> dict[str, int]:
        known = self.shard(transactional_id).machine.transactions.get(transactional_id)
        now = (-1, -1) if known is None else (known.data.producer_id, known.data.producer_epoch)
        return {"producer_id": now[0], "producer_epoch": now[1], **said}


def add_request(version: int, *transactions: AddPartitionsToTxnTransaction) -> m.AddPartitionsToTxnRequest:
    """AddPartitionsToTxn; before v4 of one transaction."""
    if version >= BY_TRANSACTION_FROM:
        return m.AddPartitionsToTxnRequest(transactions=transactions)
    (only,) = transactions
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=only.transactional_id,
        v3_and_below_producer_id=only.producer_id,
        v3_and_below_producer_epoch=only.producer_epoch,
        v3_and_below_topics=only.topics,
    )
