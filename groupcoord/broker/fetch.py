"""Fetch: reads batches from partitions, and waits in the purgatory until there are ``min_bytes``.

Source: ``KafkaApis.handleFetchRequest``, ``ReplicaManager.fetchMessages`` and ``Partition.fetchRecords``.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from groupcoord.broker.broker import Broker
from groupcoord.broker.fetch_purgatory import DelayedFetch, WatchedPartition
from groupcoord.broker.fetch_sessions import (
    Answers,
    FetchContext,
    NoSuchShardError,
    SessionOwner,
    TopicIdPartition,
    Wanted,
)
from groupcoord.broker.leader_epoch_cache import UNDEFINED_EPOCH
from groupcoord.broker.partition_log import FetchDataInfo, PartitionLog
from groupcoord.broker.topic_store import Topic
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_FUTURE_REPLICA = -3  # a broker that moves a replica to another of its log directories
_NO_DIVERGENCE = EpochEndOffset()
_NO_LEADER = LeaderIdAndEpoch()
_FROM_FOLLOWERS_SINCE = 11  # KIP-392
_DIVERGENCE_SINCE = 12  # KIP-595
_LEADER_SINCE = 16  # KIP-951
COPIED_BYTES = 65_536
"""Record data up to this size is copied into the response; larger data is referenced in the segment until it is sent."""

_WRONG_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def handle_fetch(broker: Broker, ctx: HandlerContext, call: Call, request: FetchRequest) -> None:
    """Respond at once if there are enough bytes, an error, or no time to wait; else wait."""
    uses_topic_ids = call.version >= 13
    wanted: Wanted = {}
    for topic in request.topics:
        name: str | None = topic.topic
        if uses_topic_ids:
            name = None if topic.topic_id is None else broker.topics.topic_name(topic.topic_id)
        for partition in topic.partitions:
            wanted[TopicIdPartition(topic.topic_id, name, partition.partition)] = partition
    forgotten = [
        TopicIdPartition(topic.topic_id, topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]
    owner = SessionOwner(uses_topic_ids, is_broker=_replica_id(request) >= 0)
    try:
        context = broker.fetch_sessions_of[call.broker].open(request, wanted, forgotten, ctx.now_ms, owner)
    except NoSuchShardError:
        ctx.reply(call, _refused(call, request, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    _Fetch(broker, call, request, context).start(ctx)


def _replica_id(request: FetchRequest) -> int:
    """The broker that fetches; negative for a consumer. From v15 on it is in a tagged field (KIP-903)."""
    return request.replica_id if request.replica_id != -1 else request.replica_state.replica_id


class _UnwritableError(Exception):
    """Kafka throws while it makes or writes this response, and refuses the request with ``error``."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error)
        self.error = error


class _PartitionRead(NamedTuple):
    """The result for one partition: an error, a diverging epoch, or a read of ``log``."""

    fetched: TopicIdPartition
    error: ErrorCode = ErrorCode.NONE
    log: PartitionLog | None = None
    read: FetchDataInfo | None = None
    diverging: EpochEndOffset = _NO_DIVERGENCE
    leader: LeaderIdAndEpoch = _NO_LEADER  # for a client that asked the wrong leader

    @property
    def length(self) -> int:
        return self.read.length if self.read else 0


