"""Opening steps that many scenarios share. They wait for intermediate states, so that they work the same on any broker."""

from collections.abc import Awaitable
from typing import Any

from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse
from groupcoord.testing import KafkaCluster, ManualMember


async def gather(*asked: Awaitable[Any]) -> list[Any]:
    """The responses, in order. Raises AssertionError if one of them has an error."""
    responses = [await each for each in asked]
    for response in responses:
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code).name
    return responses


async def joined(kafka: KafkaCluster, leader: ManualMember, *others: ManualMember) -> list[JoinGroupResponse]:
    """Form a new group: ``leader`` alone in generation 1, then all in generation 2, before any SyncGroup."""
    await leader.rejoin()
    joining = [other.join() for other in others]
    # If the leader came back before the last of them was a member, the generation would begin without that one.
    await _becomes(kafka, leader.group, members=len(others) + 1)
    responses = await gather(leader.join(), *joining)
    assert leader.is_leader
    return responses


async def together(kafka: KafkaCluster, leader: ManualMember, *others: ManualMember) -> None:
    """Form a new group: ``leader`` alone in generation 1, then all in generation 2, each with its assignment."""
    await joined(kafka, leader, *others)
    await gather(*[member.sync() for member in (*others, leader)])


async def enters(kafka: KafkaCluster, newcomer: ManualMember, *present: ManualMember) -> None:
    """``newcomer`` joins the members ``present``, of which the first is the leader; all have their assignment in the next
    generation."""
    joining = newcomer.join()
    await _becomes(kafka, newcomer.group, members=len(present) + 1)
    await gather(*[member.join() for member in present], joining)
    await gather(*[member.sync() for member in (newcomer, *present)])


async def again(kafka: KafkaCluster, leader: ManualMember, *followers: ManualMember) -> None:
    """Rebalance the same members: all have their assignment in the next generation."""
    joining = leader.join()
    # In a stable group, the same JoinGroup once more starts nothing if a follower sends it: the leader's comes first.
    await kafka.group(leader.group).wait_rebalancing()
    await gather(joining, *[follower.join() for follower in followers])
    await gather(*[member.sync() for member in (*followers, leader)])


async def _becomes(kafka: KafkaCluster, group: str, *, members: int) -> None:
    await kafka.group(group).wait_until(lambda view: len(view.members) == members, f"have {members} members")
