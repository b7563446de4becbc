"""What members of groups and administrators are answered while the coordinator's broker stops, dies and is paused, and while
the replicas of ``__consumer_offsets`` are too few."""

from collections.abc import Sequence
from typing import Any

from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tests.conformance.embedded import subscription
from tests.conformance.members import commit_topics, protocols_of
from tests.conformance.trio_story import CLOSED, SESSION_S, Topics, TrioStory

LOG = "__consumer_offsets"
TOPICS: Topics = {
    "orders": (((1, 2, 3), (2, 3, 1)), {}),
    LOG: (((1, 2, 3),), {"cleanup.policy": "compact", "min.insync.replicas": "2"}),
}
GROUP, CONSUMERS = "trio-classic", "trio-consumers"
MOVED = ("NOT_COORDINATOR", CLOSED)
"""What is answered to what waits at a coordinator that goes: it may resign first, or close the connection first."""


def join(member_id: str = "", **changes: Any) -> JoinGroupRequest:
    given = {"session_timeout_ms": 600_000, "rebalance_timeout_ms": 600_000, **changes}
    offered = protocols_of({"range": subscription()})
    return JoinGroupRequest(group_id=GROUP, member_id=member_id, protocol_type="consumer", protocols=offered, **given)


def commit(member_id: str, generation: int, offset: int, group: str = GROUP) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=commit_topics({("orders", 0): offset}),
    )


def committed(group: str = GROUP) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))


def coordinator() -> FindCoordinatorRequest:
    return FindCoordinatorRequest(coordinator_keys=(GROUP,))


class Groups:
    """The members of the two groups, and what they ask."""

    def __init__(self, story: TrioStory) -> None:
        self._story = story
        self.member_id = ""
        self.consumer_id, self.epoch = "AAAAAAAAAAAAAAAAAAAAAA", 0

    def form(self) -> None:
        """Each group gets its first member, at broker 1."""
        story = self._story
        refused = story.asks("JoinGroup without an id", 1, join(), 9)
        self.member_id = refused.member_id
        story.asks("JoinGroup", 1, join(self.member_id), 9)
        assigned = (SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"all of it"),)
        story.asks("SyncGroup", 1, self.sync(assigned), 5)
        self.commits("OffsetCommit", 1, 1)
        joins = self._heartbeat(
            0, rebalance_timeout_ms=600_000, subscribed_topic_names=("orders",), topic_partitions=()
        )
        self.epoch = story.asks("ConsumerGroupHeartbeat, to join", 1, joins, 1).member_epoch
        story.asks("OffsetCommit of a consumer", 1, commit(self.consumer_id, self.epoch, 1, CONSUMERS), 9)

    def _heartbeat(self, epoch: int, **given: Any) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=CONSUMERS, member_id=self.consumer_id, member_epoch=epoch, **given
        )

    def heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=self.member_id)

    def sync(self, assignments: Sequence[SyncGroupRequestAssignment] = ()) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=GROUP,
            generation_id=1,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(assignments),
        )

    def commits(self, what: str, broker_id: int, offset: int) -> None:
        self._story.asks(what, broker_id, commit(self.member_id, 1, offset), 9)

    def go_on(self, what: str, broker_id: int) -> None:
        """Both members and an administrator ask that broker, which coordinates their groups now."""
        asks = self._story.asks
        asks(f"{what}: OffsetFetch", broker_id, committed(), 9, settles=True)
        asks(f"{what}: Heartbeat", broker_id, self.heartbeat(), 4)
        asks(f"{what}: ConsumerGroupHeartbeat", broker_id, self._heartbeat(self.epoch), 1)
        asks(f"{what}: OffsetFetch of consumers", broker_id, committed(CONSUMERS), 9)
        asks(f"{what}: DescribeGroups", broker_id, DescribeGroupsRequest(groups=(GROUP,)), 6)
        asks(f"{what}: ConsumerGroupDescribe", broker_id, ConsumerGroupDescribeRequest(group_ids=(CONSUMERS,)), 1)
        asks(f"{what}: ListGroups", broker_id, ListGroupsRequest(), 5)

    def ask_another(self, what: str, broker_id: int) -> None:
        """A broker is asked that does not coordinate them."""
        asks = self._story.asks
        for name, message, version in (
            ("JoinGroup", join(self.member_id), 9),
            ("SyncGroup", self.sync(), 5),
            ("Heartbeat", self.heartbeat(), 4),
            ("OffsetCommit", commit(self.member_id, 1, 9), 9),
            ("OffsetFetch", committed(), 9),
            ("LeaveGroup", LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=self.member_id),)), 5),
            ("DescribeGroups", DescribeGroupsRequest(groups=(GROUP,)), 6),
            ("ListGroups", ListGroupsRequest(), 5),
            ("DeleteGroups", DeleteGroupsRequest(groups_names=(GROUP,)), 2),
            ("ConsumerGroupHeartbeat", self._heartbeat(self.epoch), 1),
            ("ConsumerGroupDescribe", ConsumerGroupDescribeRequest(group_ids=(CONSUMERS,)), 1),
        ):
            asks(f"{what}: {name}", broker_id, message, version)


