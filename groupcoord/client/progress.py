"""How far a rebalance is, what it waits for, and what becomes of it when a step fails."""

import enum
from collections.abc import Callable

from groupcoord.assignors import TopicPartition
from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client.errors import BrokerError, DisconnectedError
from groupcoord.client.member import Member, MemberState, in_order
from groupcoord.client.verdicts import Verdict
from groupcoord.protocol.errors import ErrorCode


class Phase(enum.Enum):
    """What the rebalance waits for."""

    IDLE = "nothing: the next step can begin"
    COMMITTING = "the commit of what was consumed"
    COMMITTED = "the user, to tell it what it gives up"
    GIVING_UP = "the user's callback about what it gives up"
    JOINING = "the other members"
    LEARNING = "the topics, to assign them"
    ASSIGNING = "the assignor"
    SYNCING = "the leader"
    SYNCED = "the user, to tell it what has changed"
    REVOKING = "the user's callback about what the assignment takes away"
    TAKING = "the user's callback about what it gets"
    BACKING_OFF = "the right moment to try again"


_IN_A_GENERATION = (Phase.LEARNING, Phase.ASSIGNING, Phase.SYNCING)
_WITH_THE_USER = (Phase.GIVING_UP, Phase.REVOKING, Phase.TAKING)


class Progress:
    """The one thing that a rebalance waits for at a time."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.phase = Phase.IDLE
        self.ticket = 0
        """Of the action whose answer is awaited, if it is one."""
        self.retry_at_ms: int | None = None
        self._attempts = 0

    @property
    def with_the_user(self) -> bool:
        """Is a callback under way?"""
        return self.phase in _WITH_THE_USER

    @property
    def overtaken(self) -> bool:
        """Is it waiting for something of a generation that the member is not in any more?"""
        return self.phase in _IN_A_GENERATION and self._member.state is not MemberState.COMPLETING_REBALANCE

    def stop_waiting(self) -> None:
        """Whatever it waits for is of no use any more."""
        self.retry_at_ms = None
        self.phase = Phase.IDLE
        if self._member.is_open(self.ticket):
            self._member.abandon(self.ticket)

    def expire(self) -> None:
        """It may be time to try again."""
        if self.retry_at_ms is not None and self.retry_at_ms <= self._member.now_ms:
            self.retry_at_ms = None
            self.phase = Phase.IDLE

    def succeeded(self) -> None:
        """The next failure is the first one again."""
        self._attempts = 0

    def tell(
        self,
        phase: Phase,
        news: a.News,
        partitions: frozenset[TopicPartition],
        told: Callable[[Exception | None], None],
    ) -> None:
        """Have the user's callback called; ``told`` is given what it raised, or None."""
        member = self._member
        self.phase = phase

        def returned(error: Exception | None) -> None:
            member.note(e.PartitionsTold, news=news.value, partitions=in_order(partitions))
            told(error)

        self.ticket = member.ask(
            lambda ticket: a.Tell(ticket, news, in_order(partitions)), lambda _: returned(None), returned
        )

    def refused(self, request: str, code: ErrorCode, verdict: Verdict) -> None:
        """Do what the error code asks for."""
        member = self._member
        if verdict is Verdict.FAIL:
            member.fail(BrokerError(code, request))
            return
        member.note(e.RequestRefused, request=request, error=code.name, then=verdict.value)
        if verdict in (Verdict.NEW_MEMBER, Verdict.NEW_GENERATION):
            member.reset(f"{request} was answered {code.name}", forget_id=verdict is Verdict.NEW_MEMBER)
        else:
            member.request_rejoin(f"rebalance failed due to {code.name}")
        if verdict is Verdict.SEARCH:
            member.lose_coordinator(f"it answered {request} with {code.name}")
        if verdict in (Verdict.SEARCH, Verdict.RETRY):
            self._back_off()
        else:
            self.phase = Phase.IDLE

    def broken(self, request: str, error: Exception, coordinator: a.Coordinator | None) -> None:
        """There was no answer at all."""
        member = self._member
        if not isinstance(error, DisconnectedError):
            member.fail(error)
            return
        member.note(e.RequestRefused, request=request, error=str(error), then=Verdict.SEARCH.value)
        if coordinator is not None and member.coordinator == coordinator:
            member.lose_coordinator(str(error))
        member.request_rejoin(f"rebalance failed due to {type(error).__name__}")
        self._back_off()

    def _back_off(self) -> None:
        member = self._member
        self.phase = Phase.BACKING_OFF
        self.retry_at_ms = member.now_ms + member.backoff.delay_ms(self._attempts)
        self._attempts += 1
