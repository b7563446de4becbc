"""Reconciliation of a member of the consumer protocol (KIP-848): from the owned partitions to the target assignment.

It commits, revokes (``on_revoked``), takes the added partitions (``on_assigned``), and acknowledges. Callbacks run
only while the user polls. Source: ``AbstractMembershipManager.maybeReconcile`` and ``revokeAndAssign``.
"""

import enum
import uuid
from collections.abc import Callable

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import DisconnectedError
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.consumer_heartbeat import (
    NO_ASSIGNMENT,
    ConsumerMember,
    ConsumerMemberState,
    LocalAssignment,
)
from groupcoord.client.member.context import in_order
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot


class ReconciliationPhase(enum.Enum):
    """What a reconciliation waits for."""

    IDLE = "nothing: the next one can begin"
    COMMITTING = "the commit of what was consumed"
    COMMITTED = "the user, to tell it what it gives up and gets"
    IN_CALLBACK = "the user's callback"


class TopicNames:
    """Resolves the ids of assigned topics to names; the coordinator sends only ids."""

    def __init__(self, member: ConsumerMember) -> None:
        self._member = member
        self._names: dict[uuid.UUID, str] = {}
        self._missing: frozenset[uuid.UUID] = frozenset()
        self._looked_up: frozenset[uuid.UUID] = frozenset()
        self._ticket: int | None = None
        self._retry_at_ms = 0
        self._attempts = 0

    def next_deadline(self) -> int | None:
        """When to fetch metadata again (ms), or None."""
        return self._retry_at_ms if self._missing and self._ticket is None else None

    def topics(self) -> frozenset[str]:
        """The topics whose names are known."""
        return frozenset(self._names.values())

    def forget(self) -> None:
        """The member is assigned nothing any more."""
        self._names, self._missing = {}, frozenset()

    def resolve(self) -> dict[uuid.UUID, str]:
        """The known names of the topics in the target assignment; fetches metadata for the others."""
        member = self._member
        known = {topic_id: name for name, topic_id in member.topics.ids.items()}
        wanted = member.target.partitions.keys()
        self._names = {
            topic_id: name for topic_id in wanted if (name := known.get(topic_id) or self._names.get(topic_id))
        }
        self._missing = frozenset(wanted - self._names.keys())
        if self._missing and self._ticket is None and self._retry_at_ms <= member.now_ms:
            missing = self._missing
            self._ticket = member.start_action(
                lambda ticket: a.FetchMetadata(ticket, frozenset(), missing),
                lambda topics: self._learned(topics, missing),
                self._failed,
            )
        return self._names

    @property
    def awaited(self) -> bool:
        """Is there a topic for which metadata was not requested yet?"""
        return not self._missing <= self._looked_up

    def _learned(self, topics: MetadataSnapshot, asked: frozenset[uuid.UUID]) -> None:
        self._looked_up = asked
        self._names |= {topic_id: name for name, topic_id in topics.ids.items() if topic_id in asked}
        if asked <= self._names.keys():
            self._ticket, self._attempts, self._retry_at_ms = None, 0, 0
        else:
            self._back_off()

    def _failed(self, error: Exception) -> None:
        self._back_off()
        if not isinstance(error, DisconnectedError):
            self._member.fail(error)

    def _back_off(self) -> None:
        self._ticket = None
        self._retry_at_ms = self._member.now_ms + self._member.backoff.delay_ms(self._attempts)
        self._attempts += 1