def tell(story: TrioStory) -> None:
    """The coordinator stops, the next one is killed, the next one is paused; then replicas are missing."""
    groups = Groups(story)
    story.asks("FindCoordinator", 2, coordinator(), 6, settles=True)
    story.asks("OffsetFetch of a group that there is none of", 1, committed(), 9, settles=True)
    groups.form()
    groups.go_on("all run", 1)
    groups.ask_another("at a follower", 2)

    newcomer = story.asks("JoinGroup of a newcomer without an id", 1, join(), 9)
    waiting = story.sends(1, join(newcomer.member_id), 9)
    waiting.waits("JoinGroup of a newcomer")
    story.act("stop", 1)
    waiting.is_answered("JoinGroup of a newcomer, whose coordinator stops", allowed=MOVED)
    story.partitions("1 has stopped", 2, LOG)
    story.asks("FindCoordinator", 3, coordinator(), 6, settles=True)
    groups.go_on("1 has stopped", 2)
    groups.commits("OffsetCommit at the next coordinator", 2, 2)
    story.act("start", 1)
    story.partitions("1 is back", 2, LOG)
    story.asks("Heartbeat at the coordinator from before", 1, groups.heartbeat(), 4, settles=True)

    story.act("kill", 2)
    story.asks("2 is killed: FindCoordinator", 3, coordinator(), 6)
    story.asks("2 is killed: Heartbeat", 2, groups.heartbeat(), 4)
    story.asks("2 is killed: Heartbeat at a follower", 3, groups.heartbeat(), 4)
    story.passes(SESSION_S)
    story.partitions("2 is fenced", 3, LOG)
    story.asks("FindCoordinator", 3, coordinator(), 6, settles=True)
    groups.go_on("2 is fenced", 1)
    groups.commits("OffsetCommit at the third coordinator", 1, 3)
    story.act("start", 2)
    story.partitions("2 is back", 3, LOG)
    _paused(story, groups)
    _missing_replicas(story, groups)


def _paused(story: TrioStory, groups: Groups) -> None:
    story.act("pause", 1)
    heard = story.sends(1, groups.heartbeat(), 4)
    stale = story.sends(1, commit(groups.member_id, 1, 99), 9)
    heard.waits("1 is paused: Heartbeat")
    stale.waits("1 is paused: OffsetCommit")
    story.asks("1 is paused: FindCoordinator", 3, coordinator(), 6)
    story.passes(SESSION_S)
    story.partitions("1 is fenced", 3, LOG)
    story.asks("FindCoordinator", 3, coordinator(), 6, settles=True)
    groups.go_on("1 is fenced", 2)
    groups.commits("OffsetCommit at the fourth coordinator", 2, 4)
    story.act("resume", 1)
    heard.is_answered("it goes on: Heartbeat", allowed=("NONE", "NOT_COORDINATOR"))
    stale.is_answered("it goes on: OffsetCommit", allowed=("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"))
    story.partitions("1 is back", 3, LOG)
    story.asks("Heartbeat at the one that was paused", 1, groups.heartbeat(), 4, settles=True)
    story.asks("OffsetFetch: nothing of what it was told", 2, committed(), 9)


def _missing_replicas(story: TrioStory, groups: Groups) -> None:
    story.act("pause", 3)
    late = story.sends(2, commit(groups.member_id, 1, 5), 9)
    late.waits("a follower is paused: OffsetCommit")
    story.asks("OffsetFetch before the follower has it", 2, committed(), 9)
    story.passes(5)
    late.is_answered("a follower is paused: OffsetCommit")
    story.passes(SESSION_S)
    story.partitions("3 is fenced", 1, LOG)
    story.asks("OffsetFetch when the follower is out", 2, committed(), 9)
    groups.commits("OffsetCommit with two in sync", 2, 6)
    story.act("stop", 1)
    story.partitions("1 has stopped", 2, LOG)
    story.asks("Heartbeat with too few in sync", 2, groups.heartbeat(), 4)
    groups.commits("OffsetCommit with too few in sync", 2, 7)
    story.asks("OffsetFetch with too few in sync", 2, committed(), 9)
    story.asks("JoinGroup without an id, with too few in sync", 2, join(), 9)
    story.act("resume", 3)
    story.partitions("3 is back", 2, LOG)
    groups.commits("OffsetCommit with two in sync again", 2, 8)
    groups.go_on("in the end", 2)
