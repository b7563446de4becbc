"""The fetch session cache of a broker (KIP-227). A client lists all its partitions in a full fetch; later requests have only
partitions that were added, changed or removed, and responses only partitions with news.

The cache is bounded and sharded: in a full shard a new session may evict a less valuable one.
Source: ``FetchManager``, ``FetchContext``, ``FetchSessionCache``, ``FetchSessionCacheShard``.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, PartitionData
from groupcoord.protocol.errors import ErrorCode

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_MS = 120_000
"""How long a session cannot be evicted by larger ones, and may be idle (``MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS``)."""

SHARDS = 8
"""The number of shards (``KafkaBroker.NumFetchSessionCacheShards``); new sessions go to them in turn."""

_INT32_MAX = (1 << 31) - 1


class TopicIdPartition(NamedTuple):
    """A partition as a request names it: by topic id from v13 on (``topic`` is None if the id is unknown), by name before."""

    topic_id: uuid.UUID | None
    topic: str | None
    partition: int

    @property
    def key(self) -> tuple[uuid.UUID | str | None, int]:
        """Its identity: an id with a name equals that id without."""
        return self.topic if self.topic_id is None else self.topic_id, self.partition


Wanted = dict[TopicIdPartition, FetchPartition]
Answers = dict[TopicIdPartition, PartitionData]


class CachedPartition:
    """The state of one partition in a session: its last request, and what the last response said."""

    __slots__ = ("fetched", "high_watermark", "log_start_offset", "wanted")

    def __init__(
        self, fetched: TopicIdPartition, wanted: FetchPartition, high_watermark: int, log_start_offset: int
    ) -> None:
        self.fetched = fetched
        self.wanted = wanted
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset

    def take(self, answer: PartitionData) -> bool:
        """Has ``answer`` anything new to send? Remembers what is sent."""
        news = bool(answer.records) or answer.error_code != ErrorCode.NONE or answer.diverging_epoch.epoch >= 0
        if self.high_watermark != answer.high_watermark or self.log_start_offset != answer.log_start_offset:
            news = True
        # After an error the partition is sent with the next response, even if nothing else has changed.
        self.high_watermark = -1 if answer.error_code != ErrorCode.NONE else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return news


class SessionOwner(NamedTuple):
    """The owner of a session: does it send topic ids, and is it a broker? Brokers' sessions are evicted last."""

    uses_topic_ids: bool
    is_broker: bool = False


class FetchSession:
    """One session; ``size`` and ``settled`` are those of its last request, when its place in the eviction order is updated."""

    __slots__ = ("created_ms", "epoch", "last_used_ms", "owner", "partitions", "session_id", "settled", "size")

    def __init__(
        self, session_id: int, partitions: Iterable[CachedPartition], now_ms: int, owner: SessionOwner
    ) -> None:
        self.session_id = session_id
        self.epoch = INITIAL_EPOCH + 1
        self.created_ms = now_ms
        self.owner = owner
        self.partitions = {partition.fetched.key: partition for partition in partitions}
        self.touch(now_ms)

    def __repr__(self) -> str:
        return f"<FetchSession {self.session_id} epoch={self.epoch} partitions={len(self.partitions)}>"

    @property
    def eviction_order(self) -> tuple[bool, int, int]:
        """The session with the least value is evicted first: a consumer's, small, old."""
        return self.owner.is_broker, self.size, self.session_id

    def touch(self, now_ms: int) -> None:
        """Record that the session is used now."""
        self.last_used_ms = now_ms
        self.size = len(self.partitions)
        self.settled = now_ms - self.created_ms > EVICTION_MS

    def update(self, wanted: Wanted, forgotten: Iterable[TopicIdPartition]) -> None:
        """Apply the partitions that a request adds, changes and forgets."""
        for fetched, partition in wanted.items():
            cached = self.partitions.get(fetched.key)
            if cached is None:
                self.partitions[fetched.key] = CachedPartition(fetched, partition, -1, -1)
            else:
                cached.wanted = partition
        for fetched in forgotten:
            self.partitions.pop(fetched.key, None)

    def move_on(self) -> None:
        """Expect the next epoch from the next request."""
        self.epoch = next_epoch(self.epoch)

    def all_wanted(self, topic_name: Callable[[uuid.UUID], str | None]) -> Wanted:
        """All partitions of the session, in its order; an id without a name is looked up again."""
        for cached in self.partitions.values():
            topic_id, topic, partition = cached.fetched
            if topic is None and topic_id is not None:
                cached.fetched = TopicIdPartition(topic_id, topic_name(topic_id), partition)
        return {cached.fetched: cached.wanted for cached in self.partitions.values()}

    def news(self, answers: Answers) -> Answers:
        """Those of ``answers`` that have to be sent. A partition that had records moves to the end of the order, for
        fairness."""
        selected: Answers = {}
        for fetched, answer in answers.items():
            cached = self.partitions.get(fetched.key)
            if cached is None or not cached.take(answer):
                continue
            selected[fetched] = answer
            if answer.records:
                self.partitions[fetched.key] = self.partitions.pop(fetched.key)
        return selected


