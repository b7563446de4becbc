"""What a member is at this moment, and the few things that every part of it does.

The parts (:mod:`search`, :mod:`heart`, :mod:`rebalance`) share one :class:`Member`; each is one concern of Kafka's
``AbstractCoordinator``. None of them does anything by itself: they leave actions behind, which the shell carries out.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from groupcoord.assignors import Assignor, RebalanceProtocol, TopicPartition
from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client.backoff import Backoff
from groupcoord.client.errors import CallbackFailedError
from groupcoord.client.settings import MemberSettings
from groupcoord.client.topics_view import TopicsView
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Cause

PROTOCOL_TYPE = "consumer"
NO_GENERATION_ID = -1
LONGEST_REASON = 255
"""Characters of a reason that go over the wire (``JoinGroupRequest.maybeTruncateReason``)."""


class MemberState(enum.Enum):
    """How far a member is in its group (``AbstractCoordinator.MemberState``)."""

    UNJOINED = "Unjoined"
    """It is in no group."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """JoinGroup is sent and not answered."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """It is in a generation and has no assignment yet."""
    STABLE = "Stable"
    """It has its assignment."""


class Generation(NamedTuple):
    """As what a member speaks: the generation of the group, its id in it, and the assignor that the group chose."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = ""
    protocol_name: str | None = None


NO_GENERATION = Generation()


class Member:
    """The state that the parts of a member share."""

    def __init__(
        self, settings: MemberSettings, assignors: Mapping[str, Assignor], protocol: RebalanceProtocol, backoff: Backoff
    ) -> None:
        self.settings = settings
        self.assignors = assignors
        self.protocol = protocol
        self.backoff = backoff
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.coordinator: a.Coordinator | None = None
        self.owned: frozenset[TopicPartition] = frozenset()
        self.subscription: frozenset[str] = frozenset()
        self.user_present = False
        """Does the user wait for records right now? Only then may callbacks run: it is not busy with any."""
        self.rejoin_needed = True
        self.rejoin_reason = ""
        self.prepare_needed = True
        """Has what the member owns still to be given up before it joins?"""
        self.topics = TopicsView()
        self.ending = False
        """Is it leaving for good, or has it failed? Then no rebalance begins any more."""
        self.on_failure: Callable[[Exception], None]
        # Of the turn that is under way.
        self.now_ms = 0
        self.cause: Cause
        self._actions: list[a.Action] = []
        self._tickets = 0
        self._open: dict[int, tuple[Callable[[Any], None], Callable[[Exception], None]]] = {}

    # Turns.

    def begin(self, now_ms: int, cause: Cause) -> None:
        """Something came in at ``now_ms``; what the parts do next is its doing."""
        self.now_ms, self.cause = now_ms, cause

    def take_actions(self) -> list[a.Action]:
        """What is to be done now."""
        taken, self._actions = self._actions, []
        return taken

    def do(self, action: a.Action) -> None:
        """Have ``action`` carried out."""
        self._actions.append(action)

    def note(self, event: type[e.MemberEvent], **fields: Any) -> None:
        """Say that something happened."""
        who = {"group": self.settings.group_id, "member": self.generation.member_id}
        self.do(EmitEvent(event(at_ms=self.now_ms, cause=self.cause, **who, **fields)))

    # Questions and their answers.

    def ask(
        self,
        make: Callable[[int], a.Action],
        answered: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> int:
        """Have an action carried out that is answered: one of the two functions is called then. Returns its ticket."""
        self._tickets += 1
        self._open[self._tickets] = (answered, failed)
        self.do(make(self._tickets))
        return self._tickets

    def is_open(self, ticket: int) -> bool:
        """Is the answer to ``ticket`` still awaited?"""
        return ticket in self._open

    def answer(self, ticket: int, result: Any) -> None:
        """The action of ``ticket`` succeeded; nothing happens if it was abandoned."""
        if ticket in self._open:
            self._open.pop(ticket)[0](result)

    def answer_failure(self, ticket: int, error: Exception) -> None:
        """The action of ``ticket`` failed; nothing happens if it was abandoned."""
        if ticket in self._open:
            self._open.pop(ticket)[1](error)

    def abandon(self, ticket: int) -> None:
        """The answer to ``ticket`` is not wanted any more."""
        del self._open[ticket]
        self.do(a.Abandon(ticket))

    # What any part may find out.

    @property
    def rebalancing(self) -> bool:
        """Is the member between two generations?"""
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    @property
    def has_no_generation(self) -> bool:
        """Has it lost the generation in which it owned what it owns?"""
        return self.generation.generation_id == NO_GENERATION_ID or not self.generation.member_id

    def request_rejoin(self, reason: str) -> None:
        """Join again as soon as possible."""
        self.rejoin_needed, self.rejoin_reason = True, reason
        self.note(e.RejoinWanted, reason=reason)

    def reset(self, reason: str, *, forget_id: bool) -> None:
        """The generation is over for this member; it joins again (``resetStateAndRejoin``)."""
        self.state = MemberState.UNJOINED
        self.note(e.MembershipReset, reason=reason, forgets_id=forget_id)
        self.generation = NO_GENERATION if forget_id else Generation(member_id=self.generation.member_id)
        self.request_rejoin(reason)
        self.prepare_needed = True

    def lose_coordinator(self, reason: str) -> None:
        """Whoever coordinates the group, it is not who it was."""
        if self.coordinator is None:
            return
        self.note(e.CoordinatorLost, coordinator=str(self.coordinator), reason=reason)
        self.do(a.Disconnect(self.coordinator))
        self.coordinator = None

    def fail(self, error: Exception) -> None:
        """What went wrong cannot be mended: the member ends, and its user is told why."""
        self.on_failure(error)


def in_order(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Partitions as callbacks get them: by topic and number."""
    return tuple(sorted(partitions))


def shortened(reason: str) -> str:
    """``reason`` as it may go over the wire."""
    return reason[:LONGEST_REASON]


def callback_failed(news: a.News, error: Exception) -> CallbackFailedError:
    """What the user is told of an ``error`` in its own callback."""
    failure = CallbackFailedError(f"the callback for {news.value} partitions raised {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
