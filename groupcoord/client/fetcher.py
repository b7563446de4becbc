"""The consumer's Fetcher: keeps Fetch requests in flight to all leaders, and buffers the records ahead of the user.

A Fetch that waits for records blocks its connection. So each broker has two connections. One is for busy partitions,
whose last fetch returned records: its fetches return at once. The other is for idle partitions: its fetches wait at the broker.
A busy partition thus never waits for an
idle one. A partition that is paused, or has enough buffered records, is not fetched.

A partition without a position gets one first, from ``position_resolver``. Sources: ``AbstractFetch``, ``FetchCollector``.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.assigned_partitions import AssignedPartitions, PartitionState, StartPosition
from groupcoord.client.client_errors import BrokerError, ClientError, DisconnectedError
from groupcoord.client.completed_fetch import check_batches
from groupcoord.client.consumer_settings import ConsumerSettings
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.client.option_value_parsing import isolation_level
from groupcoord.client.position_resolver import PositionResolver
from groupcoord.protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from groupcoord.protocol.errors import ErrorCode

BY_NAME = 12
"""The last version of Fetch with topic names; later ones have topic ids."""
_STALE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Errors after which metadata is refreshed and the fetch is sent again."""


_Work = Callable[[list[PartitionState]], Coroutine[Any, Any, None]]
"""A task for partitions; it gets those whose positions have not changed since it was started."""


def _records_of(state: PartitionState) -> str:
    """The subject under which failures of a partition are logged."""
    return f"records of {state.partition[0]}-{state.partition[1]}"


class _Asked(NamedTuple):
    state: PartitionState
    version: int
    offset: int


