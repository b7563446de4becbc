"""The consumer: a member of a group that hands out records::

    async with Consumer("localhost:9092", group="app", topics=["orders"]) as consumer:
        async for record in consumer:
            print(record.value)

It follows Kafka's rule of the poll: waiting for records is also the time for whatever concerns the user, callbacks and the
change of assignments. While the user is busy with records nothing happens to it; only its heartbeats go on, and fetching.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from groupcoord.assignors import Assignor, TopicPartition
from groupcoord.client import option_parsing
from groupcoord.client.assigned_partitions import AssignedPartitions, ConsumerRecord, PartitionState, StartPosition
from groupcoord.client.client_errors import BrokerError, ConsumerClosedError
from groupcoord.client.committed_offsets import GroupOffsets, OffsetAndMetadata, OffsetCommitter
from groupcoord.client.fetcher import Fetcher, FetchSettings, OffsetResetStrategy, PositionResolver
from groupcoord.client.member.actions import CallbackKind
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.context import ExponentialBackoff, MemberSettings
from groupcoord.client.member.member_interface import GroupMember
from groupcoord.client.member.membership import Membership
from groupcoord.client.member_driver import Callback, MemberDriver
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.option_parsing import GroupProtocol, parse_addresses
from groupcoord.core.events import Event
from groupcoord.protocol.errors import ErrorCode

CLOSE_TIMEOUT_MS = 30_000
"""The end of the block waits so long for the last commits, and again for LeaveGroup."""
SESSION_TIMEOUT_MS = 45_000
HEARTBEAT_INTERVAL_MS = 3_000
logger = logging.getLogger(__name__)
_HOPELESS = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Errors of topics in metadata that a retry does not change."""


