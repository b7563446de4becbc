"""What becomes of groups whose partition of ``__consumer_offsets`` is gone: they are forgotten, and whoever asks is told.

Source: ``GroupMetadataManager.onUnloaded``.
"""

from collections.abc import Callable

from groupcoord.coordinator.availability import Unavailable
from groupcoord.coordinator.offset_store import OffsetStore
from groupcoord.coordinator.shard import Shard
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse, SyncGroupResponse


def unload(shard: Shard, ctx: HandlerContext, has_log: Callable[[], bool], why: str) -> None:
    """Somebody else has, or nobody has, the log of ``shard``; ``why`` says so. From now on ``has_log`` says whether it is back,
    and then it is a new one: the shard is an ordinary, empty one."""

    def is_back() -> bool:
        if has_log():
            shard.groups = {}
            return True
        return False

    ctx.effects += shard.give_up(ErrorCode.NOT_COORDINATOR, ctx.now_ms)
    for group in list(shard.groups.values()):
        for member in group.members.values():
            if member.parked_join is not None:
                gone = JoinGroupResponse(
                    error_code=ErrorCode.NOT_COORDINATOR, leader="", member_id=member.member_id, members=()
                )
                ctx.reply(member.parked_join, gone)
            if member.parked_sync is not None:
                ctx.reply(member.parked_sync, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, assignment=b""))
        shard.drop_group(ctx, group, why)
    shard.offsets = OffsetStore()
    shard.groups = Unavailable(ErrorCode.NOT_COORDINATOR, why, is_back)
