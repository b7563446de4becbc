"""Session timers: how long a member, or somebody with a fresh id, may be silent. What happens then is in expiry.py."""

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.shard import Shard
from groupcoord.core.handler_context import HandlerContext


def restart(
    shard: Shard, ctx: HandlerContext, group: ClassicGroup, member: Member, timeout_ms: int | None = None
) -> None:
    """Give ``member`` its whole session timeout (or ``timeout_ms``) from now on."""
    now_ms = member.last_heartbeat_ms = ctx.now_ms
    length = member.session_timeout_ms if timeout_ms is None else timeout_ms
    if member.timed_ms == length and shard.timers.postpone(member.session_key, now_ms + length):
        return  # as for every heartbeat
    member.timed_ms = length
    shard.timers.schedule(
        member.session_key, now_ms + length, lambda due: shard.session_over(shard, due, group, member, length)
    )


def start_pending(shard: Shard, ctx: HandlerContext, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
    """Give somebody who was handed ``member_id`` this long to come back with it."""
    shard.timers.schedule(
        group.session_key(member_id),
        ctx.now_ms + timeout_ms,
        lambda due: shard.pending_over(shard, due, group, member_id, timeout_ms),
    )
