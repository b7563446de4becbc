"""Fetch: read from partitions, and wait for records if there are too few.

Source: ``KafkaApis.handleFetchRequest``, ``ReplicaManager.fetchMessages`` and ``Partition.fetchRecords``.
"""

from typing import TYPE_CHECKING, NamedTuple

from groupcoord.broker.fetch_purgatory import ParkedFetch, Watched
from groupcoord.broker.fetch_sessions import Answers, FetchContext, Fetched, Wanted
from groupcoord.broker.partition_log import LEADER_EPOCH, UNDEFINED_EPOCH, PartitionLog, Read
from groupcoord.core.effects import Call
from groupcoord.core.turn import Turn
from groupcoord.protocol.batches import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

if TYPE_CHECKING:
    from groupcoord.broker.broker import Broker

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_FUTURE_REPLICA = -3  # a broker that copies a partition to another of its own disks
_NO_DIVERGENCE = EpochEndOffset()


def handle_fetch(broker: "Broker", turn: Turn, call: Call, request: FetchRequest) -> None:
    """Answer now if there is enough to read, or something to complain about, or no wish to wait; else when there is."""
    uses_topic_ids = call.version >= 13
    wanted: Wanted = {}
    for topic in request.topics:
        name: str | None = topic.topic
        if uses_topic_ids:
            # Deviation: a topic without an id is an unknown one; when another follows it, Kafka stumbles and answers
            # UNKNOWN_SERVER_ERROR to the whole Fetch.
            name = None if topic.topic_id is None else broker.topics.topic_name(topic.topic_id)
        for partition in topic.partitions:
            wanted[Fetched(topic.topic_id, name, partition.partition)] = partition
    forgotten = [
        Fetched(topic.topic_id, topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]
    context = broker.fetch_sessions.open(request, wanted, forgotten, turn.now_ms, uses_topic_ids=uses_topic_ids)
    _Fetch(broker, call, request, context).start(turn)


class _PartitionRead(NamedTuple):
    """What became of one partition: an error, an epoch that diverges, or a read of ``log``."""

    fetched: Fetched
    error: ErrorCode = ErrorCode.NONE
    log: PartitionLog | None = None
    read: Read | None = None
    diverging: EpochEndOffset = _NO_DIVERGENCE

    @property
    def length(self) -> int:
        return self.read.length if self.read else 0


class _Fetch:
    """One fetch, from request to response."""

    __slots__ = ("_broker", "_call", "_context", "_known", "_request", "_unknown")

    def __init__(self, broker: "Broker", call: Call, request: FetchRequest, context: FetchContext) -> None:
        self._broker = broker
        self._call = call
        self._context = context
        self._request = request
        self._known: Wanted = {}
        self._unknown: Answers = {}
        for fetched, partition in context.wanted(broker.topics.topic_name).items():
            if fetched.topic is None:
                self._unknown[fetched] = _unknown_partition(fetched.partition, ErrorCode.UNKNOWN_TOPIC_ID)
            elif broker.log(fetched.topic, fetched.partition) is None:
                self._unknown[fetched] = _unknown_partition(fetched.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                self._known[fetched] = partition

    @property
    def _replica_id(self) -> int:
        """The broker that fetches; negative for a consumer. From v15 on it is in a tag (KIP-903)."""
        request = self._request
        return request.replica_id if request.replica_id != -1 else request.replica_state.replica_id

    @property
    def _max_bytes(self) -> int:
        return min(self._request.max_bytes, self._broker.config.fetch_max_bytes)

    # --- now or later

    def start(self, turn: Turn) -> None:
        """Answer, or wait in the purgatory."""
        if not self._known:
            self._respond(turn, [])
            return
        if self._request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            turn.reply(self._call, _refused(self._call, self._request, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        results = self._read_all()
        min_bytes = min(self._request.min_bytes, self._max_bytes)
        # Topics that do not exist do not hurry anybody: they are reported when the rest is answered, as Kafka does.
        if (
            self._request.max_wait_ms <= 0
            or sum(result.length for result in results) >= min_bytes
            or any(result.error or result.diverging is not _NO_DIVERGENCE for result in results)
        ):
            self._respond(turn, results)
            return
        watched = [
            Watched(result.log, result.read.start, self._known[result.fetched].partition_max_bytes)
            for result in results
            if result.log is not None and result.read is not None
        ]
        parked = ParkedFetch(self._call, tuple(watched), min_bytes, self._answer)
        if parked.satisfied():
            self._respond(turn, results)
        else:
            self._broker.fetch_purgatory.park(parked, turn.now_ms + self._request.max_wait_ms)

    def _answer(self, turn: Turn) -> None:
        """The waiting is over: read what there is."""
        self._respond(turn, self._read_all())

    # --- reading

    def _read_all(self) -> list[_PartitionRead]:
        """Read from each partition what the limits leave; the first batch of all comes whole."""
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
        self, fetched: Fetched, partition: FetchPartition, max_bytes: int, *, at_least_one: bool
    ) -> _PartitionRead:
        topic = self._broker.topics.get(fetched.topic or "")
        if topic is None:  # gone while the fetch waited
            return _PartitionRead(fetched, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if fetched.topic_id not in (None, topic.topic_id):  # a session that knew an older topic of this name
            return _PartitionRead(fetched, ErrorCode.INCONSISTENT_TOPIC_ID)
        log = topic.partitions[fetched.partition]
        error = self._check_reader(partition)
        if error:
            return _PartitionRead(fetched, error)
        try:
            diverging = _check_divergence(log, partition)
            if diverging is not None:
                return _PartitionRead(fetched, log=log, diverging=diverging)
            read = log.read(partition.fetch_offset, max_bytes, at_least_one=at_least_one)
        except BatchError as problem:
            return _PartitionRead(fetched, problem.error)
        return _PartitionRead(fetched, log=log, read=read)

    def _check_reader(self, partition: FetchPartition) -> ErrorCode:
        """Is the reader's idea of the leader right, and is it somebody who may read? No broker is a replica here."""
        if partition.current_leader_epoch > LEADER_EPOCH:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if self._replica_id < 0:
            return ErrorCode.NONE
        # Kafka tells a stranger with a leader epoch to try again later, and one without to look elsewhere.
        if partition.current_leader_epoch >= 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    # --- responding

    def _respond(self, turn: Turn, results: list[_PartitionRead]) -> None:
        answers = {result.fetched: self._partition_data(result) for result in results} | self._unknown
        error, session_id, selected = self._context.conclude(answers, turn.now_ms)
        # A topic is named again whenever another one stands between its partitions: their order is kept.
        groups: list[tuple[Fetched, list[PartitionData]]] = []
        for fetched, data in selected.items():
            if groups and groups[-1][0][:2] == fetched[:2]:
                groups[-1][1].append(data)
            else:
                groups.append((fetched, [data]))
        topics = [
            FetchableTopicResponse(topic=fetched.topic or "", topic_id=fetched.topic_id, partitions=tuple(partitions))
            for fetched, partitions in groups
        ]
        turn.reply(
            self._call,
            FetchResponse(
                error_code=error,
                session_id=session_id,
                responses=tuple(topics),
            ),
        )

    def _partition_data(self, result: _PartitionRead) -> PartitionData:
        if result.log is None:
            # From v16 on, who is told to look elsewhere is told where (KIP-951); a broker knows the address.
            points = self._call.version >= 16 and result.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
            leader = LeaderIdAndEpoch(leader_id=self._broker.config.node_id, leader_epoch=LEADER_EPOCH)
            return PartitionData(
                partition_index=result.fetched.partition,
                error_code=result.error,
                high_watermark=-1,
                aborted_transactions=None,
                current_leader=leader if points else LeaderIdAndEpoch(),
                records=b"",
            )
        committed = self._request.isolation_level == READ_COMMITTED and self._replica_id != _FUTURE_REPLICA
        read = result.read
        return PartitionData(
            partition_index=result.fetched.partition,
            high_watermark=result.log.high_watermark,
            last_stable_offset=result.log.last_stable_offset,
            log_start_offset=result.log.log_start_offset,
            diverging_epoch=result.diverging,
            aborted_transactions=() if committed and read is not None and not read.cut_short else None,
            records=b"" if read is None else read.data(),
        )


def _check_divergence(log: PartitionLog, partition: FetchPartition) -> EpochEndOffset | None:
    """Where the reader's history and the log's part (KIP-595), or None. Raises BatchError(OFFSET_OUT_OF_RANGE)."""
    if partition.last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.end_of_epoch(partition.last_fetched_epoch)
    if epoch == UNDEFINED_EPOCH or partition.fetch_offset < log.log_start_offset:
        reason = f"offset {partition.fetch_offset} of epoch {partition.last_fetched_epoch} is not in {log.name}"
        raise BatchError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
    if end_offset < partition.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _unknown_partition(partition: int, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition, error_code=error, high_watermark=-1, aborted_transactions=(), records=b""
    )


def _refused(call: Call, request: FetchRequest, error: ErrorCode) -> FetchResponse:
    """The whole request is refused; before v13 every partition says so too."""
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
