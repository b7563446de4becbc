"""Could the simulation find a fault? Deliberate ones, of which each breaks a promise: every invariant can fail.

A fault replaces functions of the product while it is applied; nothing else knows of it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from groupcoord.assignors.sticky import assignor as sticky
from groupcoord.client import leading, verdicts
from groupcoord.client.verdicts import Verdict
from groupcoord.coordinator import loading, offset_commit
from groupcoord.coordinator.classic import heartbeat, rebalance, session
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.core.timeline import TimelineMap
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import SyncGroupResponse
from groupcoord.testing.simulation.generate import USUAL, Mix
from groupcoord.testing.simulation.plan import Kind


class Patch(NamedTuple):
    """``make`` is given what is called ``name`` in ``owner`` and returns what stands in its place."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


class Ablation(NamedTuple):
    """A deliberate fault. ``so`` says in words what it does, ``breaks`` is the invariant that finds it."""

    name: str
    so: str
    breaks: str
    patches: Sequence[Patch]
    mix: Mix = USUAL
    """Where what it takes is rare."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """For as long as the block lasts, the fault is there."""
        with ExitStack() as stack:
            for owner, name, make in self.patches:
                stack.enter_context(patch.object(owner, name, make(getattr(owner, name))))
            yield


def _generation_back(right: Any) -> Any:
    def prepare(shard: Any, ctx: Any, group: Any, reason: str) -> None:
        group.generation_id = max(group.generation_id - 1, 0)
        right(shard, ctx, group, reason)

    return prepare


def _leader_stays(right: Any) -> Any:
    def remove(self: Any, member: Any) -> None:
        leader = self.leader_id
        right(self, member)
        self.leader_id = leader

    return remove


def _last_ones_favourite(_: Any) -> Any:
    return lambda self, _: self.members.values()[-1].protocols[0][0]


def _any_metadata(_: Any) -> Any:
    return lambda self, protocol: dict(self.protocols).get(protocol, self.protocols[0][1])


def _syncs_stay(right: Any) -> Any:
    def cancel(self: Any, key: Any) -> None:
        if key.kind != "sync":
            right(self, key)

    return cancel


def _twice_as_long(right: Any) -> Any:
    def restart(shard: Any, ctx: Any, group: Any, member: Any, timeout_ms: int | None = None) -> None:
        right(shard, ctx, group, member, 2 * member.session_timeout_ms if timeout_ms is None else timeout_ms)

    return restart


def _answered_again(right: Any) -> Any:
    def answer_syncs(shard: Any, ctx: Any, group: Any, error: ErrorCode) -> None:
        parked = [member.parked_sync for member in group.members.values() if member.parked_sync is not None]
        right(shard, ctx, group, error)
        for call in parked:
            ctx.reply(call, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b""))

    return answer_syncs


def _all_to_all(right: Any) -> Any:
    def written(assignment: Any) -> Any:
        everything = [partition for partitions in assignment.values() for partition in partitions]
        return right(dict.fromkeys(assignment, everything))

    return written


def _first_stays(right: Any) -> Any:
    def put(self: Any, key: Any, value: Any) -> None:
        if key not in self:
            right(self, key, value)

    return put


def _forgets_assignments(right: Any) -> Any:
    def group_of(*arguments: Any) -> Any:
        group = right(*arguments)
        for member in group.members.values():
            member.assignment = b""
        return group

    return group_of


def _stranger_is_fenced(right: Any) -> Any:
    def known_member(group: Any, member_id: str, instance_id: str | None) -> Any:
        try:
            return right(group, member_id, instance_id)
        except ApiError as refusal:
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID, refusal.message) from refusal

    return known_member


def _rebalance_is_no_news(right: Any) -> Any:
    return lambda code: Verdict.GO_ON if code == ErrorCode.REBALANCE_IN_PROGRESS else right(code)


def _somebody(right: Any) -> Any:
    def known_member(group: Any, member_id: str, instance_id: str | None) -> Any:
        try:
            return right(group, member_id, instance_id)
        except ApiError:
            return group.members.values()[0]

    return known_member


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


_PAUSES = Mix(members=(2, 4), kinds=(Kind.PAUSE,), actions=(12, 14), commits=(15_000,))
"""Members that are thrown out while they stand still, and commit as soon as they go on."""

_LATE = Mix(
    members=(1, 2),
    kinds=(Kind.SLOW, Kind.RESET, Kind.REJOIN),
    actions=(120, 120),
    faults_ms=900_000,
    paces=((45_000, 3_000),),
    polls=(60_000,),
    commits=(500,),
    static=0,
)
"""Commits that are still on their way, over a connection that is gone, when their member is in the next generation."""

_ALL = (
    Ablation(
        "generation-back",
        "A rebalance sets the generation back by one.",
        "generations-grow",
        [Patch(rebalance, "prepare", _generation_back)],
    ),
    Ablation(
        "leader-stays",
        "A leader that is out goes on being the leader.",
        "leader-is-member",
        [Patch(ClassicGroup, "remove", _leader_stays)],
    ),
    Ablation(
        "no-vote",
        "The assignor is the one that the last member likes best, whatever the others offer.",
        "protocol-of-all",
        [Patch(ClassicGroup, "select_protocol", _last_ones_favourite), Patch(Member, "metadata_of", _any_metadata)],
    ),
    Ablation(
        "no-static-members",
        "Who comes with a taken instance id is one more member.",
        "one-per-instance",
        [Patch(ClassicGroup, "static_member", _nothing)],
    ),
    Ablation(
        "sync-timer-stays",
        "The timer for missing SyncGroups is never cancelled.",
        "deadlines-fit",
        [Patch(Shard, "cancel", _syncs_stay)],
    ),
    Ablation(
        "no-join-timer",
        "A rebalance waits for its members without a limit.",
        "deadlines-fit",
        [Patch(rebalance, "_schedule_join", _nothing)],
    ),
    Ablation(
        "deaf-heartbeat",
        "A heartbeat does not renew the session.",
        "heard-in-time",
        [Patch(heartbeat, "session", lambda _: SimpleNamespace(restart=lambda *_: None))],
    ),
    Ablation(
        "long-sessions",
        "A session lasts twice as long as it was agreed.",
        "heard-in-time",
        [Patch(session, "restart", _twice_as_long)],
    ),
    Ablation(
        "answered-again",
        "SyncGroups that wait are answered twice.",
        "one-reply",
        [Patch(rebalance, "answer_syncs", _answered_again)],
    ),
    Ablation(
        "all-to-all",
        "The leader gives everything to everybody.",
        "one-owner",
        [Patch(leading, "written", _all_to_all)],
    ),
    Ablation(
        "one-step",
        "cooperative-sticky gives a partition to its new owner before the old one has given it up.",
        "no-two-believe",
        [Patch(sticky, "withhold", lambda _: lambda assignment, _: assignment)],
    ),
    Ablation(
        "anybody-commits",
        "A commit is accepted from whoever sends it, whatever generation it speaks of.",
        "commits-of-members",
        [Patch(offset_commit, "known_member", _somebody), Patch(offset_commit, "current_generation", _nothing)],
        _PAUSES,
    ),
    Ablation(
        "any-generation",
        "A commit of a member is accepted whatever generation it speaks of.",
        "commits-of-members",
        [Patch(offset_commit, "current_generation", _nothing)],
        _LATE,
    ),
    Ablation(
        "first-commit-stays",
        "A committed offset is never replaced by a later one.",
        "commits-last",
        [Patch(TimelineMap, "put", _first_stays)],
    ),
    Ablation(
        "log-without-assignments",
        "A coordinator that reads its log takes no notice of assignments.",
        "replay-is-live",
        [Patch(loading, "_group", _forgets_assignments)],
    ),
    Ablation(
        "stranger-is-fenced",
        "A heartbeat of somebody unknown is answered FENCED_INSTANCE_ID.",
        "no-surprise",
        [Patch(heartbeat, "known_member", _stranger_is_fenced)],
    ),
    Ablation(
        "rebalance-is-no-news",
        "A member that hears of a rebalance goes on as before.",
        "converges",
        [Patch(verdicts, "of_heartbeat", _rebalance_is_no_news)],
    ),
)

ABLATIONS = {ablation.name: ablation for ablation in _ALL}
"""By name."""
