"""The settings of a member, and the state that its parts share.

The parts of a classic member (:mod:`heartbeat`, :mod:`rebalance`, :mod:`membership`) share one :class:`MemberContext`; each is
one concern of Kafka's ``AbstractCoordinator``. They do no I/O: they append actions, which a driver carries out. What members of
both protocols share is :class:`MemberActions`.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupcoord.assignors import Assignor, RebalanceProtocol, TopicPartition
from groupcoord.client.client_errors import (
    CallbackFailedError,
)
from groupcoord.client.member import actions as a
from groupcoord.client.member import listener_events as e
from groupcoord.client.member.actions import MetadataSnapshot
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """The settings of one member; times are milliseconds. Raises ValueError for what can never work."""

    group_id: str
    """"" for a consumer that is in no group: its member never joins."""
    instance_id: str | None = None
    """``group.instance.id``: makes it a static member, which keeps its partitions while it restarts (KIP-345)."""
    rack_id: str | None = None
    """``client.rack``: assignors and leaders prefer what is near (KIP-881, KIP-392)."""
    session_timeout_ms: int = 45_000
    """Without a heartbeat for so long, the coordinator takes the member for dead."""
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """If the user does not ask for records for so long, the member leaves; so long a rebalance waits for the member, too."""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    auto_commit: bool = True
    """Are positions committed before partitions are revoked?"""
    remote_assignor: str | None = None
    """``group.remote.assignor``: of the consumer protocol, the assignor that the coordinator should use."""

    def __post_init__(self) -> None:
        if self.instance_id == "":
            raise ValueError("an instance id is not empty")
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} must be above 0 and below "
                f"session_timeout_ms={self.session_timeout_ms}"
            )
        if self.max_poll_interval_ms <= 0 or self.request_timeout_ms <= 0:
            raise ValueError("max_poll_interval_ms and request_timeout_ms are above 0")
        if not 0 <= self.retry_backoff_ms <= self.retry_backoff_max_ms:
            raise ValueError(
                f"retry_backoff_ms={self.retry_backoff_ms} is between 0 and "
                f"retry_backoff_max_ms={self.retry_backoff_max_ms}"
            )


JITTER = 0.2
_ENOUGH_DOUBLINGS = 62


class ExponentialBackoff:
    """Waits from ``first_ms`` up to ``most_ms``, give or take a fifth; ``chance`` answers a number from 0 up to 1."""

    def __init__(self, first_ms: int, most_ms: int, chance: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._chance = chance

    def delay_ms(self, attempts: int) -> int:
        """The delay after ``attempts`` failures in a row, not counting the latest. Source: ``ExponentialBackoff``."""
        wait = min(self._first_ms << min(attempts, _ENOUGH_DOUBLINGS), self._most_ms)
        return round(wait * (1 + JITTER * (2 * self._chance() - 1)))


PROTOCOL_TYPE = "consumer"
NO_GENERATION_ID = -1
LONGEST_REASON = 255
"""Characters of a reason that go over the wire (``JoinGroupRequest.maybeTruncateReason``)."""


class MemberState(enum.Enum):
    """The state of a member in its group (``AbstractCoordinator.MemberState``)."""

    UNJOINED = "Unjoined"
    """It is not in a group."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """JoinGroup is sent and not answered."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """It is in a generation and has no assignment yet."""
    STABLE = "Stable"
    """It has its assignment."""


class Generation(NamedTuple):
    """The generation of the group, the member id in it, and the assignor that the group chose."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = ""
    protocol_name: str | None = None


NO_GENERATION = Generation()
"""Of who commits without being a member: its user assigns partitions itself."""


class MemberActions(ABC):
    """What members of both protocols share: the actions of the event that is handled, their tickets, and the coordinator."""

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
        # Of the event that is being handled.
        self.now_ms = 0
        self.cause: Cause
        self._actions: list[a.Action] = []
        self._tickets = 0
        self._pending: dict[int, tuple[Callable[[Any], None], Callable[[Exception], None], Cause]] = {}

    @property
    @abstractmethod
    def member_id(self) -> str:
        """The id of the member, "" as long as it has none."""

    # Events and actions.

    def begin_event(self, now_ms: int, cause: Cause) -> None:
        """An event came in at ``now_ms``: it is the ``cause`` of the actions that follow."""
        self.now_ms, self.cause = now_ms, cause

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
        """Add an action with a ticket, which is returned; ``answered`` or ``failed`` is called with its result."""
        self._tickets += 1
        self._pending[self._tickets] = (answered, failed, self.cause)
        self.add_action(make(self._tickets))
        return self._tickets

    def is_pending(self, ticket: int) -> bool:
        """Is the answer to ``ticket`` still awaited?"""
        return ticket in self._pending

    def cause_of(self, ticket: int) -> Cause:
        """What the action of ``ticket`` was begun for; that of this event if it was cancelled."""
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
    """The state that the parts of a member of the classic protocol share."""

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
        """Is a JoinGroup or SyncGroup under way?"""
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
    """``reason``, cut to the length that goes over the wire."""
    return reason[:LONGEST_REASON]


def callback_failed(news: a.CallbackKind, error: Exception) -> CallbackFailedError:
    """The exception for an ``error`` that a callback of the user raised."""
    failure = CallbackFailedError(f"the callback for {news.value} partitions raised {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
