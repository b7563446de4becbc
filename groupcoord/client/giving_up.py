"""Before a member joins: it gives up what it must, and what it consumed is committed first (``onJoinPrepare``)."""

from groupcoord.assignors import RebalanceProtocol, TopicPartition
from groupcoord.client import actions as a
from groupcoord.client.member import Member, MemberState, callback_failed
from groupcoord.client.progress import Phase, Progress


class GivingUp:
    """Everything under the eager protocol, what is not wanted any more under the cooperative one, all if it is lost anyway."""

    def __init__(self, member: Member, progress: Progress) -> None:
        self._member = member
        self._progress = progress

    def prepare(self) -> bool:
        """Begin: commit, if that is wanted; has it begun?"""
        member = self._member
        if self._to_give_up() is not None and not member.user_present:
            return False
        member.prepare_needed = False
        if member.settings.auto_commit and member.state is MemberState.STABLE and member.owned:
            if member.protocol is RebalanceProtocol.EAGER:
                member.do(a.Hold(member.owned))
            self._progress.phase = Phase.COMMITTING
            # A rebalance takes no longer than a member may be away, so there is no use in committing for longer.
            timeout_ms = member.settings.max_poll_interval_ms
            self._progress.ticket = member.ask(
                lambda ticket: a.Commit(ticket, timeout_ms), lambda _: self._committed(), lambda _: self._committed()
            )
            return True
        self._progress.phase = Phase.COMMITTED
        return True

    def _committed(self) -> None:
        self._progress.phase = Phase.COMMITTED

    def _to_give_up(self) -> tuple[a.News, frozenset[TopicPartition]] | None:
        """What the user is told before the member joins, if anything."""
        member = self._member
        if member.has_no_generation:
            return (a.News.LOST, member.owned) if member.owned else None
        if member.protocol is RebalanceProtocol.EAGER:
            return a.News.REVOKED, member.owned
        unwanted = frozenset(owned for owned in member.owned if owned[0] not in member.subscription)
        return (a.News.REVOKED, unwanted) if unwanted else None

    def give_up(self) -> bool:
        """Tell the user what it gives up, once it is there; was it?"""
        member = self._member
        giving_up = self._to_give_up()
        if giving_up is None:
            self._done()
            return True
        if not member.user_present:
            return False
        news, partitions = giving_up

        def told(error: Exception | None) -> None:
            member.owned -= partitions
            member.do(a.Own(member.owned))
            if error is not None:
                member.do(a.Raise(callback_failed(news, error), final=False))
            self._done()

        self._progress.tell(Phase.GIVING_UP, news, partitions, told)
        return True

    def _done(self) -> None:
        self._progress.phase = Phase.IDLE