class NoSuchShardError(LookupError):
    """No shard has session ids of this range. Kafka throws an unexpected exception."""


class FetchSessions:
    """The cache of at most ``slots`` sessions (max.incremental.fetch.session.cache.slots), in ``shards`` equal shards.

    ``new_session_id`` returns positive int32s. Each shard has a range of ids of its own.
    """

    def __init__(self, slots: int, new_session_id: Callable[[], int], shards: int = SHARDS) -> None:
        self._ids_per_shard = _INT32_MAX // shards
        self._shards = tuple(
            _Shard(
                slots // shards, range(number * self._ids_per_shard, (number + 1) * self._ids_per_shard), new_session_id
            )
            for number in range(shards)
        )
        self._next_shard = 0

    def __len__(self) -> int:
        return sum(len(shard.sessions) for shard in self._shards)

    def __getitem__(self, session_id: int) -> FetchSession:
        """The session. Raises KeyError."""
        return self._shard_of(session_id).sessions[session_id]

    def open(
        self,
        request: FetchRequest,
        wanted: Wanted,
        forgotten: Iterable[TopicIdPartition],
        now_ms: int,
        owner: SessionOwner,
    ) -> "FetchContext":
        """The context of ``request``. Closes the session that it ends; the context of a refused request has an error.

        Raises NoSuchShardError.
        """
        session_id, epoch = request.session_id, request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._shard_of(session_id).sessions.pop(session_id, None)
            return FetchContext(self, wanted, owner=owner, wants_session=epoch == INITIAL_EPOCH)
        sessions = self._shard_of(session_id).sessions
        session = sessions.get(session_id)
        if session is None:
            return FetchContext(self, {}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext(self, {}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.owner.uses_topic_ids != owner.uses_topic_ids:
            return FetchContext(self, {}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(wanted, forgotten)
        if not session.partitions:
            del sessions[session_id]
            return FetchContext(self, wanted)
        session.touch(now_ms)
        session.move_on()
        return FetchContext(self, {}, session=session, session_epoch=session.epoch)

    def create(self, wanted: Wanted, answers: Answers, now_ms: int, owner: SessionOwner) -> int:
        """Create a session with the partitions of this response; returns its id, or NO_SESSION if the shard is full of more
        valuable ones."""
        shard = self._shards[self._next_shard]
        self._next_shard = (self._next_shard + 1) % len(self._shards)
        return shard.create(wanted, answers, now_ms, owner)

    def _shard_of(self, session_id: int) -> "_Shard":
        number = int(
            session_id / self._ids_per_shard
        )  # Java's division: ids slightly below 0 belong to the first shard
        if not 0 <= number < len(self._shards):
            raise NoSuchShardError(session_id)
        return self._shards[number]


class _Shard:
    """A shard of the cache: at most ``slots`` sessions, with ``ids``."""

    __slots__ = ("_ids", "_new_session_id", "_slots", "sessions")

    def __init__(self, slots: int, ids: range, new_session_id: Callable[[], int]) -> None:
        self.sessions: dict[int, FetchSession] = {}
        self._slots = slots
        self._ids = ids
        self._new_session_id = new_session_id

    def create(self, wanted: Wanted, answers: Answers, now_ms: int, owner: SessionOwner) -> int:
        """See FetchSessions.create."""
        if len(self.sessions) >= self._slots and not self._evict(len(answers), now_ms, owner):
            return NO_SESSION
        session_id = self._free_id()
        partitions = [
            CachedPartition(fetched, wanted[fetched], answer.high_watermark, answer.log_start_offset)
            for fetched, answer in answers.items()
        ]
        self.sessions[session_id] = FetchSession(session_id, partitions, now_ms, owner)
        return session_id

    def _free_id(self) -> int:
        while True:
            session_id = self._ids[self._new_session_id() % len(self._ids)]
            if session_id not in self.sessions and session_id != NO_SESSION:
                return session_id

    def _evict(self, size: int, now_ms: int, owner: SessionOwner) -> bool:
        """Make room for a session of ``size`` partitions: evict an idle session, else one of less value that is ``settled``.

        A broker's session also evicts a consumer's that is not settled yet.
        """
        if not self.sessions:
            return False
        idlest = min(self.sessions.values(), key=lambda session: (session.last_used_ms, session.session_id))
        if now_ms - idlest.last_used_ms > EVICTION_MS:
            del self.sessions[idlest.session_id]
            return True
        may_go = (
            session
            for session in self.sessions.values()
            if session.settled or (owner.is_broker and not session.owner.is_broker)
        )
        least = min(may_go, key=lambda session: session.eviction_order, default=None)
        # Of two equal sizes the new session loses, because its id is 0 until it has one.
        if least is None or (owner.is_broker, size, 0) < least.eviction_order:
            return False
        del self.sessions[least.session_id]
        return True


class FetchContext:
    """One request and its session: a full fetch, an incremental one, or an error."""

    __slots__ = ("_owner", "_session_epoch", "_sessions", "_wanted", "_wants_session", "error", "session")

    def __init__(
        self,
        sessions: FetchSessions,
        wanted: Wanted,
        *,
        error: ErrorCode = ErrorCode.NONE,
        session: FetchSession | None = None,
        session_epoch: int = FINAL_EPOCH,
        owner: SessionOwner = SessionOwner(uses_topic_ids=False),  # noqa: B008 - it cannot be changed
        wants_session: bool = False,
    ) -> None:
        self.error = error
        self.session = session
        self._sessions = sessions
        self._session_epoch = session_epoch
        self._owner = owner
        self._wanted = wanted
        self._wants_session = wants_session

    def wanted(self, topic_name: Callable[[uuid.UUID], str | None]) -> Mapping[TopicIdPartition, FetchPartition]:
        """The partitions to read, in order."""
        return self._wanted if self.session is None else self.session.all_wanted(topic_name)

    def conclude(self, answers: Answers, now_ms: int) -> tuple[ErrorCode, int, Answers]:
        """(error, session id, partitions to send) of the response, once all partitions were read."""
        if self.error:
            return self.error, NO_SESSION, {}
        if self.session is not None:
            if self.session.epoch != self._session_epoch:
                return ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session.session_id, {}
            return ErrorCode.NONE, self.session.session_id, self.session.news(answers)
        if not self._wants_session:
            return ErrorCode.NONE, NO_SESSION, answers
        session_id = self._sessions.create(self._wanted, answers, now_ms, self._owner)
        return ErrorCode.NONE, session_id, answers


def next_epoch(epoch: int) -> int:
    """The epoch after ``epoch``; 1 follows the largest int32."""
    return INITIAL_EPOCH + 1 if epoch == _INT32_MAX else epoch + 1
