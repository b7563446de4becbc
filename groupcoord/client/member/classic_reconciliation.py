"""What a member owns changes: :class:`Revocation` before it joins (``onJoinPrepare``), :class:`AssignmentApplier` after it has
synced (``onJoinComplete``), which also revokes what the cooperative protocol takes away (KIP-429)."""

from groupcoord.assignors import RebalanceProtocol, TopicPartition, read_assignment
from groupcoord.client.client_errors import AssignorFailedError
from groupcoord.client.member import actions as a
from groupcoord.client.member import listener_events as e
from groupcoord.client.member.context import (
    MemberContext,
    MemberState,
    RebalancePhase,
    RebalanceProgress,
    callback_failed,
    in_order,
)
from groupcoord.protocol.errors import WireError


class Revocation:
    """Revokes everything if eager, unsubscribed topics if cooperative; without a generation all partitions are lost."""

    def __init__(self, member: MemberContext, progress: RebalanceProgress) -> None:
        self._member = member
        self._progress = progress

    def prepare(self) -> bool:
        """Commit first, with auto-commit. Returns whether the revocation has begun."""
        member = self._member
        if self._to_revoke() is not None and not member.user_present:
            return False
        member.prepare_needed = False
        if member.settings.auto_commit and member.state is MemberState.STABLE and member.owned:
            if member.protocol is RebalanceProtocol.EAGER:
                member.add_action(a.StopDelivery(member.owned))
            self._progress.phase = RebalancePhase.COMMITTING
            # A rebalance takes no longer than a member may be away, so there is no use in committing for longer.
            timeout_ms = member.settings.max_poll_interval_ms
            self._progress.ticket = member.start_action(
                lambda ticket: a.CommitOffsets(ticket, timeout_ms),
                lambda _: self._committed(),
                lambda _: self._committed(),
            )
            return True
        self._progress.phase = RebalancePhase.COMMITTED
        return True

    def _committed(self) -> None:
        self._progress.phase = RebalancePhase.COMMITTED

    def _to_revoke(self) -> tuple[a.CallbackKind, frozenset[TopicPartition]] | None:
        """The callback that is due before the member joins, and its partitions."""
        member = self._member
        if member.has_no_generation:
            return (a.CallbackKind.LOST, member.owned) if member.owned else None
        if member.protocol is RebalanceProtocol.EAGER:
            return a.CallbackKind.REVOKED, member.owned
        unwanted = frozenset(owned for owned in member.owned if owned[0] not in member.subscription)
        return (a.CallbackKind.REVOKED, unwanted) if unwanted else None

    def revoke(self) -> bool:
        """Call the callback once the user polls. Returns whether the step is done or under way."""
        member = self._member
        revoking = self._to_revoke()
        if revoking is None:
            self._done()
            return True
        if not member.user_present:
            return False
        news, partitions = revoking

        def returned(error: Exception | None) -> None:
            member.owned -= partitions
            member.add_action(a.SetOwned(member.owned))
            if error is not None:
                member.add_action(a.RaiseError(callback_failed(news, error), final=False))
            self._done()

        self._progress.invoke_callback(RebalancePhase.REVOKING_BEFORE_JOIN, news, partitions, returned)
        return True

    def _done(self) -> None:
        self._progress.phase = RebalancePhase.IDLE


SHORTEST_ASSIGNMENT = 2
"""Bytes: the version that every assignment begins with."""


class AssignmentApplier:
    """Applies the assignment of a SyncGroup response, and calls the callbacks for what changes."""

    def __init__(self, member: MemberContext, progress: RebalanceProgress) -> None:
        self._member = member
        self._progress = progress
        self.assignment = b""
        """The assignment of this member, in bytes."""
        self._error: Exception | None = None

    def complete(self) -> None:
        """Apply the assignment; the user polls, so callbacks may run (``onJoinComplete``)."""
        member = self._member
        if member.state is not MemberState.STABLE:
            self._progress.phase = RebalancePhase.IDLE  # the generation ended before its assignment was applied
            return
        try:
            assigned = self._read()
        except AssignorFailedError as failure:
            member.fail(failure)
            return
        member.prepare_needed = True
        if any(topic not in member.subscription for topic, _ in assigned):
            self._progress.phase = RebalancePhase.IDLE
            member.request_rejoin("received assignment does not match the current subscription")
            return
        new = frozenset(assigned)
        cooperative = member.protocol is RebalanceProtocol.COOPERATIVE
        gives_up = member.owned - new if cooperative else frozenset()
        member.emit(
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

        def returned(error: Exception | None) -> None:
            if error is not None:
                self._error = callback_failed(a.CallbackKind.REVOKED, error)
            if member.ending:
                member.owned -= gives_up
                member.add_action(a.SetOwned(member.owned))
                self._progress.phase = RebalancePhase.IDLE
                return
            member.request_rejoin("need to revoke partitions and re-join")
            self._take(assigned)

        self._progress.invoke_callback(RebalancePhase.REVOKING, a.CallbackKind.REVOKED, gives_up, returned)

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
            self._error = self._error or callback_failed(a.CallbackKind.ASSIGNED, error)
        gained = frozenset(assigned) - member.owned
        member.owned = frozenset(assigned)
        member.add_action(a.SetOwned(member.owned))

        def returned(error: Exception | None) -> None:
            first = self._error or (None if error is None else callback_failed(a.CallbackKind.ASSIGNED, error))
            if first is not None:
                member.add_action(a.RaiseError(first, final=False))
            self._progress.phase = RebalancePhase.IDLE

        self._progress.invoke_callback(RebalancePhase.APPLYING, a.CallbackKind.ASSIGNED, gained, returned)
