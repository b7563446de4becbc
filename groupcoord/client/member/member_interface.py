"""What members of both protocols are to their drivers: the events they take and the state they show."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client import client_errors
from groupcoord.client.client_errors import BrokerError, ClientError, DisconnectedError, ErrorReaction
from groupcoord.client.member import actions as a
from groupcoord.client.member import listener_events as e
from groupcoord.client.member.actions import MetadataSnapshot
from groupcoord.client.member.context import Generation, MemberActions, MemberSettings
from groupcoord.core.events import AdminAction, Answered
from groupcoord.protocol.apis.find_coordinator import GROUP, FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.errors import ErrorCode


class GroupMember(ABC):
    """A member of a group without I/O, by either protocol: events come in, actions come out.

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
        """Subscribe to what matches ``pattern``. Raises ValueError: only members of the consumer protocol can."""
        raise ValueError("a subscription by pattern needs group_protocol=consumer")

    @abstractmethod
    def unsubscribe(self, now_ms: int) -> list[a.Action]:
        """Leave the group, after the callback for what is owned, or end the manual assignment; it may subscribe again."""

    def assign(self, now_ms: int) -> list[a.Action]:
        """The user assigns partitions itself: the member, which must not be subscribed, only looks for the coordinator."""
        self._shared.begin_event(now_ms, AdminAction("assign"))
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
        """The poll of the user has returned: it works on its records now, and no callback begins until the next poll."""

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
        """A commit that went out as ``sent`` was answered ``code``."""

    @abstractmethod
    def leave(self, reason: str, now_ms: int) -> list[a.Action]:
        """Close the member; ``MembershipEnded`` is the last action. Callbacks may run until then."""

    @abstractmethod
    def expire(self, now_ms: int) -> list[a.Action]:
        """Do what is due at ``now_ms``."""

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
        """Has it its assignment, with nothing left to do about it?"""

    @property
    @abstractmethod
    def generation(self) -> Generation:
        """Its member id with its generation or, by the consumer protocol, its epoch; -1 if it is in none."""

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
        """Does the user assign partitions itself?"""
        return self._shared.manual

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Its partitions."""
        return self._shared.owned

    @property
    @abstractmethod
    def watched_topics(self) -> frozenset[str]:
        """The topics whose metadata it needs."""

    @property
    @abstractmethod
    def in_callback(self) -> bool:
        """Is a callback running? No records are handed out meanwhile."""

    @abstractmethod
    def commits_as(self) -> Generation:
        """The member id and the generation or epoch for a commit. Raises RebalanceInProgressError, CommitFailedError."""

    @abstractmethod
    def fetches_as(self) -> Generation | None:
        """The member id and the epoch for a fetch of offsets; None where that names no member."""

    @abstractmethod
    def commit_error(self, code: ErrorCode, sent: Generation) -> ClientError:
        """The exception for a commit, sent as ``sent``, that was answered ``code``. Call it before ``commit_answered``."""


def _answer_of(result: Any) -> Answered | None:
    """The answer that ``result`` is; None for that of a callback or an assignor, which go on with what led to them."""
    if isinstance(result, MetadataSnapshot):
        return Answered("Metadata", "NONE")
    name = type(result).__name__
    if not name.endswith("Response"):
        return None
    return Answered(name.removesuffix("Response"), ErrorCode(getattr(result, "error_code", 0)).name)


class CoordinatorLookup:
    """Sends FindCoordinator to one broker after the other, with back-off, until one names the coordinator.

    Source: ``AbstractCoordinator.ensureCoordinatorReady``.
    """

    def __init__(self, member: MemberActions, on_found: Callable[[], None] = lambda: None) -> None:
        self._member = member
        self._on_found = on_found
        self._ticket: int | None = None
        self._attempts = 0
        self.retry_at_ms: int | None = None

    def begin(self) -> None:
        """Send FindCoordinator, unless there is no group, the coordinator is known, or a request or back-off is under way."""
        member = self._member
        group = member.settings.group_id
        if not group or member.coordinator is not None or self._ticket is not None or self.retry_at_ms is not None:
            return
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(group,))
        self._ticket = member.start_action(
            lambda ticket: a.SendRequest(ticket, None, request, member.settings.request_timeout_ms),
            self._answered,
            self._failed,
        )

    def expire(self) -> None:
        """End the back-off if its time is over."""
        if self.retry_at_ms is not None and self.retry_at_ms <= self._member.now_ms:
            self.retry_at_ms = None

    def _answered(self, response: FindCoordinatorResponse) -> None:
        member = self._member
        self._ticket = None
        found = next((each for each in response.coordinators if each.key == member.settings.group_id), None)
        if found is None:
            member.fail(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "FindCoordinator answered for another group"))
            return
        code = ErrorCode(found.error_code)
        match client_errors.to_find_coordinator(code):
            case ErrorReaction.GO_ON:
                self._attempts = 0
                member.coordinator = a.CoordinatorNode(found.node_id, found.host, found.port)
                self._on_found()
                member.emit(e.CoordinatorFound, coordinator=str(member.coordinator))
            case ErrorReaction.RETRY:
                self._retry(code.name)
            case _:
                member.fail(BrokerError(code, "no coordinator"))

    def _failed(self, error: Exception) -> None:
        self._ticket = None
        if isinstance(error, DisconnectedError):
            self._retry(str(error))
        else:
            self._member.fail(error)

    def _retry(self, why: str) -> None:
        member = self._member
        self.retry_at_ms = member.now_ms + member.backoff.delay_ms(self._attempts)
        self._attempts += 1
        member.emit(e.RequestFailed, request="FindCoordinator", error=why, then=ErrorReaction.RETRY.value)
