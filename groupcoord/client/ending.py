"""How a member ends: because its user closes it, or because something cannot be mended.

Sources: ``ConsumerCoordinator.onLeavePrepare``, ``AbstractCoordinator.maybeLeaveGroup``.
"""

from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client.member import Member, MemberState, callback_failed, in_order, shortened
from groupcoord.client.rebalance import Rebalance
from groupcoord.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity


class Ending:
    """Says goodbye to the user and to the group."""

    def __init__(self, member: Member, rebalance: Rebalance) -> None:
        self._member = member
        self._rebalance = rebalance
        self.failure: Exception | None = None
        """What ended the member, if it did not just close."""
        self._raised = False
        self._closing: str | None = None
        self.telling = False
        self._parting: int | None = None
        self._left = False

    def fail(self, error: Exception) -> None:
        """Something cannot be mended. The group is told at once, so that it goes on without this member.

        Deviation: after some of these errors Kafka's consumer tries again at the next poll. A member of this client that
        failed stays failed, so that no error is overlooked in a loop; a new consumer is a fresh start.
        """
        member = self._member
        if member.ending:
            return
        member.ending = True
        self.failure = error
        member.note(e.MemberFailed, error=str(error))
        self._rebalance.stop()
        if member.owned:
            member.do(a.Hold(member.owned))
        self.leave_group(f"it failed: {type(error).__name__}")
        member.reset("the member failed", forget_id=True)

    def close(self, reason: str) -> None:
        """The user is done with the group."""
        if self._closing is None:
            self._closing = reason
            self._member.ending = True
            self._rebalance.stop()

    def step(self) -> None:
        """Go on, as far as that is possible: the user is told only while it listens, and the group after the user."""
        member = self._member
        if self.telling or self._rebalance.progress.with_the_user:
            return
        if member.owned:
            if member.user_present:
                self._tell_user()
            return
        if self.failure is not None and not self._raised:
            self._raised = True
            member.do(a.Raise(self.failure, final=True))
        if self._closing is not None and not self._left and self._parting is None:
            self.leave_group(self._closing)
            member.state = MemberState.UNJOINED
            if self._parting is None:
                self._left = True
                member.do(a.Left())

    def _tell_user(self) -> None:
        """Nothing belongs to it any more, and the user is to know why (``onLeavePrepare``)."""
        member = self._member
        lost = member.has_no_generation or member.rebalancing
        news = a.News.LOST if lost else a.News.REVOKED
        partitions = in_order(member.owned)

        def told(error: Exception | None) -> None:
            self.telling = False
            member.note(e.PartitionsTold, news=news.value, partitions=partitions)
            member.owned = frozenset()
            member.do(a.Own(member.owned))
            if error is not None:
                member.do(a.Raise(callback_failed(news, error), final=False))

        self.telling = True
        member.ask(lambda ticket: a.Tell(ticket, news, partitions), lambda _: told(None), told)

    def leave_group(self, reason: str) -> None:
        """Send LeaveGroup, unless the member is static, or none, or nobody knows where to send it."""
        member = self._member
        coordinator, member_id = member.coordinator, member.generation.member_id
        static = member.settings.instance_id is not None
        if static or coordinator is None or member.state is MemberState.UNJOINED or not member_id:
            return
        member.note(e.LeaveSent, reason=reason)
        request = LeaveGroupRequest(
            group_id=member.settings.group_id,
            member_id=member_id,
            members=(MemberIdentity(member_id=member_id, reason=shortened(reason)),),
        )
        # Whatever comes back, the member has done what it could; its session would end by itself.
        self._parting = member.ask(
            lambda ticket: a.Send(ticket, coordinator, request, member.settings.request_timeout_ms),
            lambda _: self._parted(),
            lambda _: self._parted(),
        )

    def _parted(self) -> None:
        self._parting = None