class Fetcher:
    """Keeps the buffers of ``partitions`` filled; ``on_progress`` is called when there are records or errors."""

    def __init__(
        self,
        partitions: AssignedPartitions,
        cluster: NetworkClient,
        locator: PositionResolver,
        settings: ConsumerSettings,
        backoff: ExponentialBackoff,
        *,
        now_ms: Callable[[], int],
        on_progress: Callable[[], None],
    ) -> None:
        self._partitions = partitions
        self._cluster = cluster
        self._locator = locator
        self._settings = settings
        self._isolation_level = isolation_level(settings.isolation_level)
        self._backoff = backoff
        self._now_ms = now_ms
        self._on_progress = on_progress
        self._errors: list[Exception] = []
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._again: asyncio.TimerHandle | None = None
        self._backing_off = False
        self._stopped = False

    def raise_errors(self) -> None:
        """Raise the oldest error that has not been raised yet."""
        if self._errors:
            raise self._errors.pop(0)

    def send_fetches(self, changed: Iterable[TopicPartition] | None = None) -> None:
        """Start the fetches and position lookups that are possible now; with ``changed``, only those of its partitions."""
        if self._stopped:
            return
        now_ms = self._now_ms()
        if changed is None or self._partitions.changed:
            changed, self._partitions.changed = self._partitions.owned(), False
        states = map(self._partitions.get, changed)
        ready = [state for state in states if state and not state.in_flight and state.ask_again_at_ms <= now_ms]
        self._locate([state for state in ready if state.start is not None])
        by_broker: dict[tuple[int, ConnectionPurpose], list[PartitionState]] = {}
        for state in ready:
            if state.buffered < self._settings.max_poll_records and state.start is None and state.deliverable:
                broker = self._broker_of(state)
                if broker is not None:
                    by_broker.setdefault(
                        (broker, ConnectionPurpose.FETCHING if state.active else ConnectionPurpose.WAITING), []
                    ).append(state)
        for (node_id, purpose), states_of_broker in by_broker.items():
            if (node_id, purpose) not in self._tasks:
                self._start((node_id, purpose), states_of_broker, partial(self._fetch, node_id, purpose))
        if self._backing_off:
            self._schedule_retry(now_ms)

    async def stop(self) -> None:
        """Stop fetching."""
        self._stopped = True
        if self._again is not None:
            self._again.cancel()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Tasks.

    def _start(self, key: object, states: Iterable[PartitionState], work: _Work) -> None:
        busy = tuple((state, state.version) for state in states)
        for state, version in busy:
            state.asked_version = version
        task = self._tasks[key] = asyncio.get_running_loop().create_task(self._work(busy, work))

        def done(_: object) -> None:
            for state, version in busy:
                if state.asked_version == version:
                    state.asked_version = None
            del self._tasks[key]
            self._on_progress()
            self.send_fetches()

        task.add_done_callback(done)

    async def _work(self, busy: Iterable[tuple[PartitionState, int]], work: _Work) -> None:
        # A seek between the creation of this task and its first step wins: its partitions are skipped.
        states = [state for state, version in busy if state.version == version]
        try:
            if states:
                await work(states)
        except Exception as error:
            self._errors.append(error)

    def _schedule_retry(self, now_ms: int) -> None:
        """Set the timer for the end of the back-off of a partition that had an error."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        later = [state.ask_again_at_ms for state in self._partitions if state.ask_again_at_ms > now_ms]
        self._backing_off = bool(later)
        if later:
            self._again = asyncio.get_running_loop().call_later((min(later) - now_ms) / 1000, self.send_fetches)

    def _back_off(self, states: Iterable[PartitionState]) -> None:
        again_at_ms = self._now_ms() + max(1, self._backoff.delay_ms(0))
        self._backing_off = True
        for state in states:
            state.ask_again_at_ms = again_at_ms

    # Positions.

    def _locate(self, states: list[PartitionState]) -> None:
        committed = [state for state in states if state.start is StartPosition.COMMITTED]
        if committed and "committed" not in self._tasks:
            self._start("committed", committed, self._locate_committed)
        in_log = [state for state in states if state.start is not StartPosition.COMMITTED]
        if in_log and "log" not in self._tasks:
            self._start("log", in_log, self._locate_in_log)

    async def _locate_committed(self, states: list[PartitionState]) -> None:
        try:
            await self._locator.from_committed(states, self._settings.default_api_timeout_ms)
        except Exception:
            self._back_off(states)
            raise

    async def _locate_in_log(self, states: list[PartitionState]) -> None:
        try:
            complete = await self._locator.from_log(states)
        except Exception:
            self._back_off(states)
            raise
        if not complete:
            self._back_off(state for state in states if state.start is not None)

    # Records.

    def _broker_of(self, state: PartitionState) -> int | None:
        if state.read_replica in self._cluster.brokers:
            return state.read_replica
        place = self._cluster.leader_of(state.partition)
        if place is None:
            self._cluster.request_refresh()
            self._back_off([state])
            return None
        return place.leader

    async def _fetch(self, node_id: int, purpose: ConnectionPurpose, states: list[PartitionState]) -> None:
        asked = {state.partition: _Asked(state, state.version, state.fetched_to) for state in states}
        request, by_id = self._request(asked.values(), waits=purpose is ConnectionPurpose.WAITING)
        try:
            answer: FetchResponse = await self._cluster.request_of(
                node_id, request, purpose, limit=None if by_id else BY_NAME
            )
        except DisconnectedError:
            self._cluster.request_refresh()
            self._back_off(states)
            return
        code = ErrorCode(answer.error_code)
        self._cluster.tell(f"fetches from broker {node_id}", code.name if code else "")
        if code:
            self._back_off(states)
            self._cluster.request_refresh()
            if not (code.retriable or code in _STALE):
                raise BrokerError(code, "Fetch")
            return
        names = {self._cluster.topic_id(topic): topic for topic, _ in asked}
        for of_topic in answer.responses:
            name = of_topic.topic or names.get(of_topic.topic_id, "")
            self._received(name, of_topic, asked)

    def _received(self, name: str, of_topic: FetchableTopicResponse, asked: dict[tuple[str, int], _Asked]) -> None:
        for data in of_topic.partitions:
            sent = asked.get((name, data.partition_index))
            if sent is None or sent.state.version != sent.version:
                continue  # a seek or revocation happened while the request was in flight
            try:
                self._take(sent, data)
            except ClientError as error:
                self._back_off([sent.state])
                self._errors.append(error)

    def _take(self, sent: _Asked, data: PartitionData) -> None:
        state = sent.state
        code = ErrorCode(data.error_code)
        if code == ErrorCode.NONE:
            self._store(state, data)
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.read_replica is not None:
                state.read_replica = None  # the leader may have records that the follower lacks
            else:
                self._locator.out_of_range(state)
        elif code in _STALE:
            state.read_replica = None
            self._retry_later(state, code.name)
            self._cluster.request_refresh()
        elif code.retriable or code == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._retry_later(state, code.name)
        else:
            raise BrokerError(code, f"the records of {state.partition[0]}-{state.partition[1]}")

    def _store(self, state: PartitionState, data: PartitionData) -> None:
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        if data.preferred_read_replica >= 0:
            state.read_replica = data.preferred_read_replica
            return
        aborted = data.aborted_transactions or ()
        fetched = check_batches(
            state.partition, bytes(data.records or b""), state.fetched_to, aborted, check_crcs=self._settings.check_crcs
        )
        state.active = fetched.next_offset > state.fetched_to
        if data.records and not state.active:
            limit = f"max_partition_fetch_bytes={self._settings.max_partition_fetch_bytes}"
            self._retry_later(state, f"the batch at offset {state.fetched_to} is larger than {limit}, and came in part")
        elif state.ask_again_at_ms:
            state.ask_again_at_ms = 0
            self._cluster.tell(_records_of(state))
        state.put(fetched)

    def _retry_later(self, state: PartitionState, why: str) -> None:
        self._cluster.tell(_records_of(state), why)
        self._back_off([state])

    def _request(self, asked: Iterable[_Asked], *, waits: bool) -> tuple[FetchRequest, bool]:
        """The request, and whether all its topics have ids."""
        settings = self._settings
        by_topic: dict[str, list[FetchPartition]] = {}
        for state, _, offset in asked:
            topic, number = state.partition
            place = self._cluster.leader_of(state.partition)
            by_topic.setdefault(topic, []).append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=-1 if place is None else place.leader_epoch,
                    fetch_offset=offset,
                    partition_max_bytes=settings.max_partition_fetch_bytes,
                )
            )
        ids = {topic: self._cluster.topic_id(topic) for topic in by_topic}
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms if waits else 0,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=self._isolation_level,
            topics=tuple(
                FetchTopic(topic=topic, topic_id=ids[topic], partitions=tuple(each)) for topic, each in by_topic.items()
            ),
            rack_id=settings.client_rack or "",
        )
        return request, None not in ids.values()