class Consumer(AsyncIterator[ConsumerRecord]):
    """A consumer in a group, open while its ``async with`` block runs.

    ``bootstrap`` is ``host:port`` of any brokers; ``group`` and ``topics`` say what to consume with whom. ``assignors`` are
    names or objects, the most wanted first; if all of them support the cooperative protocol, that is what the member does
    (KIP-429), and by default it does not, as in Kafka. The callbacks get a tuple of (topic, partition) and may be coroutine
    functions; without ``on_lost``, ``on_revoked`` is called in its place. ``auto_commit_interval_ms=None`` leaves committing
    to the user.

    With ``group_protocol="consumer"`` (KIP-848) the coordinator assigns, by its assignor ``group_remote_assignor`` if that is
    given, and sets the session timeout and the heartbeat interval. ``assignors``, ``session_timeout_ms`` and
    ``heartbeat_interval_ms`` are settings of the classic protocol then, and refused. In place of ``topics`` it can have a
    ``pattern``: a regular expression of RE2, which the coordinator resolves.
    ``chance`` answers a number from 0 up to 1 and spreads back-offs; ``listeners`` are told each step of the
    member (:mod:`groupcoord.client.member.listener_events`). All other arguments are Kafka's settings, times in milliseconds.

    Raises ValueError and UnknownAssignorError for arguments that cannot work.
    """

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        group: str,
        topics: str | Iterable[str] | None = None,
        pattern: str | None = None,
        group_protocol: str = "classic",
        assignors: str | Assignor | Sequence[str | Assignor] | None = None,
        group_remote_assignor: str | None = None,
        instance_id: str | None = None,
        client_id: str = "groupcoord",
        rack: str | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        auto_offset_reset: str = "latest",
        auto_commit_interval_ms: int | None = 5_000,
        isolation_level: str = "read_uncommitted",
        session_timeout_ms: int | None = None,
        heartbeat_interval_ms: int | None = None,
        max_poll_interval_ms: int = 300_000,
        max_poll_records: int = 500,
        fetch_min_bytes: int = 1,
        fetch_max_bytes: int = 52_428_800,
        fetch_max_wait_ms: int = 500,
        max_partition_fetch_bytes: int = 1_048_576,
        check_crcs: bool = True,
        request_timeout_ms: int = 30_000,
        api_timeout_ms: int = 60_000,
        metadata_max_age_ms: int = 300_000,
        allow_auto_create_topics: bool = True,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        listeners: Iterable[Callable[[Event], None]] = (),
        chance: Callable[[], float] = random.random,
    ) -> None:
        if max_poll_records < 1:
            raise ValueError("max_poll_records is above 0")
        if auto_commit_interval_ms is not None and auto_commit_interval_ms < 0:
            raise ValueError("auto_commit_interval_ms is not negative; None switches it off")
        protocol = option_parsing.group_protocol(
            group_protocol,
            classic={
                "assignors": assignors,
                "session_timeout_ms": session_timeout_ms,
                "heartbeat_interval_ms": heartbeat_interval_ms,
            },
            consumer={"group_remote_assignor": group_remote_assignor, "pattern": pattern},
        )
        settings = MemberSettings(
            group_id=group,
            instance_id=instance_id,
            rack_id=rack or None,
            session_timeout_ms=SESSION_TIMEOUT_MS if session_timeout_ms is None else session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS if heartbeat_interval_ms is None else heartbeat_interval_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            retry_backoff_max_ms=retry_backoff_max_ms,
            auto_commit=auto_commit_interval_ms is not None,
            remote_assignor=group_remote_assignor,
        )
        level = option_parsing.isolation_level(isolation_level)
        backoff = ExponentialBackoff(retry_backoff_ms, retry_backoff_max_ms, chance)
        self._topics, self._pattern = option_parsing.subscription(topics, pattern)
        self._membership: GroupMember
        if protocol is GroupProtocol.CONSUMER:
            self._membership = ConsumerMembership(settings, option_parsing.new_member_id(), chance=chance)
        else:
            made = option_parsing.assignors_of(option_parsing.DEFAULT_ASSIGNORS if assignors is None else assignors)
            self._membership = Membership(settings, made, chance=chance)
        self._partitions = AssignedPartitions()
        self._cluster = NetworkClient(
            parse_addresses(bootstrap),
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            metadata_max_age_ms=metadata_max_age_ms,
            backoff=backoff,
            allow_auto_create_topics=allow_auto_create_topics,
            on_change=self._cluster_changed,
        )
        self._driver = MemberDriver(
            self._membership,
            self._cluster,
            self._partitions,
            callbacks={
                CallbackKind.ASSIGNED: on_assigned,
                CallbackKind.REVOKED: on_revoked,
                CallbackKind.LOST: on_lost,
            },
            listeners=listeners,
            commit_consumed=lambda timeout_ms: self._committer.commit_settled(timeout_ms),  # noqa: PLW0108 - made below
            now_ms=_clock(),
            on_progress=self._wake,
        )
        self._offsets = GroupOffsets(self._driver, self._cluster, backoff)
        self._fetcher = Fetcher(
            self._partitions,
            self._cluster,
            PositionResolver(
                self._offsets, self._cluster, OffsetResetStrategy(auto_offset_reset), isolation_level=level
            ),
            FetchSettings(
                fetch_min_bytes=fetch_min_bytes,
                fetch_max_bytes=fetch_max_bytes,
                fetch_max_wait_ms=fetch_max_wait_ms,
                max_partition_fetch_bytes=max_partition_fetch_bytes,
                enough_records=max_poll_records,
                check_crcs=check_crcs,
                isolation_level=level,
                rack_id=rack or "",
            ),
            backoff,
            now_ms=self._driver.now_ms,
            on_progress=self._wake,
            api_timeout_ms=api_timeout_ms,
        )
        self._api_timeout_ms = api_timeout_ms
        self._max_poll_records = max_poll_records
        self._committer = OffsetCommitter(
            self._offsets,
            self._partitions,
            interval_ms=auto_commit_interval_ms,
            timeout_ms=api_timeout_ms,
            now_ms=self._driver.now_ms,
        )
        self._changed = asyncio.Event()
        self._polling = False
        self._open = False
        self._connected = False
        self._refreshing: asyncio.Task[None]

    def __repr__(self) -> str:
        return f"<Consumer {self._membership!r}>"

    # Opening and closing.

    async def __aenter__(self) -> Self:
        """Find the cluster and begin to join. Raises DisconnectedError if no broker can be reached."""
        try:
            await self._cluster.refresh(self._topics)
        except BaseException:
            await self._cluster.close()
            raise
        self._open = self._connected = True
        self._refreshing = asyncio.create_task(self._cluster.refresh_periodically())
        self._committer.start()
        self._cluster_changed()
        self.subscribe(self._topics or None, pattern=self._pattern)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Commit, leave the group, close the connections; also if the block was left by an error or cancelled.

        Raises what a callback raised meanwhile, unless the block raised something itself.
        """
        closing = asyncio.create_task(self._close(failed=kind is not None))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing  # the member leaves nevertheless; a second cancellation ends it at once
            raise
        if kind is None:
            self._driver.raise_last_errors()

    async def _close(self, *, failed: bool) -> None:
        self._open = False
        try:
            await self._committer.close(failed=failed, timeout_ms=CLOSE_TIMEOUT_MS)
            self._driver.execute_actions(self._membership.leave("the consumer is being closed", self._driver.now_ms()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_MS / 1000):
                    await self._driver.left.wait()
        finally:
            self._connected = False
            await self._fetcher.stop()
            await self._driver.stop()
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
            await self._cluster.close()
            self._partitions.assign(())
            self._wake()

    # Records.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """The next record, however long it takes. Raises what ``getmany`` raises."""
        self._begin_poll()
        try:
            while not self._may_deliver() or (record := self._partitions.take_one()) is None:
                await self._wait(None)
            return record
        finally:
            self._end_poll()

    async def getmany(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records by partition as soon as there are any, up to ``max_records`` in all; none after ``timeout_ms``.

        Raises BrokerError, AssignorFailedError and others that end the member; CallbackFailedError once for what a callback
        raised; OffsetError, CorruptRecordsError, BrokerError for partitions that cannot be read; ConsumerClosedError.
        """
        most = self._max_poll_records if max_records is None else max_records
        if most < 1 or timeout_ms < 0:
            raise ValueError("max_records is above 0, and timeout_ms not negative")
        until_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        self._begin_poll()
        try:
            while True:
                records = self._partitions.take(most) if self._may_deliver() else {}
                if records or not await self._wait(until_s):
                    return records
        finally:
            self._end_poll()

    def _begin_poll(self) -> None:
        """The user polls: callbacks may run, and assignments may change."""
        if not self._open:
            raise ConsumerClosedError("the consumer is not open: poll it inside its `async with` block")
        if self._driver.is_callback:
            raise RuntimeError("a callback cannot poll: the poll waits for the callback")
        if self._polling:
            raise RuntimeError("this consumer is being polled already, by another task")
        self._polling = True
        self._partitions.mark_processed()
        self._committer.commit_if_due()
        self._cluster.watch(self._membership.watched_topics)
        self._driver.execute_actions(self._membership.polled(self._driver.now_ms()))

    def _end_poll(self) -> None:
        """The poll returns: nothing changes for the user until the next poll."""
        self._polling = False
        if self._open:
            self._driver.execute_actions(self._membership.poll_ended(self._driver.now_ms()))
            self._fetcher.send_fetches()

    def _may_deliver(self) -> bool:
        """May records be handed out? Not while a callback runs. Raises errors that are due to the user."""
        if self._driver.in_callback:
            return False
        self._raise_errors()
        return True

    async def _wait(self, until_s: float | None) -> bool:
        """Wait for a change until ``until_s`` on the loop's clock, or to the end of a callback. Was there one?"""
        if not self._open:
            raise ConsumerClosedError("the consumer was closed while somebody waited for its records")
        news = self._changed
        self._fetcher.send_fetches()
        try:
            async with asyncio.timeout_at(None if self._driver.in_callback else until_s):
                await news.wait()
        except TimeoutError:
            return self._driver.in_callback
        return True

    # Subscription and assignment.

    def subscribe(self, topics: str | Iterable[str] | None = None, *, pattern: str | None = None) -> None:
        """Consume ``topics``, or what matches ``pattern``, instead of what was so far; the group rebalances.

        Raises ValueError for neither or both, and for a pattern with the classic protocol.
        """
        names, _ = option_parsing.subscription(topics, pattern)
        membership, now_ms = self._membership, self._driver.now_ms()
        actions = (
            membership.subscribe(names, now_ms) if pattern is None else membership.subscribe_pattern(pattern, now_ms)
        )
        self._topics, self._pattern = names, pattern
        self._driver.execute_actions(actions)

    def subscription(self) -> frozenset[str]:
        """The subscribed topics; with a pattern, those of them that this consumer is assigned partitions of."""
        return self._topics if self._pattern is None else self._membership.watched_topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions this consumer owns."""
        return frozenset(state.partition for state in self._partitions)

    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """Join again, for a reason that only the user knows (KIP-568); the consumer protocol does not have that."""
        if isinstance(self._membership, ConsumerMembership):
            logger.warning("a member of the consumer protocol cannot enforce a rebalance: %s", reason)
        self._driver.execute_actions(self._membership.rejoin(reason, self._driver.now_ms()))

    @property
    def membership(self) -> GroupMember:
        """The member of the group: its state, generation (or epoch) and id."""
        return self._membership

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of ``partitions`` until ``resume``. Raises KeyError for what is not assigned."""
        for state in self._states(partitions):
            state.paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of ``partitions`` again. Raises KeyError for what is not assigned."""
        for state in self._states(partitions):
            state.paused = False
        self._look()

    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return frozenset(state.partition for state in self._partitions if state.paused)

    # Positions.

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at ``offset`` in ``partition``. Raises KeyError for what is not assigned, ValueError for what is no offset."""
        if offset < 0:
            raise ValueError(f"an offset is not negative: {offset}")
        self._partitions[partition].move_to(offset)
        self._look()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first record there is; of all that is assigned, unless told which. Raises KeyError."""
        self._find(partitions, StartPosition.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on behind the last record there is; of all that is assigned, unless told which. Raises KeyError."""
        self._find(partitions, StartPosition.LATEST)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to be handed out, once it is known.

        Raises KeyError for what is not assigned, TimeoutError, and what makes it impossible to find out.
        """
        state = self._partitions[partition]
        async with asyncio.timeout(self._api_timeout_ms / 1000):
            while state.start is not None:
                news = self._changed
                self._raise_errors()
                self._fetcher.send_fetches()
                await news.wait()
                state = self._partitions[partition]
        return state.position

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for ``partitions``, or for all that is assigned; None where nothing.

        Raises BrokerError, TimeoutError.
        """
        self._check_connected()
        wanted = frozenset(partitions) or self.assignment()
        return await self._offsets.committed(wanted, self._api_timeout_ms)

    async def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Commit ``offsets``, or the positions of all that is assigned, and wait until that is done.

        What may pass is tried again. Raises RebalanceInProgressError (poll, then commit again), CommitFailedError (others may
        own the partitions), BrokerError, TimeoutError.
        """
        self._check_connected()
        await self._committer.commit(offsets, timeout_ms or self._api_timeout_ms)

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> "asyncio.Task[None]":
        """Commit as ``commit`` does, without waiting; commits are carried out in order.

        The task raises what ``commit`` raises; a failure is also logged.
        """
        self._check_connected()
        return self._committer.commit_async(offsets)

    # Internals.

    def _check_connected(self) -> None:
        """A callback may commit even while the consumer is being closed."""
        if not self._connected:
            raise ConsumerClosedError("the consumer is not open")

    def _states(self, partitions: Iterable[TopicPartition]) -> list[PartitionState]:
        return [self._partitions[partition] for partition in partitions]

    def _find(self, partitions: Sequence[TopicPartition], start: StartPosition) -> None:
        for state in self._states(partitions) or list(self._partitions):
            state.find(start)
        self._look()

    def _look(self) -> None:
        self._fetcher.send_fetches()
        self._wake()

    def _wake(self) -> None:
        """Wake the tasks that wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _cluster_changed(self) -> None:
        if self._open:
            self._driver.execute_actions(self._membership.topics_changed(self._cluster.view(), self._driver.now_ms()))
            self._fetcher.send_fetches()
            self._wake()

    def _raise_errors(self) -> None:
        self._driver.raise_errors()
        self._fetcher.raise_errors()
        for topic, code in self._cluster.topic_errors.items():
            if code in _HOPELESS and topic in self._topics:
                raise BrokerError(code, f"topic {topic}")


def _clock() -> Callable[[], int]:
    """Milliseconds since 1970 that never go back: set at the wall clock's time, then following the monotonic one."""
    origin_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + origin_ns) // 1_000_000
