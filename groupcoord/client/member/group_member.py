"""GroupMember, the interface of group members of both protocols: the events that drivers pass in, and their state."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import ClientError
from groupcoord.client.member import actions as a
from groupcoord.client.member.context import Generation, MemberActions
from groupcoord.client.member.coordinator_lookup import CoordinatorLookup
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.core.events import Answered
from groupcoord.protocol.errors import ErrorCode


class GroupMember(ABC):
    """A member of a group without I/O, by the classic or the consumer protocol: events go in, actions come out.

    Its driver calls one method for each event, with the time, carries out the returned actions in order, and calls ``expire``
    when ``next_deadline`` is reached. The same events at the same times give the same actions.
    """

    def __init__(self, member: MemberActions, search: "CoordinatorLookup") -> None:
        self._shared = member
        self._search = search

    # Events.

    @abstractmethod
    def subscribe(self, topics: Iterable[str], now_ms: int) -> list[a.Action]:
        """Subscribe to ``topics``, instead of what was subscribed so far. Raises ValueError for none."""

    def subscribe_pattern(self, pattern: str, now_ms: int) -> list[a.Action]:  # noqa: ARG002 - for the consumer protocol
        """Subscribe to the topics that match ``pattern``. Raises ValueError, except in members of the consumer protocol."""
        raise ValueError("a subscription by pattern needs group_protocol=consumer")

    @abstractmethod
    def unsubscribe(self, now_ms: int) -> list[a.Action]:
        """Leave the group, after the callback for what is owned, or end the manual assignment; it may subscribe again."""

    def assign(self, now_ms: int) -> list[a.Action]:
        """Manual assignment: the member, which must not be subscribed, only finds the coordinator."""
        self._shared.begin_action(now_ms, "assign")
        self._shared.manual = True
        return self._advance()

    @abstractmethod
    def rejoin(self, reason: str, now_ms: int) -> list[a.Action]:
        """The user wants a rebalance (``enforceRebalance``, KIP-568)."""

    @abstractmethod
    def polled(self, now_ms: int) -> list[a.Action]:
        """The user has begun to poll: callbacks may run until ``poll_ended``."""

    @abstractmethod
    def poll_ended(self, now_ms: int) -> list[a.Action]:
        """The poll of the user has returned: no callback begins until the next poll."""

    def topics_changed(self, topics: MetadataSnapshot, now_ms: int) -> list[a.Action]:
        """New metadata of all ``watched_topics``; a classic leader joins again if their partitions have changed."""
        self._shared.begin_event(now_ms, Answered("Metadata", "NONE"))
        self._shared.topics = topics
        return self._advance()

    def complete(self, ticket: int, result: Any, now_ms: int) -> list[a.Action]:
        """The action of ``ticket`` succeeded; the class of the action says what ``result`` is."""
        self._shared.begin_event(now_ms, _answer_of(result) or self._shared.cause_of(ticket))
        self._shared.complete_action(ticket, result)
        return self._advance()

    def fail(self, ticket: int, error: Exception, now_ms: int) -> list[a.Action]:
        """The action of ``ticket`` failed. DisconnectedError means that the request may be sent again."""
        self._shared.begin_event(now_ms, Answered("an action", type(error).__name__))
        self._shared.fail_action(ticket, error)
        return self._advance()

    def coordinator_unreachable(self, coordinator: a.CoordinatorNode, reason: str, now_ms: int) -> list[a.Action]:
        """The connection to ``coordinator`` failed during a commit or a fetch of offsets."""
        self._shared.begin_event(now_ms, Answered("an offset request", reason))
        if self._shared.coordinator == coordinator:
            self._shared.lose_coordinator(reason)
        return self._advance()

    @abstractmethod
    def commit_answered(self, code: ErrorCode, sent: Generation, now_ms: int) -> list[a.Action]:
        """A commit sent as ``sent`` returned ``code``."""

    @abstractmethod
    def leave(self, reason: str, now_ms: int) -> list[a.Action]:
        """Close the member; ``MembershipEnded`` is the last action. Callbacks may run until then."""

    @abstractmethod
    def expire(self, now_ms: int) -> list[a.Action]:
        """Handle the deadlines that are reached at ``now_ms``."""

    @abstractmethod
    def next_deadline(self) -> int | None:
        """When ``expire`` has something to do (ms), or None."""

    @abstractmethod
    def _advance(self) -> list[a.Action]:
        """The steps after an event that are possible now, and the actions since the last call."""

    # State.

    @property
    def settings(self) -> MemberSettings:
        """Its settings."""
        return self._shared.settings

    @property
    @abstractmethod
    def state(self) -> enum.Enum:
        """Its state in the group: a ``MemberState`` or a ``ConsumerMemberState``."""

    @property
    @abstractmethod
    def is_stable(self) -> bool:
        """Does it have its assignment, with nothing left to do?"""

    @property
    @abstractmethod
    def generation(self) -> Generation:
        """Its member id and generation (consumer protocol: member epoch); -1 if it is not in the group."""

    @property
    def coordinator(self) -> a.CoordinatorNode | None:
        """The broker that coordinates the group, if it is known."""
        return self._shared.coordinator

    @property
    @abstractmethod
    def failure(self) -> Exception | None:
        """The fatal error that ended it, if any; it may not have been raised to the user yet."""

    @property
    def manual(self) -> bool:
        """Is the assignment manual?"""
        return self._shared.manual

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that it owns."""
        return self._shared.owned

    @property
    @abstractmethod
    def watched_topics(self) -> frozenset[str]:
        """The topics whose metadata it needs."""

    @property
    @abstractmethod
    def in_callback(self) -> bool:
        """Is a callback running? No records are returned meanwhile."""

    @abstractmethod
    def commits_as(self) -> Generation:
        """The member id and the generation or epoch for a commit. Raises RebalanceInProgressError, CommitFailedError."""

    @abstractmethod
    def fetches_as(self) -> Generation | None:
        """The member id and the epoch for an OffsetFetch; None by the classic protocol, where it has none."""

    @abstractmethod
    def commit_error(self, code: ErrorCode, sent: Generation) -> ClientError:
        """The exception for a commit, sent as ``sent``, that returned ``code``. Call it before ``commit_answered``."""


def _answer_of(result: Any) -> Answered | None:
    """The event cause if ``result`` is a response; None for the result of a callback or an assignor, which keep theirs."""
    if isinstance(result, MetadataSnapshot):
        return Answered("Metadata", "NONE")
    name = type(result).__name__
    if not name.endswith("Response"):
        return None
    return Answered(name.removesuffix("Response"), ErrorCode(getattr(result, "error_code", 0)).name)
