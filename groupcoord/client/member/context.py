"""The state of a group member that its classes share: member state, generation, coordinator, and the actions to return.

The classes of a classic member (in :mod:`classic_heartbeat`, :mod:`classic_rebalance`, :mod:`classic_membership`), each one
concern of Kafka's ``AbstractCoordinator``, share one :class:`MemberContext`. :class:`MemberActions` is its base for both
protocols.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from groupcoord.assignors import Assignor, RebalanceProtocol, TopicPartition
from groupcoord.client.client_errors import (
    CallbackFailedError,
)
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import AdminAction, Cause

PROTOCOL_TYPE = "consumer"
NO_GENERATION_ID = -1
LONGEST_REASON = 255
"""The most characters of a reason that are sent (``JoinGroupRequest.maybeTruncateReason``)."""


class MemberState(enum.Enum):
    """The state of a member in its group (``AbstractCoordinator.MemberState``)."""

    UNJOINED = "Unjoined"
    """It is not in a group."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """JoinGroup is sent and not answered."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """It has joined a generation and has no assignment yet."""
    STABLE = "Stable"
    """It has its assignment."""


class Generation(NamedTuple):
    """The generation (or member epoch), the member id, and the assignor that the group chose."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = ""
    protocol_name: str | None = None


NO_GENERATION = Generation()
"""The generation of a commit by a consumer with manual assignment, which is not a member."""


