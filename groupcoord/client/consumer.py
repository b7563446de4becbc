"""The consumer: a member of a group that hands out records::

    async with Consumer("orders", bootstrap_servers="localhost:9092", group_id="app") as consumer:
        async for record in consumer:
            print(record.value)

It follows Kafka's rule of the poll: waiting for records is also the time for whatever concerns the user, callbacks and the
change of assignments. While the user is busy with records nothing happens to it; only its heartbeats go on, and fetching.
"""

import asyncio
import contextlib
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from groupcoord.assignors import TopicPartition
from groupcoord.client import option_parsing
from groupcoord.client.assigned_partitions import AssignedPartitions, ConsumerRecord, PartitionState, StartPosition
from groupcoord.client.client_errors import BrokerError, ConsumerClosedError, NoGroupError, NotSubscribedError
from groupcoord.client.clock import wall_clock
from groupcoord.client.cluster_queries import ClusterQueries
from groupcoord.client.committed_offsets import GroupOffsets, OffsetAndMetadata, OffsetCommitter, OffsetsToCommit
from groupcoord.client.consumer_settings import read_settings
from groupcoord.client.deserialization import RecordDeserializer
from groupcoord.client.fetcher import Fetcher, OffsetResetStrategy, PositionResolver
from groupcoord.client.log_offsets import LogOffsets
from groupcoord.client.member.actions import CallbackKind
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.member_interface import GroupMember
from groupcoord.client.member.membership import Membership
from groupcoord.client.member_driver import Callback, MemberDriver
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.option_parsing import GroupProtocol, parse_addresses
from groupcoord.client.producer.transaction_manager import GroupMetadata
from groupcoord.client.subscription_state import SubscriptionState
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.events import Event
from groupcoord.protocol.errors import ErrorCode