class _Fetch:
    """One Fetch, from request to response."""

    __slots__ = ("_broker", "_call", "_context", "_known", "_replica_id", "_request", "_unknown")

    def __init__(self, broker: Broker, call: Call, request: FetchRequest, context: FetchContext) -> None:
        self._broker = broker
        self._call = call
        self._context = context
        self._request = request
        self._known: Wanted = {}
        self._unknown: Answers = {}
        self._replica_id = _replica_id(request)
        missing: Answers = {}
        for fetched, partition in context.wanted(broker.topics.topic_name).items():
            if fetched.topic is None:
                self._unknown[fetched] = _unknown_partition(fetched.partition, ErrorCode.UNKNOWN_TOPIC_ID)
            elif broker.log(fetched.topic, fetched.partition) is None:
                # In a consumer's response unknown topic ids come first.
                where = missing if self._replica_id < 0 else self._unknown
                where[fetched] = _unknown_partition(fetched.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                self._known[fetched] = partition
        self._unknown |= missing

    @property
    def _committed_only(self) -> bool:
        """Does it read only committed transactions? Followers read everything, whatever their isolation level."""
        consumer = self._replica_id < 0 and self._replica_id != _FUTURE_REPLICA
        return consumer and self._request.isolation_level == READ_COMMITTED

    @property
    def _max_bytes(self) -> int:
        return min(self._request.max_bytes, self._broker.config.fetch_max_bytes)

    # --- replying now or later

    def start(self, ctx: HandlerContext) -> None:
        """Reply, or wait in the purgatory."""
        if not self._known:
            self._answer_now(ctx, [])
            return
        if self._request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            ctx.reply(self._call, _refused(self._call, self._request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        results = self._read_all()
        if self._replica_id >= 0:
            self._follower_fetched(ctx, results)
        min_bytes = min(self._request.min_bytes, self._max_bytes)
        # As in Kafka, topics that do not exist do not end the wait: their errors are sent with the rest.
        if (
            self._request.max_wait_ms <= 0
            or sum(result.length for result in results) >= min_bytes
            or any(result.error or result.diverging is not _NO_DIVERGENCE for result in results)
        ):
            self._answer_now(ctx, results)
            return
        watched = [
            WatchedPartition(
                result.log, result.read.start, self._known[result.fetched].partition_max_bytes, self._committed_only
            )
            for result in results
            if result.log is not None and result.read is not None
        ]
        delayed = DelayedFetch(self._call, tuple(watched), min_bytes, self._answer, self._fails)
        if delayed.satisfied():
            self._answer_now(ctx, results)
        else:
            self._broker.fetch_purgatory.watch(delayed, ctx.now_ms + self._request.max_wait_ms)

    def _answer_now(self, ctx: HandlerContext, results: list[_PartitionRead]) -> None:
        try:
            self._respond(ctx, results)
        except _UnwritableError as problem:
            ctx.reply(self._call, _refused(self._call, self._request, problem.error))

    def _answer(self, ctx: HandlerContext) -> None:
        """The wait is over: read and reply. Where Kafka throws at this point it never replies."""
        with suppress(_UnwritableError):
            self._respond(ctx, self._read_all())

    # --- reading

    def _read_all(self) -> list[_PartitionRead]:
        """Read from each partition up to the limits; the first batch of the response is complete, whatever its size."""
        results = []
        left, at_least_one = self._max_bytes, True
        for fetched, partition in self._known.items():
            result = self._read(fetched, partition, min(partition.partition_max_bytes, left), at_least_one=at_least_one)
            results.append(result)
            if result.length:
                at_least_one = False
            left = max(0, left - result.length)
        return results

    def _read(
        self, fetched: TopicIdPartition, partition: FetchPartition, max_bytes: int, *, at_least_one: bool
    ) -> _PartitionRead:
        topic = self._broker.topics.get(fetched.topic or "")
        if topic is None:  # deleted while the fetch waited
            return _PartitionRead(fetched, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        error = self._check_leader(topic, fetched, partition)
        if error:
            state = topic.metadata.partitions[fetched.partition]
            leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
            return _PartitionRead(fetched, error, leader=leader)
        log = self._broker.log_here(self._call, topic, fetched.partition)
        follows = self._replica_id >= 0
        try:
            diverging = _check_divergence(log, partition)
            if diverging is not None:
                return _PartitionRead(fetched, log=log, diverging=diverging)
            read = log.read(
                partition.fetch_offset,
                max_bytes,
                at_least_one=at_least_one,
                committed_only=self._committed_only,
                to_end=follows,
            )
        except BatchError as problem:
            return _PartitionRead(fetched, problem.error)
        return _PartitionRead(fetched, log=log, read=read)

    def _follower_fetched(self, ctx: HandlerContext, results: list[_PartitionRead]) -> None:
        """Source: ``Partition.updateFollowerFetchState``."""
        for result in results:
            topic = self._broker.topics.get(result.fetched.topic or "")
            if topic is not None and result.log is not None and result.read is not None:
                offset = self._known[result.fetched].fetch_offset
                self._broker.high_watermarks.fetched(result.log, self._replica_id, offset)
                self._broker.replicated(ctx, topic, result.fetched.partition)

    def _check_leader(self, topic: Topic, fetched: TopicIdPartition, partition: FetchPartition) -> ErrorCode:
        """The error if the client may not read here, else NONE: wrong broker, wrong leader epoch, or a replica that is not
        assigned.

        Consumers may read from followers since KIP-392; followers only from the leader.
        """
        consumer = self._replica_id < 0
        old = self._call.version < _FROM_FOLLOWERS_SINCE and self._replica_id != _FUTURE_REPLICA
        epoch = max(partition.current_leader_epoch, UNDEFINED_EPOCH)  # any negative one
        error = self._broker.check_leader(self._call, topic, fetched.partition, epoch, leader_only=old or not consumer)
        if error is not ErrorCode.NOT_LEADER_OR_FOLLOWER and fetched.topic_id not in (None, topic.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID  # the session knows a deleted topic of this name
        followers = set(topic.metadata.replicas[fetched.partition]) - {topic.metadata.leaders[fetched.partition]}
        if error or consumer or self._replica_id in followers:
            return error
        # A broker that is not a replica gets a retriable error if it sent a leader epoch, and "wrong leader" if not.
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if epoch == UNDEFINED_EPOCH else ErrorCode.UNKNOWN_LEADER_EPOCH

    def _fails(self) -> bool:
        """Would reading fail now? With several brokers the leader can change while a fetch waits."""
        if len(self._broker.cluster) == 1:
            return False
        for fetched, partition in self._known.items():
            topic = self._broker.topics.get(fetched.topic or "")
            if topic is not None and self._check_leader(topic, fetched, partition):
                return True
        return False

    # --- responding

    def _respond(self, ctx: HandlerContext, results: list[_PartitionRead]) -> None:
        """Raises _UnwritableError."""
        copies = sum(result.length for result in results) <= COPIED_BYTES
        answers = {result.fetched: self._partition_data(result, copies=copies) for result in results} | self._unknown
        error, session_id, selected = self._context.conclude(answers, ctx.now_ms)
        # The order of partitions is kept, so that a topic is repeated if another one lies between its partitions.
        groups: list[tuple[TopicIdPartition, list[PartitionData]]] = []
        for fetched, data in selected.items():
            if groups and groups[-1][0][:2] == (None, None):
                raise _UnwritableError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka compares the names of the two
            if self._call.version < _DIVERGENCE_SINCE and data.diverging_epoch != _NO_DIVERGENCE:
                raise _UnwritableError(ErrorCode.UNSUPPORTED_VERSION)  # a newer request has added it to the session
            if groups and groups[-1][0][:2] == fetched[:2]:
                groups[-1][1].append(data)
            else:
                groups.append((fetched, [data]))
        topics = [
            FetchableTopicResponse(topic=fetched.topic or "", topic_id=fetched.topic_id, partitions=tuple(partitions))
            for fetched, partitions in groups
        ]
        ctx.reply(
            self._call,
            FetchResponse(
                error_code=error,
                session_id=session_id,
                responses=tuple(topics),
                node_endpoints=self._endpoints(data for _, parts in groups for data in parts),
            ),
        )

    def _endpoints(self, answers: Iterable[PartitionData]) -> tuple[NodeEndpoint, ...]:
        """The addresses of the current leaders in ``answers`` (KIP-951)."""
        if self._replica_id >= 0:
            return ()
        leaders = {data.current_leader.leader_id for data in answers} - {_NO_LEADER.leader_id}
        return tuple(
            NodeEndpoint(node_id=one.id, host=one.host, port=one.port, rack=one.rack)
            for one in self._broker.cluster.named(self._broker.config, leaders, self._call.listener)
        )

    def _partition_data(self, result: _PartitionRead, *, copies: bool) -> PartitionData:
        if result.log is None:
            # With a "wrong leader" error comes the current leader.
            points = self._call.version >= _LEADER_SINCE and result.error in _WRONG_LEADER
            return PartitionData(
                partition_index=result.fetched.partition,
                error_code=result.error,
                high_watermark=-1,
                aborted_transactions=None,
                current_leader=result.leader if points else _NO_LEADER,
                records=b"",
            )
        read = result.read
        aborted = None
        if read is not None and read.aborted is not None:
            aborted = tuple(
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in read.aborted
            )
        return PartitionData(
            partition_index=result.fetched.partition,
            high_watermark=result.log.high_watermark,
            last_stable_offset=result.log.last_stable_offset,
            log_start_offset=result.log.log_start_offset,
            diverging_epoch=result.diverging,
            aborted_transactions=aborted,
            records=b"" if read is None else read.data() if copies else read.record_slice(),
        )


def _check_divergence(log: PartitionLog, partition: FetchPartition) -> EpochEndOffset | None:
    """The point where the client's log diverges from this one (KIP-595), or None. Raises BatchError(OFFSET_OUT_OF_RANGE)."""
    if partition.last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.end_of_epoch(partition.last_fetched_epoch)
    if epoch == UNDEFINED_EPOCH or partition.fetch_offset < log.log_start_offset:
        reason = f"offset {partition.fetch_offset} of epoch {partition.last_fetched_epoch} is not in {log.name}"
        raise BatchError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
    if epoch < partition.last_fetched_epoch or end_offset < partition.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _unknown_partition(partition: int, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition, error_code=error, high_watermark=-1, aborted_transactions=(), records=b""
    )


def _refused(call: Call, request: FetchRequest, error: ErrorCode) -> FetchResponse:
    """The response that refuses the whole request; before v13 every partition has the error, too."""
    topics = () if call.version >= 13 else request.topics
    return FetchResponse(
        error_code=error,
        session_id=request.session_id,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(_unknown_partition(partition.partition, error) for partition in topic.partitions),
            )
            for topic in topics
        ),
    )
