"""A member that acts by itself: groupcoord's own client on the cluster's clock.

It heartbeats, joins again when the group rebalances, leads when it is elected, and gives up and takes partitions as the
protocol of its assignors wants, or as the coordinator of a consumer group does (KIP-848). It reads no records: the test says
what it has consumed.
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
from groupcoord.client.member.request_builders import (
    OFFSET_COMMIT_BY_NAME,
    MetadataSnapshot,
    commit_errors,
    metadata_request,
    metadata_snapshot,
    offset_commit_request,
)
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Answered, Event
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.clocks import Clock
from groupcoord.testing.in_process_transport import MemberConnection

TOPIC_MISSING_MS = 1_000
"""After so long a member asks again for a topic that it wants and that there is not."""


class AutoMember(ActionExecutor):
    """A member of a group that heartbeats, joins, leads and rebalances by itself.

    As Kafka's client it asks for metadata when it leads, and after ``metadata_max_age_ms`` (milliseconds) again.
    """

    assigned: frozenset[TopicPartition]
    """What it owns now."""
    consumed: dict[TopicPartition, int]
    """The next offset of each partition: what is committed when partitions are given up."""
    rebalance_callbacks: list[tuple[str, tuple[TopicPartition, ...]]]
    """What its callbacks were called with, in order: ("assigned", partitions), ("revoked", …), ("lost", …)."""
    errors: list[Exception]
    """What a call of its user would have raised."""
    has_left: bool
    """Whether it has told the coordinator that it leaves."""

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
        self._listener = listener
        self._on_change = on_change
        self._due: dict[int, int] = {}
        self._paused = False
        self._gone = False
        self._missed: list[Callable[[], None]] = []
        self._hears: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"<AutoMember {self.client_id} {self.membership!r}>"

    @property
    def client_id(self) -> str:
        """The client id that its requests have."""
        return self._connection.client_id

    @property
    def group(self) -> str:
        """The name of its group."""
        return self.membership.settings.group_id

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave it; empty before that."""
        return self.membership.generation.member_id

    @property
    def generation(self) -> int:
        """The generation it is in, or its epoch in a consumer group, or -1."""
        return self.membership.generation.generation_id

    @property
    def epoch(self) -> int:
        """Its member epoch in a consumer group, or -1; ``generation`` is the same number."""
        return self.generation

    @property
    def is_stable(self) -> bool:
        """Whether it has its assignment, and its callback has returned."""
        return self.membership.is_stable

    # What the test does with it.

    def start(self) -> None:
        """Subscribe, and begin to join; the user waits for records from then on."""
        self._refresh_at_ms = self._now_ms() + self._metadata_max_age_ms
        if self._regex is not None and isinstance(self.membership, ConsumerMembership):
            self.execute_actions(self.membership.subscribe_pattern(self._regex, self._now_ms()))
        else:
            self.execute_actions(self.membership.subscribe(self._topics, self._now_ms()))
        self.execute_actions(self.membership.polled(self._now_ms()))

    def subscribe(self, *topics: str) -> None:
        """Subscribe to other topics; the group rebalances."""
        self._topics = topics
        self.execute_actions(self.membership.subscribe(topics, self._now_ms()))

    def leave(self, reason: str = "the test said so") -> None:
        """Commit what was consumed, call the callbacks, and tell the coordinator."""
        self._commit(self._consumed(), lambda _: None, lambda: None)
        self.execute_actions(self.membership.leave(reason, self._now_ms()))

    def vanish(self) -> None:
        """End without a word, as after a crash."""
        self._gone = True
        self._connection.close()
        self._on_change()

    def pause(self) -> None:
        """Suspend it, as in a long pause of the whole process: nothing is sent, answers lie unread, callbacks wait."""
        self._paused = True
        self._on_change()

    def resume(self) -> None:
        """End the pause, and handle what came meanwhile."""
        self._paused = False
        missed, self._missed = self._missed, []
        for news in missed:
            news()
        self.expire()
        self._on_change()

    def be_busy(self) -> None:
        """The user is busy with records: callbacks wait, heartbeats go on, until ``max_poll_interval_ms`` is over."""
        self.execute_actions(self.membership.poll_ended(self._now_ms()))

    def poll(self) -> None:
        """The user waits for records again."""
        self.execute_actions(self.membership.polled(self._now_ms()))

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        done: Callable[[dict[TopicPartition, ErrorCode]], None] | None = None,
    ) -> None:
        """Commit ``offsets`` with its member id and generation; ``done`` is called with the error code of each partition."""
        self.consumed.update(offsets)
        self._commit(offsets, done or (lambda _: None), lambda: None)

    def refresh_metadata(self) -> None:
        """Ask for the topics that matter to it: if it leads and their partitions have changed, it joins again."""
        if self._refresh_at_ms is None:
            return  # it has left, or ended
        self._refresh_at_ms = self._now_ms() + self.membership.settings.request_timeout_ms
        self._connection.ask(metadata_request(self.membership.watched_topics), partial(self._hear, self._refreshed))
        self._on_change()

    # The clock.

    def next_deadline(self) -> int | None:
        """When ``expire`` has something to do (ms), or None."""
        if self._paused or self._gone:
            return None
        deadlines = [self.membership.next_deadline(), self._refresh_at_ms, *self._due.values()]
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def expire(self) -> None:
        """Do what is due by now."""
        if self._paused or self._gone:
            return
        now_ms = self._now_ms()
        for ticket in [ticket for ticket, at_ms in self._due.items() if at_ms <= now_ms]:
            self._due.pop(ticket, None)
            self._fail(ticket, DisconnectedError("no answer came in time"))
        self._expire_membership()
        if self._refresh_at_ms is not None and self._refresh_at_ms <= now_ms:
            self.refresh_metadata()

    # What the membership wants done.

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
        """Ask for metadata after a while, and soon if there was no answer, or a topic is missing."""
        if self._refresh_at_ms is None:
            return  # it has left meanwhile
        well = seen is not None and self.membership.watched_topics <= seen.partitions.keys()
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
            codes = commit_errors(response)
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
    """All members of one cluster that act by themselves: on a clock that runs when something is due, else at ``expire``."""

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
        """When the first of them has something to do (ms), or None."""
        deadlines = (member.next_deadline() for member in self._members)
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def expire(self) -> None:
        """Let them do what is due, in the order in which they came."""
        for member in self:
            member.expire()
        self.set_timer()

    def set_timer(self) -> None:
        """Set the one timer for the next of them."""
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
        """No member acts any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
