"""Consumer, the asyncio counterpart of Kafka's ``KafkaConsumer``::

    async with Consumer("orders", bootstrap_servers="localhost:9092", group_id="app") as consumer:
        async for record in consumer:
            print(record.value)

As in the Java consumer, rebalance callbacks run and the assignment changes only inside a poll (``getone``, ``getmany`` or the
``async for`` loop). Between polls only heartbeats and prefetching continue.
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
from groupcoord.client import option_value_parsing
from groupcoord.client.assigned_partitions import AssignedPartitions, PartitionState, StartPosition
from groupcoord.client.client_errors import BrokerError, ConsumerClosedError, NoGroupError, NotSubscribedError
from groupcoord.client.committed_offsets import GroupOffsets, OffsetAndMetadata, OffsetCommitter, OffsetsToCommit
from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.client.consumer_settings import read_settings
from groupcoord.client.deserialization import RecordDeserializer
from groupcoord.client.fetcher import Fetcher
from groupcoord.client.log_offsets import LogOffsets
from groupcoord.client.member.actions import CallbackKind
from groupcoord.client.member.classic_membership import Membership
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member_driver import Callback, MemberDriver
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.offset_and_topic_lookups import OffsetAndTopicLookups
from groupcoord.client.option_value_parsing import GroupProtocol, parse_addresses
from groupcoord.client.position_resolver import OffsetResetStrategy, PositionResolver
from groupcoord.client.producer.transaction_manager import GroupMetadata
from groupcoord.client.subscription_state import SubscriptionState
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.events import Event
from groupcoord.protocol.errors import ErrorCode
from groupcoord.wall_clock import wall_clock

CLOSE_TIMEOUT_MS = 5_000
"""The default time-out of ``stop``: half of it is for the last commits, the rest for leaving the group."""
RUN_MS = 100
"""``async for`` polls at least this often while it returns records."""
logger = logging.getLogger("groupcoord.client")
_HOPELESS = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Errors of topics in metadata that are not retriable."""


