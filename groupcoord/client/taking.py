"""After a member has synced: it takes its assignment (``onJoinComplete``), and gives up what is not in it (KIP-429)."""

from groupcoord.assignors import RebalanceProtocol, TopicPartition, read_assignment
from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client.errors import AssignorFailedError
from groupcoord.client.member import Member, MemberState, callback_failed, in_order
from groupcoord.client.progress import Phase, Progress
from groupcoord.protocol.errors import WireError

SHORTEST_ASSIGNMENT = 2
"""Bytes: the version that every assignment begins with."""


class Taking:
    """From the bytes of an assignment to what the user has been told."""

    def __init__(self, member: Member, progress: Progress) -> None:
        self._member = member
        self._progress = progress
        self.assignment = b""
        """What the leader gave this member, as it came."""
        self._error: Exception | None = None

    def complete(self) -> None:
        """Take the assignment, once the user is there to be told (``onJoinComplete``)."""
        member = self._member
        if member.state is not MemberState.STABLE:
            self._progress.phase = Phase.IDLE  # the generation ended before anybody was told of it
            return
        try:
            assigned = self._read()
        except AssignorFailedError as failure:
            member.fail(failure)
            return
        member.prepare_needed = True
        if any(topic not in member.subscription for topic, _ in assigned):
            self._progress.phase = Phase.IDLE
            member.request_rejoin("received assignment does not match the current subscription")
            return
        new = frozenset(assigned)
        cooperative = member.protocol is RebalanceProtocol.COOPERATIVE
        gives_up = member.owned - new if cooperative else frozenset()
        member.note(
            e.Synced,
            generation=member.generation.generation_id,
            keeps=in_order(member.owned & new),
            gains=in_order(new - member.owned),
            gives_up=in_order(gives_up),
        )
        self._error = None
        if not gives_up:
            self._take(assigned)
            return

        def told(error: Exception | None) -> None:
            if error is not None:
                self._error = callback_failed(a.News.REVOKED, error)
            if member.ending:
                member.owned -= gives_up
                member.do(a.Own(member.owned))
                self._progress.phase = Phase.IDLE
                return
            member.request_rejoin("need to revoke partitions and re-join")
            self._take(assigned)

        self._progress.tell(Phase.REVOKING, a.News.REVOKED, gives_up, told)

    def _read(self) -> list[TopicPartition]:
        name = self._member.generation.protocol_name
        if len(self.assignment) < SHORTEST_ASSIGNMENT:
            raise AssignorFailedError(f"assignor {name}: the leader assigned nothing to this member, not even nothing")
        try:
            return read_assignment(self.assignment)
        except WireError as problem:
            raise AssignorFailedError(
                f"assignor {name}: what the leader assigned is unreadable: {problem}"
            ) from problem

    def _take(self, assigned: list[TopicPartition]) -> None:
        member = self._member
        try:
            member.assignors[str(member.generation.protocol_name)].on_assignment(
                assigned, member.generation.generation_id
            )
        except Exception as error:
            self._error = self._error or callback_failed(a.News.ASSIGNED, error)
        gained = frozenset(assigned) - member.owned
        member.owned = frozenset(assigned)
        member.do(a.Own(member.owned))

        def told(error: Exception | None) -> None:
            first = self._error or (None if error is None else callback_failed(a.News.ASSIGNED, error))
            if first is not None:
                member.do(a.Raise(first, final=False))
            self._progress.phase = Phase.IDLE

        self._progress.tell(Phase.TAKING, a.News.ASSIGNED, gained, told)