class MemberActions(ABC):
    """The state that members of both protocols have: actions of the current event, pending tickets, coordinator."""

    def __init__(self, settings: MemberSettings, backoff: ExponentialBackoff) -> None:
        self.settings = settings
        self.backoff = backoff
        self.coordinator: a.CoordinatorNode | None = None
        self.owned: frozenset[TopicPartition] = frozenset()
        self.user_present = False
        """Does the user poll right now? Only then may callbacks run."""
        self.manual = False
        """Does the user assign partitions itself? Then the member stays out of the group, and commits as nobody."""
        self.topics = MetadataSnapshot()
        self.on_failure: Callable[[Exception], None]
        # The current event: its time, cause and actions.
        self.now_ms = 0
        self.cause: Cause
        self._actions: list[a.Action] = []
        self._tickets = 0
        self._pending: dict[int, tuple[Callable[[Any], None], Callable[[Exception], None], Cause]] = {}

    @property
    @abstractmethod
    def member_id(self) -> str:
        """The member id, "" as long as it has none."""

    # Events and actions.

    def begin_event(self, now_ms: int, cause: Cause) -> None:
        """Begin to handle an event at ``now_ms``; ``cause`` is that of the actions that follow."""
        self.now_ms, self.cause = now_ms, cause

    def begin_action(self, now_ms: int, action: str) -> None:
        """Begin what the member's application, or a test, wants it to do: ``leave``, ``poll`` …"""
        self.begin_event(now_ms, AdminAction(f"{self.member_id or 'newcomer'} is to {action}"))

    def take_actions(self) -> list[a.Action]:
        """The actions since the last call."""
        taken, self._actions = self._actions, []
        return taken

    def add_action(self, action: a.Action) -> None:
        """Add ``action`` to those of this event."""
        self._actions.append(action)

    def emit(self, event: type[e.MemberEvent], **fields: Any) -> None:
        """Emit an event of this member."""
        who = {"group": self.settings.group_id, "member": self.member_id}
        self.add_action(EmitEvent(event, self.now_ms, self.cause, who | fields))

    # Actions with tickets.

    def start_action(
        self,
        make: Callable[[int], a.Action],
        answered: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> int:
        """Add an action with a new ticket, and return the ticket; ``answered`` or ``failed`` is called with its result."""
        self._tickets += 1
        self._pending[self._tickets] = (answered, failed, self.cause)
        self.add_action(make(self._tickets))
        return self._tickets

    def invoke_callback(
        self, news: a.CallbackKind, partitions: frozenset[TopicPartition], done: Callable[[Exception | None], None]
    ) -> int:
        """Call a callback of the user, and return the ticket; ``done`` is called with the exception that it raised, or None."""
        ordered = in_order(partitions)

        def returned(error: Exception | None) -> None:
            self.emit(e.PartitionsTold, news=news.value, partitions=ordered)
            done(error)

        return self.start_action(
            lambda ticket: a.InvokeCallback(ticket, news, ordered), lambda _: returned(None), returned
        )

    def give_up(self, news: a.CallbackKind, done: Callable[[], None]) -> None:
        """Call a callback of the user for all owned partitions; when it returns, call ``done``, and own none of them."""

        def returned(error: Exception | None) -> None:
            done()
            self.owned = frozenset()
            self.add_action(a.SetOwned(self.owned))
            if error is not None:
                self.raise_callback_error(news, error)

        self.invoke_callback(news, self.owned, returned)

    def raise_callback_error(self, news: a.CallbackKind, error: Exception) -> None:
        """Raise to the user what its callback raised; the member goes on."""
        self.add_action(a.RaiseError(callback_failed(news, error), final=False))

    def is_pending(self, ticket: int) -> bool:
        """Is the result of ``ticket`` still awaited?"""
        return ticket in self._pending

    def cause_of(self, ticket: int) -> Cause:
        """The cause of the action with ``ticket``; that of the current event if it was cancelled."""
        return self._pending[ticket][2] if ticket in self._pending else self.cause

    def complete_action(self, ticket: int, result: Any) -> None:
        """The action of ``ticket`` succeeded; ignored if it was cancelled."""
        if ticket in self._pending:
            self._pending.pop(ticket)[0](result)

    def fail_action(self, ticket: int, error: Exception) -> None:
        """The action of ``ticket`` failed; ignored if it was cancelled."""
        if ticket in self._pending:
            self._pending.pop(ticket)[1](error)

    def cancel_action(self, ticket: int) -> None:
        """Cancel the action of ``ticket``."""
        del self._pending[ticket]
        self.add_action(a.CancelAction(ticket))

    # State.

    def lose_coordinator(self, reason: str) -> None:
        """The coordinator is not available, or no longer the coordinator: disconnect from it."""
        if self.coordinator is None:
            return
        self.emit(e.CoordinatorLost, coordinator=str(self.coordinator), reason=reason)
        self.add_action(a.Disconnect(self.coordinator))
        self.coordinator = None

    def fail(self, error: Exception) -> None:
        """A fatal error: the member ends, and ``error`` is raised to its user."""
        self.on_failure(error)


class MemberContext(MemberActions):
    """The state shared by the classes that make up a member of the classic protocol."""

    def __init__(
        self,
        settings: MemberSettings,
        assignors: Mapping[str, Assignor],
        protocol: RebalanceProtocol,
        backoff: ExponentialBackoff,
    ) -> None:
        super().__init__(settings, backoff)
        self.assignors = assignors
        self.protocol = protocol
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.subscription: frozenset[str] = frozenset()
        self.rejoin_needed = True
        self.rejoin_reason = ""
        self.prepare_needed = True
        """Must owned partitions be revoked before the next JoinGroup?"""
        self.ending = False
        """Has it been closed, or has it failed? Then no rebalance begins any more."""

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave it."""
        return self.generation.member_id

    @property
    def rebalancing(self) -> bool:
        """Is a JoinGroup or SyncGroup in flight?"""
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    @property
    def has_no_generation(self) -> bool:
        """Has the member lost the generation of its owned partitions?"""
        return self.generation.generation_id == NO_GENERATION_ID or not self.generation.member_id

    def request_rejoin(self, reason: str) -> None:
        """Join again as soon as possible."""
        self.rejoin_needed, self.rejoin_reason = True, reason
        self.emit(e.RejoinWanted, reason=reason)

    def reset(self, reason: str, *, forget_id: bool) -> None:
        """The generation is over for this member; it joins again (``resetStateAndRejoin``)."""
        self.state = MemberState.UNJOINED
        self.emit(e.MembershipReset, reason=reason, forgets_id=forget_id)
        self.generation = NO_GENERATION if forget_id else Generation(member_id=self.generation.member_id)
        self.request_rejoin(reason)
        self.prepare_needed = True


def in_order(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Partitions sorted by topic and number, as callbacks get them."""
    return tuple(sorted(partitions))


def shortened(reason: str) -> str:
    """``reason``, cut to the longest length that is sent."""
    return reason[:LONGEST_REASON]


def callback_failed(news: a.CallbackKind, error: Exception) -> CallbackFailedError:
    """The exception for an ``error`` that a callback of the user raised."""
    failure = CallbackFailedError(f"the callback for {news.value} partitions raised {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
