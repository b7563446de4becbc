"""What becomes of groups whose partition of ``__consumer_offsets`` is gone: they are forgotten, and whoever asks is told.

Source: ``GroupMetadataManager.onUnloaded``.
"""

from collections.abc import Callable

from groupcoord.coordinator.availability import Unavailable
from groupcoord.coordinator.offset_store import OffsetStore
from groupcoord.coordinator.shard import Shard
from groupcoord.core.turn import Turn
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse, SyncGroupResponse


def unload(shard: Shard, turn: Turn, has_log: Callable[[], bool], why: str) -> None:
    """Somebody else has, or nobody has, the log of ``shard``; ``why`` says so. From now on ``has_log`` says whether it is back,
    and then it is a new one: the shard is an ordinary, empty one."""

    def is_back() -> bool:
        if has_log():
            shard.groups = {}
            return True
        return False

    turn.effects += shard.give_up(ErrorCode.NOT_COORDINATOR, turn.now_ms)
    for group in list(shard.groups.values()):
        for member in group.members.values():
            if member.parked_join is not None:
                gone = JoinGroupResponse(
                    error_code=ErrorCode.NOT_COORDINATOR, leader="", member_id=member.member_id, members=()
                )
                turn.reply(member.parked_join, gone)
            if member.parked_sync is not None:
                turn.reply(member.parked_sync, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, assignment=b""))
        shard.drop_group(turn, group, why)
    shard.offsets = OffsetStore()
    shard.groups = Unavailable(ErrorCode.NOT_COORDINATOR, why, is_back)
