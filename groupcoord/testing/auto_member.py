"""AutoMember, a group member that runs by itself: groupcoord's own client, on the cluster's clock.

It sends heartbeats, rejoins when the group rebalances, computes assignments when it is the leader, and revokes and takes
partitions as the rebalance protocol of its assignors (eager, cooperative) or the coordinator of a consumer group (KIP-848)
requires. It fetches no records: the test sets the offsets that it has consumed.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import DisconnectedError
from groupcoord.client.member import actions as a
from groupcoord.client.member.action_executor import ActionExecutor
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.metadata_and_commit_requests import (
    OFFSET_COMMIT_BY_NAME,
    MetadataSnapshot,
    metadata_request,
    metadata_snapshot,
    offset_commit_request,
    partition_errors,
)
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Answered, Event
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.clocks import Clock
from groupcoord.testing.in_process_transport import MemberConnection
from groupcoord.testing.topic_settings import offsets_of

TOPIC_MISSING_MS = 1_000
"""After so many milliseconds a member asks again for the metadata of a subscribed topic that does not exist."""


class AutoMember(ActionExecutor):
    """A member of a group that joins, sends heartbeats, leads and rebalances by itself.

    Like Kafka's client it refreshes its metadata when it becomes the leader, and every ``metadata_max_age_ms`` (milliseconds).
    """

    assigned: frozenset[TopicPartition]
    """The partitions that it owns now."""
    consumed: dict[TopicPartition, int]
    """The position (next offset) of each partition, which is committed when the partition is revoked."""
    rebalance_callbacks: list[tuple[str, tuple[TopicPartition, ...]]]
    """The calls of its rebalance listener, in order: ("assigned", partitions), ("revoked", …), ("lost", …)."""
    errors: list[Exception]
    """The exceptions that a client's API call would have raised."""
    has_left: bool
    """Whether it has sent that it leaves the group."""

    def __init__(
        self,
        connection: MemberConnection,
        membership: GroupMember,
        topics: Sequence[str],
        *,
        regex: str | None = None,
        now_ms: Callable[[], int],
        metadata_max_age_ms: int,
        listener: Callable[[Event], None],
        on_change: Callable[[], None],
    ) -> None:
        super().__init__(membership, now_ms)
        self.assigned = frozenset()
        self.rebalance_callbacks = []
        self.errors = []
        self.consumed = {}
        self.has_left = False
        self._connection = connection
        self._topics = tuple(topics)
        self._regex = regex
        self._metadata_max_age_ms = metadata_max_age_ms
        self._refresh_at_ms: int | None = None
        self._missing: frozenset[str] = frozenset()
        """Subscribed topics that the last metadata did not have."""
        self._listener = listener
        self._on_change = on_change
        self._due: dict[int, int] = {}
        self._paused = False
        self._gone = False
        self._missed: list[Callable[[], None]] = []
        self._hears: tuple[int, int] | None = None

    def __repr__(self) -> str:
        missing = f", topics that do not exist: {', '.join(sorted(self._missing))}" if self._missing else ""
        return f"<AutoMember {self.client_id} {self.membership!r}{missing}>"

    @property
    def client_id(self) -> str:
        """The client id in its requests."""
        return self._connection.client_id

    @property
    def group(self) -> str:
        """The name of its group."""
        return self.membership.settings.group_id

    @property
    def member_id(self) -> str:
        """Its member id; empty before it has one."""
        return self.membership.generation.member_id

    @property
    def generation(self) -> int:
        """Its generation, or in a consumer group its member epoch; -1 if it has none."""
        return self.membership.generation.generation_id

    @property
    def epoch(self) -> int:
        """Its member epoch in a consumer group; the same number as ``generation``."""
        return self.generation

    @property
    def is_stable(self) -> bool:
        """Whether it has its assignment and no rebalance callback is running."""
        return self.membership.is_stable

    # Actions of the test.

    def start(self) -> None:
        """Subscribe and start to join; from then on the member counts as polling."""
        self._refresh_at_ms = self._now_ms() + self._metadata_max_age_ms
        if self._regex is not None and isinstance(self.membership, ConsumerMembership):
            self.execute_actions(self.membership.subscribe_pattern(self._regex, self._now_ms()))
        else:
            self.execute_actions(self.membership.subscribe(self._topics, self._now_ms()))
        self.execute_actions(self.membership.polled(self._now_ms()))

    def subscribe(self, *topics: str) -> None:
        """Subscribe to other topics; the group rebalances. Raises TypeError, and ValueError for none."""
        for topic in topics:
            if not isinstance(topic, str):
                raise TypeError(f'subscribe("orders", "payments") takes names of topics, not {topic!r}')
        self._topics = topics
        self.execute_actions(self.membership.subscribe(topics, self._now_ms()))

    def leave(self, reason: str = "the test said so") -> None:
        """Commit the consumed offsets, call the rebalance listener, and leave the group."""
        self._commit(self._consumed(), lambda _: None, lambda: None)
        self.execute_actions(self.membership.leave(reason, self._now_ms()))

    def vanish(self) -> None:
        """Disappear without leaving the group, as in a crash."""
        self._gone = True
        self._connection.close()
        self._on_change()

    def pause(self) -> None:
        """Suspend the member, as in a long pause of its whole process: it sends nothing, reads nothing, calls no callbacks."""
        self._paused = True
        self._on_change()

    def resume(self) -> None:
        """End the pause, and handle the responses that came meanwhile."""
        self._paused = False
        missed, self._missed = self._missed, []
        for news in missed:
            news()
        self.expire()
        self._on_change()

    def be_busy(self) -> None:
        """Stop polling, as while records are processed: callbacks wait; heartbeats go on until ``max_poll_interval_ms``."""
        self.execute_actions(self.membership.poll_ended(self._now_ms()))

    def poll(self) -> None:
        """Poll again, after ``be_busy``."""
        self.execute_actions(self.membership.polled(self._now_ms()))

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        done: Callable[[dict[TopicPartition, ErrorCode]], None] | None = None,
    ) -> None:
        """Commit ``offsets`` as this member; ``done`` is called with the error code of each partition. Raises TypeError."""
        self.consumed.update(offsets_of(offsets))
        self._commit(offsets, done or (lambda _: None), lambda: None)

    def refresh_metadata(self) -> None:
        """Refresh its metadata: if it is the leader and partitions of its topics have changed, it rejoins."""
        if self._refresh_at_ms is None:
            return  # it has left, or ended
        self._refresh_at_ms = self._now_ms() + self.membership.settings.request_timeout_ms
        self._connection.ask(metadata_request(self.membership.watched_topics), partial(self._hear, self._refreshed))
        self._on_change()

    # The clock.

    def next_deadline(self) -> int | None:
        """The time of its next timer (ms), or None."""
        if self._paused or self._gone:
            return None
        deadlines = [self.membership.next_deadline(), self._refresh_at_ms, *self._due.values()]
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def expire(self) -> None:
        """Run the timers that are due."""
        if self._paused or self._gone:
            return
        now_ms = self._now_ms()
        for ticket in [ticket for ticket, at_ms in self._due.items() if at_ms <= now_ms]:
            self._due.pop(ticket, None)
            self._fail(ticket, DisconnectedError("no answer came in time"))
        self._expire_membership()
        if self._refresh_at_ms is not None and self._refresh_at_ms <= now_ms:
            self.refresh_metadata()

    # Actions that the membership asks for.

    def _executed(self) -> None:
        self._on_change()

    def _send_request(self, action: a.SendRequest) -> None:
        self._due[action.ticket] = self._now_ms() + action.timeout_ms
        to = None if action.to is None else action.to.node_id
        hear = partial(self._hear, partial(self._answered, action.ticket))
        self._connection.ask(action.request, hear, broker_id=to)

    def _fetch_metadata(self, action: a.FetchMetadata) -> None:
        self._due[action.ticket] = self._now_ms() + self.membership.settings.request_timeout_ms
        request = metadata_request(action.topics, topic_ids=action.topic_ids)
        self._connection.ask(request, partial(self._hear, partial(self._learned, action)))

    def _commit_offsets(self, action: a.CommitOffsets) -> None:
        finish = partial(self._complete, action.ticket, None)
        self._commit(self._consumed(), lambda _: finish(), finish)

    def _invoke_callback(self, action: a.InvokeCallback) -> None:
        self.rebalance_callbacks.append((action.news.value, action.partitions))
        self._complete(action.ticket, None)

    def _cancel_action(self, action: a.CancelAction) -> None:
        self._due.pop(action.ticket, None)

    def _set_owned(self, action: a.SetOwned) -> None:
        self.assigned = action.partitions

    def _raise_error(self, action: a.RaiseError) -> None:
        self.errors.append(action.error)
        self._refresh_at_ms = None if action.final else self._refresh_at_ms

    def _membership_ended(self, action: a.MembershipEnded) -> None:
        del action
        self.has_left = True
        self._refresh_at_ms = None

    def _emit_event(self, action: EmitEvent) -> None:
        event, cause = action.event, action.event.cause
        if isinstance(cause, Answered) and self._hears is not None:
            connection_id, correlation_id = self._hears
            cause = cause._replace(connection_id=connection_id, correlation_id=correlation_id)
            event = dataclasses.replace(event, cause=cause)
        self._listener(event)

    def _consumed(self) -> dict[TopicPartition, int]:
        return {partition: offset for partition, offset in self.consumed.items() if partition in self.assigned}

    def _hear(self, news: Callable[[Any], None], response: Any) -> None:
        learn = partial(self._learn, self._connection.hears, news, response)
        if self._paused:
            self._missed.append(learn)
        else:
            learn()

    def _learn(self, answer: tuple[int, int] | None, news: Callable[[Any], None], response: Any) -> None:
        self._hears = answer
        try:
            news(response)
        finally:
            self._hears = None

    def _answered(self, ticket: int, response: Any) -> None:
        if self._due.pop(ticket, None) is None:
            return
        if response is None:
            self._fail(ticket, DisconnectedError("the connection was closed"))
        else:
            self._complete(ticket, response)

    def _learned(self, action: a.FetchMetadata, response: Any) -> None:
        view = None if response is None else metadata_snapshot(response)
        if not action.topic_ids:
            self._look_again(view)
        self._answered(action.ticket, view)

    def _refreshed(self, response: Any) -> None:
        view = None if response is None else metadata_snapshot(response)
        self._look_again(view)
        if view is not None:
            self.execute_actions(self.membership.topics_changed(view, self._now_ms()))

    def _look_again(self, seen: MetadataSnapshot | None) -> None:
        """Schedule the next metadata refresh; a soon one if there was no response, or a topic is missing."""
        if self._refresh_at_ms is None:
            return  # it has left meanwhile
        if seen is not None:
            self._missing = self.membership.watched_topics - seen.partitions.keys()
        well = seen is not None and not self._missing
        most_ms = self._metadata_max_age_ms
        self._refresh_at_ms = self._now_ms() + (most_ms if well else min(TOPIC_MISSING_MS, most_ms))
        self._on_change()

    def _commit(
        self,
        offsets: Mapping[TopicPartition, int],
        done: Callable[[dict[TopicPartition, ErrorCode]], None],
        failed: Callable[[], None],
    ) -> None:
        if not offsets:
            done({})
            return
        sent, settings = self.membership.generation, self.membership.settings
        request = offset_commit_request(
            settings.group_id, sent.generation_id, sent.member_id, settings.instance_id, offsets
        )

        def answered(response: Any) -> None:
            if response is None:
                failed()
                return
            codes = partition_errors(response)
            for code in dict.fromkeys(codes.values()):
                self.execute_actions(self.membership.commit_answered(code, sent, self._now_ms()))
            done(codes)

        to = self.membership.coordinator
        self._connection.ask(
            request,
            partial(self._hear, answered),
            version=OFFSET_COMMIT_BY_NAME,
            broker_id=None if to is None else to.node_id,
        )


class MemberScheduler:
    """Runs the AutoMembers of one cluster: by a timer if the clock runs by itself, otherwise when ``expire`` is called."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._members: list[AutoMember] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._stopped = False

    def __iter__(self) -> Iterator[AutoMember]:
        return iter(tuple(self._members))

    def add(self, member: AutoMember) -> None:
        """Add a member."""
        self._members.append(member)

    def next_deadline(self) -> int | None:
        """The time of the earliest timer of any member (ms), or None."""
        deadlines = (member.next_deadline() for member in self._members)
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def expire(self) -> None:
        """Run the due timers of all members, in the order in which the members were added."""
        for member in self:
            member.expire()
        self.set_timer()

    def set_timer(self) -> None:
        """Set the event loop's timer to the earliest deadline."""
        deadline = None if self._stopped else self.next_deadline()
        if deadline == self._timer_at_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is None:
            return
        seconds = self._clock.seconds_until(deadline)
        if seconds is not None:
            self._timer_at_ms = deadline
            self._timer = self._loop.call_later(max(0.0, seconds), self._due)

    def _due(self) -> None:
        self._timer = None
        self.expire()

    def stop(self) -> None:
        """Stop all members."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