class Reconciliation:
    """Takes a member from what it owns to its target assignment."""

    def __init__(self, member: ConsumerMember) -> None:
        self._member = member
        self.names = TopicNames(member)
        self._phase = ReconciliationPhase.IDLE
        self._ticket = 0
        self._goal = NO_ASSIGNMENT
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._failed = False

    @property
    def in_callback(self) -> bool:
        """Is a callback running?"""
        return self._phase is ReconciliationPhase.IN_CALLBACK

    def next_deadline(self) -> int | None:
        """When ``step`` has something to do (ms), or None."""
        return self.names.next_deadline() if self._wanted and self._phase is ReconciliationPhase.IDLE else None

    def user_polled(self) -> None:
        """The user polls: retry after a callback that raised."""
        self._failed = False

    def abort(self) -> None:
        """The member is no longer in the group: stop, except for a callback that is running."""
        if self._phase is ReconciliationPhase.COMMITTING:
            self._member.cancel_action(self._ticket)
        if not self.in_callback:
            self._phase = ReconciliationPhase.IDLE

    def step(self) -> bool:
        """Take the next step that is possible now. Returns whether there was one."""
        if self._phase is ReconciliationPhase.COMMITTED and self._member.user_present:
            self._revoke()
            return True
        if self._phase is ReconciliationPhase.IDLE and self._wanted:
            return self._begin()
        return False

    @property
    def _wanted(self) -> bool:
        return self._member.state is ConsumerMemberState.RECONCILING and not self._failed

    def _begin(self) -> bool:
        member = self._member
        names = self.names.resolve()
        if self.names.awaited:
            return False
        resolved = {topic_id: member.target.partitions[topic_id] for topic_id in names}
        goal = LocalAssignment(member.target.local_epoch, resolved)
        if goal == member.current:
            return False  # only topics without known names are missing; all others are acknowledged already
        if member.current != NO_ASSIGNMENT and resolved == member.current.partitions:
            self._acknowledge(goal)
            return True
        if not member.user_present:
            return False
        self._goal = goal
        self._assigned = frozenset(
            (names[topic_id], number) for topic_id, numbers in resolved.items() for number in numbers
        )
        gives_up = member.owned - self._assigned
        member.emit(
            e.AssignmentReceived,
            epoch=member.epoch,
            keeps=in_order(member.owned & self._assigned),
            gains=in_order(self._assigned - member.owned),
            gives_up=in_order(gives_up),
        )
        if gives_up:
            member.add_action(a.StopDelivery(gives_up))
        self._phase = ReconciliationPhase.COMMITTED
        if member.settings.auto_commit and member.owned:
            self._phase = ReconciliationPhase.COMMITTING
            timeout_ms = member.settings.max_poll_interval_ms  # the coordinator does not wait for longer
            self._ticket = member.start_action(
                lambda ticket: a.CommitOffsets(ticket, timeout_ms),
                lambda _: self._committed(),
                lambda _: self._committed(),
            )
        return True

    def _committed(self) -> None:
        self._phase = ReconciliationPhase.COMMITTED

    def _revoke(self) -> None:
        member = self._member
        gives_up = member.owned - self._assigned
        if not gives_up:
            self._assign()
            return

        def returned() -> None:
            member.owned -= gives_up
            if member.state is ConsumerMemberState.RECONCILING:
                self._assign()
            else:
                member.add_action(a.SetOwned(member.owned))

        self._call_back(a.CallbackKind.REVOKED, gives_up, returned)

    def _assign(self) -> None:
        member = self._member
        gained = self._assigned - member.owned
        member.owned = self._assigned
        member.add_action(a.SetOwned(member.owned))

        def returned() -> None:
            if member.state is ConsumerMemberState.RECONCILING:
                self._acknowledge(self._goal)

        self._call_back(a.CallbackKind.ASSIGNED, gained, returned)

    def _acknowledge(self, assignment: LocalAssignment) -> None:
        self._member.current = assignment
        self._member.state = ConsumerMemberState.ACKNOWLEDGING

    def _call_back(self, news: a.CallbackKind, partitions: frozenset[TopicPartition], done: Callable[[], None]) -> None:
        """Call the user's callback, then ``done``. If it raises, the reconciliation is retried at the next poll."""
        member = self._member
        self._phase = ReconciliationPhase.IN_CALLBACK

        def returned(error: Exception | None) -> None:
            self._phase = ReconciliationPhase.IDLE
            if error is None:
                done()
            else:
                self._failed = True
                member.raise_callback_error(news, error)

        member.invoke_callback(news, partitions, returned)