CLOSE_TIMEOUT_MS = 5_000
"""Closing takes so long at most, unless told otherwise: half of it for the last commits, the rest for the goodbye."""
RUN_MS = 100
"""``async for`` polls at least so often while it hands out records."""
logger = logging.getLogger("groupcoord.client")
_HOPELESS = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Errors of topics in metadata that a retry does not change."""


class Consumer(ClusterQueries, AsyncIterator[ConsumerRecord]):
    """Reads the records of ``topics``, or of those whose whole names match ``pattern``: in a group, or alone.

    It is open while its ``async with`` block runs, or from ``start`` to ``stop``. ``settings`` are Kafka's, with underscores
    and with Kafka's defaults, such as ``bootstrap_servers`` and ``group_id``: the fields of
    :class:`~groupcoord.client.consumer_settings.ConsumerSettings`. The callbacks get a tuple of (topic, partition) and may be
    coroutine functions; without ``on_lost``, ``on_revoked`` is called in its place. ``listeners`` are told each step of the
    member (:mod:`groupcoord.client.member.listener_events`) and each trouble (:mod:`groupcoord.client.trouble_log`), which is
    logged, too: a warning when it begins, a line when it is over. ``chance`` answers a number from 0 up to 1 and spreads
    back-offs.

    Raises ValueError, and UnknownAssignorError, for what cannot work; they say what would.
    """

    def __init__(
        self,
        *topics: str,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        listeners: Iterable[Callable[[Event], None]] = (),
        chance: Callable[[], float] = random.random,
        **settings: Any,
    ) -> None:
        given = read_settings(settings)
        protocol, of_member, backoff = given.protocol, given.of_member(), given.backoff(chance)
        self._subscription = SubscriptionState(
            remote_patterns=protocol is GroupProtocol.CONSUMER and given.group_id is not None,
            exclude_internal_topics=given.exclude_internal_topics,
        )
        if topics or pattern is not None:
            self._subscription.subscribe(topics or None, pattern)
        self._membership: GroupMember
        if protocol is GroupProtocol.CONSUMER:
            self._membership = ConsumerMembership(of_member, option_parsing.new_member_id(), chance=chance)
        else:
            wanted = given.partition_assignment_strategy
            made = option_parsing.assignors_of(option_parsing.DEFAULT_ASSIGNORS if wanted is None else wanted)
            self._membership = Membership(of_member, made, chance=chance)
        now_ms = wall_clock()
        who = "consumer without a group" if given.group_id is None else f"consumer in {given.group_id}"
        self._troubles = TroubleLog(who, now_ms=now_ms, listen=lambda event: self._driver.tell(event))  # noqa: PLW0108
        self._partitions = AssignedPartitions()
        self._cluster = NetworkClient(
            parse_addresses(given.bootstrap_servers),
            client_id=given.client_id,
            request_timeout_ms=given.request_timeout_ms,
            metadata_max_age_ms=given.metadata_max_age_ms,
            backoff=backoff,
            allow_auto_create_topics=given.allow_auto_create_topics,
            on_change=self._cluster_changed,
            troubles=self._troubles,
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
            troubles=self._troubles,
            commit_consumed=lambda timeout_ms: self._committer.commit_settled(timeout_ms),  # noqa: PLW0108 - made below
            now_ms=now_ms,
            on_progress=self._wake,
        )
        self._offsets = GroupOffsets(self._driver, self._cluster, backoff)
        level = option_parsing.isolation_level(given.isolation_level)
        self._read_committed = level == option_parsing.ISOLATION_LEVELS["read_committed"]
        ClusterQueries.__init__(self, given, self._cluster, LogOffsets(self._cluster, backoff, isolation_level=level))
        reset = OffsetResetStrategy(given.auto_offset_reset)
        self._fetcher = Fetcher(
            self._partitions,
            self._cluster,
            PositionResolver(self._offsets, self._cluster, reset, isolation_level=level),
            given.of_fetcher(),
            backoff,
            now_ms=now_ms,
            on_progress=self._wake,
            api_timeout_ms=given.default_api_timeout_ms,
        )
        self._deserializer = RecordDeserializer(self._partitions, given.key_deserializer, given.value_deserializer)
        self._committer = OffsetCommitter(
            self._offsets,
            self._partitions,
            interval_ms=given.auto_commit_interval_ms if given.commits_by_itself else None,
            timeout_ms=given.default_api_timeout_ms,
            now_ms=now_ms,
            troubles=self._troubles,
        )
        self._changed = asyncio.Event()
        self._poll_again_at_s = 0.0
        self._polling = False
        self._started = False
        self._open = False
        self._connected = False
        self._refreshing: asyncio.Task[None]
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Consumer {self._membership!r}>"

    # Opening and closing.

    async def start(self) -> None:
        """Find the cluster and begin to join. Raises DisconnectedError if no broker can be reached, ConsumerClosedError."""
        if self._started:
            raise ConsumerClosedError("a consumer is started once: make a new one")
        self._started = True
        try:
            self._watch()
            await self._cluster.refresh(None if self._cluster.watches_all else self._cluster.watched)
        except BaseException:
            await self._cluster.close()
            raise
        self._open = self._connected = True
        self._refreshing = asyncio.create_task(self._cluster.refresh_periodically())
        self._committer.start()
        self._cluster_changed()
        self._apply_subscription()

    async def stop(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Commit, call the callback for what is given up, leave the group, close the connections; within ``timeout_ms``.

        Raises what a callback raised meanwhile. A consumer that is stopped already, or was never started, does nothing.
        """
        await self._stop(timeout_ms, failed=False)
        self._driver.raise_last_errors()

    async def __aenter__(self) -> Self:
        """``start``."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """``stop``, also if the block was left by an error or cancelled; then records that are not done are not committed.

        Raises what a callback raised meanwhile, unless the block raised something itself.
        """
        await self._stop(CLOSE_TIMEOUT_MS, failed=kind is not None)
        if kind is None:
            self._driver.raise_last_errors()

    async def _stop(self, timeout_ms: int, *, failed: bool) -> None:
        if self._closing is None:
            if not self._open:
                return
            self._closing = asyncio.create_task(self._close(timeout_ms, failed=failed))
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await self._closing  # the member leaves nevertheless; a second cancellation ends it at once
            raise

    async def _close(self, timeout_ms: int, *, failed: bool) -> None:
        self._open = False
        self._partitions.end_run()
        until_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            await self._committer.close(failed=failed, timeout_ms=timeout_ms // 2)
            self._driver.execute_actions(self._membership.leave("the consumer is being closed", self._driver.now_ms()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until_s):
                    await self._driver.left.wait()
            if not self._driver.left.is_set():
                self._troubles.begin(
                    "closing", f"it had not left its group after {timeout_ms} ms, and left it alone then"
                )
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
        """The next record, however long it takes. Raises what ``getmany`` raises.

        They come in runs of one partition. The first of a run is a poll; the others only follow it, until something changes,
        ``max_poll_records`` are out or the last poll is a while ago.
        """
        if time.monotonic() < self._poll_again_at_s and (record := self._partitions.take_next()) is not None:
            return self._deserializer.one(record)
        ((partition, (record,)),) = (await self._poll(1, None)).items()
        self._poll_again_at_s = time.monotonic() + RUN_MS / 1000
        self._partitions.begin_run(partition, self._settings.max_poll_records - 1)
        return record

    async def getone(self) -> ConsumerRecord:
        """The next record, however long it takes. Raises what ``getmany`` raises."""
        return await anext(self)

    async def getmany(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records by partition as soon as there are any, up to ``max_records`` in all; none after ``timeout_ms``.

        Raises BrokerError, AssignorFailedError and others that end the member; CallbackFailedError once for what a callback
        raised; OffsetError, CorruptRecordsError, BrokerError for partitions that cannot be read; RecordDeserializationError;
        NotSubscribedError, ConsumerClosedError.
        """
        most = self._settings.max_poll_records if max_records is None else max_records
        if most < 1 or timeout_ms < 0:
            raise ValueError("max_records is above 0, and timeout_ms not negative")
        return await self._poll(most, asyncio.get_running_loop().time() + timeout_ms / 1000)

    async def _poll(self, most: int, until_s: float | None) -> dict[TopicPartition, list[ConsumerRecord]]:
        """``getmany``, until ``until_s`` on the loop's clock; None: until there are records."""
        self._begin_poll()
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        try:
            # With records in store nothing else would wait, and the next ones would not be fetched.
            await asyncio.sleep(0)
            while True:
                if self._may_deliver():
                    records = self._partitions.take(most)
                if records or not await self._wait(until_s):
                    return self._deserializer.many(records)
        finally:
            self._end_poll(records)

    def _begin_poll(self) -> None:
        """The user polls: callbacks may run, and assignments may change."""
        if not self._open:
            raise ConsumerClosedError(
                "the consumer is not open: poll it inside its `async with` block, or after start()"
            )
        if not self._subscription:
            raise NotSubscribedError("the consumer is to read nothing: call subscribe() or assign() before you poll")
        if self._driver.is_callback:
            raise RuntimeError("a callback cannot poll: the poll waits for the callback")
        if self._polling:
            raise RuntimeError("this consumer is being polled already, by another task")
        self._polling = True
        self._partitions.mark_processed()
        self._committer.commit_if_due()
        self._watch()
        self._driver.execute_actions(self._membership.polled(self._driver.now_ms()))

    def _end_poll(self, taken: Iterable[TopicPartition]) -> None:
        """The poll returns: nothing changes for the user until the next poll."""
        self._polling = False
        if self._open:
            self._driver.execute_actions(self._membership.poll_ended(self._driver.now_ms()))
            self._fetcher.send_fetches(taken)

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

    def subscribe(
        self, topics: str | Iterable[str] | None = None, *, pattern: str | re.Pattern[str] | None = None
    ) -> None:
        """Consume ``topics``, or those whose whole names match ``pattern``, instead of what was so far; a group rebalances.

        By the consumer protocol a ``pattern`` that is a text is one of RE2, which the coordinator resolves; all others are of
        Python, and new topics are found after ``metadata_max_age_ms``. Raises ValueError for neither or both, for what is no
        topic or no pattern, and after ``assign``; ConsumerClosedError.
        """
        self._check_not_closed()
        self._subscription.subscribe(topics, pattern)
        self._apply_subscription()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Consume exactly ``partitions``, without the group deciding: no rebalance, no callbacks.

        With a ``group_id`` it may commit, but only while nobody is a member of that group. Raises ValueError for what is no
        partition, and after ``subscribe``; ConsumerClosedError.
        """
        self._check_not_closed()
        self._subscription.assign(partitions)
        self._apply_subscription()

    def unsubscribe(self) -> None:
        """Consume nothing more, and leave the group, after ``on_revoked`` for what was assigned; nothing is committed.

        ``subscribe`` or ``assign`` begins anew. Raises ConsumerClosedError.
        """
        self._check_not_closed()
        self._subscription.clear()
        if self._open:
            ungrouped = self._membership.manual or self._settings.group_id is None
            self._watch()
            self._driver.execute_actions(self._membership.unsubscribe(self._driver.now_ms()))
            if ungrouped:
                self._partitions.assign(())

    def subscription(self) -> frozenset[str]:
        """The subscribed topics; with a pattern, those it matches, or of the coordinator's those that it has assigned."""
        if self._subscription.remote_pattern is not None:
            return self._membership.watched_topics
        return self._subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions this consumer reads: those it owns in its group, or that its user has assigned."""
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

    def group_metadata(self) -> GroupMetadata:
        """As whom this consumer is in its group, for ``Producer.send_offsets_to_transaction`` (KIP-447).

        Raises NoGroupError.
        """
        if self._settings.group_id is None:
            raise NoGroupError("only a member of a group has metadata of one: give the consumer a group_id")
        settings, generation = self._membership.settings, self._membership.generation
        return GroupMetadata(settings.group_id, generation.generation_id, generation.member_id, settings.instance_id)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of ``partitions`` until ``resume``. Raises KeyError for what is not assigned."""
        for state in self._states(partitions):
            state.paused = True
        self._partitions.end_run()

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of ``partitions`` again. Raises KeyError for what is not assigned."""
        for state in self._states(partitions):
            state.paused = False
        self._look()

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end of the log, as the last fetch saw it; None before there was one.

        The end is where readers of its ``isolation_level`` stop. Raises KeyError for what is not assigned. Source: KIP-695.
        """
        state = self._partitions[partition]
        end = state.last_stable_offset if self._read_committed else state.high_watermark
        return None if end is None or state.start is not None else max(0, end - state.position)

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset behind the last record that all replicas in sync have, as the last fetch saw it. Raises KeyError."""
        return self._partitions[partition].high_watermark

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The first offset of an open transaction, or the high watermark, as the last fetch saw it. Raises KeyError."""
        return self._partitions[partition].last_stable_offset

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

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Go on at what is committed, or as ``auto_offset_reset`` says; of all that is assigned, unless told which."""
        self._find(partitions, StartPosition.COMMITTED)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to be handed out, once it is known.

        Raises KeyError for what is not assigned, TimeoutError, and what makes it impossible to find out.
        """
        state = self._partitions[partition]
        async with asyncio.timeout(self._settings.default_api_timeout_ms / 1000):
            while state.start is not None:
                news = self._changed
                self._raise_errors()
                self._fetcher.send_fetches()
                await news.wait()
                state = self._partitions[partition]
        return state.position

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for ``partitions``, or for all that is assigned; None where nothing.

        Raises NoGroupError, BrokerError, TimeoutError.
        """
        self._check_connected()
        if self._settings.group_id is None:
            raise NoGroupError("offsets are committed for a group: give the consumer a group_id")
        wanted = frozenset(partitions) or self.assignment()
        return await self._offsets.committed(wanted, self._settings.default_api_timeout_ms)

    async def commit(self, offsets: OffsetsToCommit = None, *, timeout_ms: int | None = None) -> None:
        """Commit ``offsets``, or the positions of all that is assigned, and wait until that is done.

        What may pass is tried again. Raises NoGroupError, RebalanceInProgressError (poll, then commit again),
        CommitFailedError (others may own the partitions), BrokerError, TimeoutError.
        """
        self._check_connected()
        await self._committer.commit(offsets, timeout_ms or self._settings.default_api_timeout_ms)

    def commit_async(self, offsets: OffsetsToCommit = None) -> "asyncio.Task[None]":
        """Commit as ``commit`` does, without waiting; commits are carried out in order.

        The task raises what ``commit`` raises; a failure is also logged.
        """
        self._check_connected()
        return self._committer.commit_async(offsets)

    # Internals.

    def _check_not_closed(self) -> None:
        if self._started and not self._open:
            raise ConsumerClosedError("the consumer is closed: make a new one")

    def _apply_subscription(self) -> None:
        """Let the member and the partitions follow what is wanted now."""
        if not self._open:
            return  # that is done when the consumer starts
        wanted, membership, now_ms = self._subscription, self._membership, self._driver.now_ms()
        self._watch()
        if wanted.partitions is not None:
            if not membership.manual:
                self._partitions.assign(())
            self._driver.execute_actions(membership.assign(now_ms))
            self._partitions.assign(wanted.partitions)
        elif wanted.remote_pattern is not None:
            self._driver.execute_actions(membership.subscribe_pattern(wanted.remote_pattern, now_ms))
        else:
            self._subscribe_to_topics()
        self._look()

    def _subscribe_to_topics(self) -> None:
        """Subscribe to the topics by name, or to those that match the pattern now; without a group, read all of them."""
        wanted, known = self._subscription, self._cluster.topics
        wanted.match({name: topic.internal for name, topic in known.items()})
        if wanted.pattern is not None:
            subject = f"the pattern {wanted.pattern.pattern}"
            if wanted.topics:
                self._troubles.end(subject)
            else:
                self._troubles.begin(subject, "no topic matches it")
        if self._settings.group_id is None:
            self._partitions.assign(
                (name, number) for name in wanted.topics & known.keys() for number in known[name].partitions
            )
        elif wanted.topics:
            self._driver.execute_actions(self._membership.subscribe(wanted.topics, self._driver.now_ms()))

    def _watch(self) -> None:
        """Keep the metadata fresh of what is wanted."""
        wanted = self._subscription
        self._cluster.watch_all(wanted.pattern is not None)
        self._cluster.watch(
            self._membership.watched_topics | wanted.topics | {topic for topic, _ in wanted.partitions or ()}
        )

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
        """Something has changed: wake the tasks that wait for that."""
        self._partitions.end_run()
        self._changed.set()
        self._changed = asyncio.Event()

    def _cluster_changed(self) -> None:
        if self._open:
            self._driver.execute_actions(self._membership.topics_changed(self._cluster.view(), self._driver.now_ms()))
            by_hand = self._subscription.partitions is not None
            if not by_hand and (self._subscription.pattern is not None or self._settings.group_id is None):
                self._subscribe_to_topics()
            self._fetcher.send_fetches()
            self._wake()

    def _raise_errors(self) -> None:
        self._driver.raise_errors()
        self._fetcher.raise_errors()
        for topic, code in self._cluster.topic_errors.items():
            if code in _HOPELESS and topic in self._cluster.watched:
                raise BrokerError(code, f"topic {topic}")