class Consumer(OffsetAndTopicLookups, AsyncIterator[ConsumerRecord]):
    """Consumes ``topics``, or the topics whose whole names match ``pattern``, as a member of a group or without one.

    It is open while its ``async with`` block runs, or from ``start`` to ``stop``. ``settings`` are Kafka's, with underscores
    and with Kafka's defaults, such as ``bootstrap_servers`` and ``group_id``: the fields of
    :class:`~groupcoord.client.consumer_settings.ConsumerSettings`. The callbacks get a tuple of (topic, partition) and may be
    coroutine functions; without ``on_lost``, ``on_revoked`` is called in its place. ``listeners`` are called with an event for
    each step of the member (:mod:`groupcoord.client.member.member_events`) and for the begin and end of each failure
    (:mod:`groupcoord.client.trouble_log`), which are logged, too. ``chance`` returns a number from 0 up to 1, for the jitter
    of back-offs.

    Raises ValueError, and UnknownAssignorError, for settings that cannot work; they say what would.
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
            self._membership = ConsumerMembership(of_member, option_value_parsing.new_member_id(), chance=chance)
        else:
            wanted = given.partition_assignment_strategy
            made = option_value_parsing.assignors_of(
                option_value_parsing.DEFAULT_ASSIGNORS if wanted is None else wanted
            )
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
        level = option_value_parsing.isolation_level(given.isolation_level)
        self._read_committed = level == option_value_parsing.ISOLATION_LEVELS["read_committed"]
        OffsetAndTopicLookups.__init__(
            self, given, self._cluster, LogOffsets(self._cluster, backoff, isolation_level=level)
        )
        reset = OffsetResetStrategy(given.auto_offset_reset)
        self._fetcher = Fetcher(
            self._partitions,
            self._cluster,
            PositionResolver(self._offsets, self._cluster, reset, isolation_level=level),
            given,
            backoff,
            now_ms=now_ms,
            on_progress=self._wake,
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
        """Commit, call ``on_revoked``, leave the group and close the connections; within ``timeout_ms``.

        Raises CallbackFailedError if a callback raised. Does nothing if the consumer is stopped already or was never started.
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
        """``stop``. If the block was left by an error or cancelled, records that may be unprocessed are not committed.

        Raises CallbackFailedError if a callback raised, unless the block itself raised.
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
            await self._closing  # cancelled, but the member still leaves; a second cancellation ends it at once
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

        Records come in runs of one partition. Only the first record of a run is a poll; a run ends when something changes,
        after ``max_poll_records`` records, or ``RUN_MS`` after the poll.
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
        """``getmany`` with a deadline ``until_s`` on the loop's clock; None waits for records without a limit."""
        self._begin_poll()
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        try:
            # With records buffered nothing below waits, so without this no other task, such as the next fetch, would run.
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
        """The poll returns: no callback runs and no assignment changes until the next poll."""
        self._polling = False
        if self._open:
            self._driver.execute_actions(self._membership.poll_ended(self._driver.now_ms()))
            self._fetcher.send_fetches(taken)

    def _may_deliver(self) -> bool:
        """May records be returned? Not while a callback runs. Raises errors that the user has to see."""
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
        """Replace the subscription by ``topics``, or by the topics whose whole names match ``pattern``; a group rebalances.

        By the consumer protocol a ``pattern`` that is a string is an RE2 expression, which the coordinator resolves. Any other
        pattern is a Python one, and new topics are found after ``metadata_max_age_ms``. Raises ValueError for neither or both,
        for an invalid topic or pattern, and after ``assign``; ConsumerClosedError.
        """
        self._check_not_closed()
        self._subscription.subscribe(topics, pattern)
        self._apply_subscription()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Consume exactly ``partitions`` (manual assignment): no rebalance, no callbacks.

        With a ``group_id`` it may commit, but only while that group has no members. Raises ValueError for an invalid
        partition, and after ``subscribe``; ConsumerClosedError.
        """
        self._check_not_closed()
        self._subscription.assign(partitions)
        self._apply_subscription()

    def unsubscribe(self) -> None:
        """Call ``on_revoked`` for the assigned partitions, leave the group and consume nothing more; nothing is committed.

        ``subscribe`` or ``assign`` starts again. Raises ConsumerClosedError.
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
        """The subscribed topics; with a pattern, those it matches (if the coordinator resolves it: those it has assigned)."""
        if self._subscription.remote_pattern is not None:
            return self._membership.watched_topics
        return self._subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions: by the group, or by ``assign``."""
        return frozenset(state.partition for state in self._partitions)

    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """Rejoin the group (KIP-568); does nothing by the consumer protocol."""
        if isinstance(self._membership, ConsumerMembership):
            logger.warning("a member of the consumer protocol cannot enforce a rebalance: %s", reason)
        self._driver.execute_actions(self._membership.rejoin(reason, self._driver.now_ms()))

    @property
    def membership(self) -> GroupMember:
        """The member of the group: its state, generation (or epoch) and id."""
        return self._membership

    def group_metadata(self) -> GroupMetadata:
        """The group id, generation or epoch, and member id, for ``Producer.send_offsets_to_transaction`` (KIP-447).

        Raises NoGroupError.
        """
        if self._settings.group_id is None:
            raise NoGroupError("only a member of a group has metadata of one: give the consumer a group_id")
        settings, generation = self._membership.settings, self._membership.generation
        return GroupMetadata(settings.group_id, generation.generation_id, generation.member_id, settings.instance_id)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of ``partitions`` until ``resume``. Raises KeyError for a partition that is not assigned."""
        for state in self._states(partitions):
            state.paused = True
        self._partitions.end_run()

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of ``partitions`` again. Raises KeyError for a partition that is not assigned."""
        for state in self._states(partitions):
            state.paused = False
        self._look()

    def lag(self, partition: TopicPartition) -> int | None:
        """How far the position is behind the end offset of the last fetch; None before the first fetch.

        The end is the high watermark or, under ``read_committed``, the last stable offset. Raises KeyError for a partition that
        is not assigned. Source: KIP-695.
        """
        state = self._partitions[partition]
        end = state.last_stable_offset if self._read_committed else state.high_watermark
        return None if end is None or state.start is not None else max(0, end - state.position)

    def highwater(self, partition: TopicPartition) -> int | None:
        """The high watermark in the last Fetch response, or None. Raises KeyError for a partition that is not assigned."""
        return self._partitions[partition].high_watermark

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The last stable offset in the last Fetch response, or None. Raises KeyError for a partition that is not assigned."""
        return self._partitions[partition].last_stable_offset

    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return frozenset(state.partition for state in self._partitions if state.paused)

    # Positions.

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the position of ``partition``. Raises KeyError if it is not assigned, ValueError for an invalid offset."""
        if offset < 0:
            raise ValueError(f"an offset is not negative: {offset}")
        self._partitions[partition].move_to(offset)
        self._look()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Set the position of ``partitions``, or of all that are assigned, to the log start. Raises KeyError."""
        self._find(partitions, StartPosition.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Set the position of ``partitions``, or of all that are assigned, to the log end. Raises KeyError."""
        self._find(partitions, StartPosition.LATEST)

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Set the position of ``partitions``, or of all that are assigned, to the committed offset.

        Where nothing is committed, ``auto_offset_reset`` decides. Raises KeyError.
        """
        self._find(partitions, StartPosition.COMMITTED)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that the user gets; waits until it is known.

        Raises KeyError for a partition that is not assigned, TimeoutError, and errors of the lookup.
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
        """The committed offsets of ``partitions``, or of all that are assigned; None where there is none.

        Raises NoGroupError, BrokerError, TimeoutError.
        """
        self._check_connected()
        if self._settings.group_id is None:
            raise NoGroupError("offsets are committed for a group: give the consumer a group_id")
        wanted = frozenset(partitions) or self.assignment()
        return await self._offsets.committed(wanted, self._settings.default_api_timeout_ms)

    async def commit(self, offsets: OffsetsToCommit = None, *, timeout_ms: int | None = None) -> None:
        """Commit ``offsets``, or the positions of all assigned partitions, and wait for the response.

        Retriable errors are retried. Raises NoGroupError, RebalanceInProgressError (poll, then commit again),
        CommitFailedError (others may own the partitions), BrokerError, TimeoutError.
        """
        self._check_connected()
        await self._committer.commit(offsets, timeout_ms or self._settings.default_api_timeout_ms)

    def commit_async(self, offsets: OffsetsToCommit = None) -> "asyncio.Task[None]":
        """``commit`` without waiting; commits are sent in order.

        The task raises what ``commit`` raises; a failure is also logged.
        """
        self._check_connected()
        return self._committer.commit_async(offsets)

    # Internals.

    def _check_not_closed(self) -> None:
        if self._started and not self._open:
            raise ConsumerClosedError("the consumer is closed: make a new one")

    def _apply_subscription(self) -> None:
        """Pass the subscription to the group member, or the manual assignment to the fetcher."""
        if not self._open:
            return  # `start` calls this again
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
        """Subscribe to the topics by name, or to those that match the pattern now; without a group, assign all partitions."""
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
        """Let the network client refresh the metadata of the topics that are consumed."""
        wanted = self._subscription
        self._cluster.watch_all(wanted.pattern is not None)
        self._cluster.watch(
            self._membership.watched_topics | wanted.topics | {topic for topic, _ in wanted.partitions or ()}
        )

    def _check_connected(self) -> None:
        """Raise ConsumerClosedError unless the consumer is connected; it still is while a callback runs in ``stop``."""
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
