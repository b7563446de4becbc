"""What clients are answered while the network is cut: between a leader and the controller, between a follower and its leader,
between a leader and all of its followers."""

from groupcoord.protocol.messages import (
    DescribeGroupsRequest,
    ListGroupsRequest,
    MetadataRequest,
)
from tests.conformance.trio_requests import end_of_epoch, fetch, metadata, offset_at, produce
from tests.conformance.trio_stories import administrators, groups, transactions
from tests.conformance.trio_stories.groups import GROUP, Groups, commit, committed, join
from tests.conformance.trio_stories.transactions import READ_COMMITTED, Payments
from tests.conformance.trio_story import LAG_S, SESSION_S, Topics, TrioStory

TOPICS: Topics = {
    "orders": (((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),
    "a": (((2, 1),), {}),
    "b": (((3, 1),), {}),
    groups.LOG: groups.TOPICS[groups.LOG],
    transactions.LOG: (((1, 2),), {"cleanup.policy": "compact"}),
}
DEVIATIONS = {
    "Heartbeat at it": ["NOT_COORDINATOR"],
    "OffsetFetch at it": ["NOT_COORDINATOR"],
    "DescribeGroups at it": ["NOT_COORDINATOR"],
    "ListGroups at it": ["NONE"],
    "JoinGroup without an id at it": ["NOT_COORDINATOR"],
    "OffsetCommit at it": ["NOT_COORDINATOR"],
    "OffsetFetch at it again": ["NOT_COORDINATOR"],
    "at it: DescribeTransactions": ["NOT_COORDINATOR"],
}
"""The errors that groupcoord answers instead of what was recorded: Deviation (cut-off-coordinators)."""


def tell(story: TrioStory) -> None:
    """A leader is cut off from the controller, a follower from its leader, a leader from its followers."""
    members, payments = Groups(story), Payments(story)
    story.asks("FindCoordinator of the group", 2, groups.coordinator(), 6, settles=True)
    story.asks("FindCoordinator of the transactional id", 2, transactions.coordinator(), 6, settles=True)
    story.asks("OffsetFetch of a group that there is none of", 1, committed(), 9, settles=True)
    members.form()
    payments.init("InitProducerId", 1, settles=True)
    payments.writes("write to a", 2, "a", "one", settles=True)
    for acks in (1, -1):
        story.asks(f"acks={acks}", 1, produce("orders", 0, "a", acks=acks), 12)
    _a_leader_is_cut_off_from_the_controller(story, members, payments)
    _a_follower_is_cut_off_from_its_leader(story, members, payments)
    _a_leader_is_cut_off_from_its_followers(story, members)


def _a_leader_is_cut_off_from_the_controller(story: TrioStory, members: Groups, payments: Payments) -> None:
    story.cut_off(1, "controller")
    asks = story.asks
    for broker_id in (1, 2):
        asks(f"1 is cut off: Metadata of {broker_id}", broker_id, metadata("orders"), 12)
    for acks in (1, -1):
        asks(f"before it is missed: acks={acks}", 1, produce("orders", 0, "b", acks=acks), 12)
    asks("before it is missed: fetch", 1, fetch("orders", 0, 2, epoch=0), 12)
    asks("before it is missed: the end", 1, offset_at("orders", 0), 10)
    asks("before it is missed: Heartbeat", 1, members.heartbeat(), 4)
    members.commits("before it is missed: OffsetCommit", 1, 2)
    asks("before it is missed: OffsetFetch", 1, committed(), 9)
    payments.describe("before it is missed", 1)

    story.passes(SESSION_S)
    story.partitions("1 is fenced", 2, *TOPICS)
    _the_leader_from_before_goes_on(story, members, payments)
    patient = story.sends(1, produce("orders", 0, "d"), 12)
    patient.waits("acks=all for a minute at it")
    _the_others_go_on(story, members, payments)
    new_topic = story.sends(1, administrators.create((2, 3), name="later"), 7)
    new_topic.waits("CreateTopics at it")

    story.reconnect(1, "controller")
    story.partitions("1 is back", 2, *TOPICS)
    patient.is_answered("acks=all for a minute at it")
    new_topic.is_answered("CreateTopics at it")
    asks("it knows: Metadata", 1, metadata("orders"), 12, settles=True)
    asks("it knows: acks=all", 1, produce("orders", 0, "e"), 12)
    asks("it knows: acks=1", 1, produce("orders", 0, "e", acks=1), 12)
    asks("it knows: Heartbeat", 1, members.heartbeat(), 4, settles=True)
    asks("it knows: OffsetFetch", 1, committed(), 9)
    asks("it knows: FindCoordinator", 1, groups.coordinator(), 6)
    payments.describe("it knows", 1)
    for broker_id in (2, 1):
        asks(f"what is left, at {broker_id}", broker_id, fetch("orders", 0, 0), 12, settles=True)
    for of in (0, 1):
        asks(f"end of epoch {of}", 2, end_of_epoch("orders", 0, of), 4)
    asks("nothing of what it was told", 2, committed(), 9)


def _the_leader_from_before_goes_on(story: TrioStory, members: Groups, payments: Payments) -> None:
    asks = story.asks
    for broker_id in (1, 2):
        asks(f"1 is fenced: Metadata of {broker_id}", broker_id, metadata("orders"), 12)
        asks(f"1 is fenced: brokers, says {broker_id}", broker_id, MetadataRequest(topics=()), 12)
    asks("acks=1 at the leader from before", 1, produce("orders", 0, "c", acks=1), 12)
    story.sends(1, produce("orders", 0, "c", acks=0), 12).waits("acks=0 at it")
    late = story.sends(1, produce("orders", 0, "c", timeout_ms=2000), 12)
    late.waits("acks=all for 2 s at it")
    story.passes(2)
    late.is_answered("acks=all for 2 s at it")
    asks("what consumers see of it", 1, fetch("orders", 0, 3, epoch=0), 12)
    asks("fetch at it with the next epoch", 1, fetch("orders", 0, 3, epoch=1), 12)
    asks("the end at it", 1, offset_at("orders", 0), 10)
    asks("the end at it with the next epoch", 1, offset_at("orders", 0, epoch=1), 10)
    asks("end of epoch 0 at it", 1, end_of_epoch("orders", 0, 0), 4)
    asks("FindCoordinator at it", 1, groups.coordinator(), 6)
    asks("Heartbeat at it", 1, members.heartbeat(), 4)
    asks("OffsetFetch at it", 1, committed(), 9)
    asks("DescribeGroups at it", 1, DescribeGroupsRequest(groups=(GROUP,)), 6)
    asks("ListGroups at it", 1, ListGroupsRequest(), 5)
    asks("JoinGroup without an id at it", 1, join(), 9)
    stale = story.sends(1, commit(members.member_id, 1, 99), 9)
    story.passes(5)
    stale.is_answered("OffsetCommit at it")
    asks("OffsetFetch at it again", 1, committed(), 9)
    payments.describe("at it", 1)


def _the_others_go_on(story: TrioStory, members: Groups, payments: Payments) -> None:
    asks = story.asks
    asks("acks=all at the next leader", 2, produce("orders", 0, "n"), 12)
    asks("acks=all at a follower", 3, produce("orders", 0, "n"), 12)
    asks("fetch at the next leader", 2, fetch("orders", 0, 3, epoch=1), 12)
    asks("fetch at the next leader with the epoch before", 2, fetch("orders", 0, 3, epoch=0), 12)
    asks("the end at the next leader", 2, offset_at("orders", 0), 10, settles=True)
    asks("FindCoordinator", 3, groups.coordinator(), 6, settles=True)
    members.go_on("at the next coordinator", 2)
    members.commits("OffsetCommit at the next coordinator", 2, 3)
    payments.describe("at the next coordinator", 2, settles=True)
    payments.writes("write to a again", 2, "a", "two")
    payments.ends("EndTxn at the next coordinator", 2)
    payments.describe("committed", 2, settles=True)
    payments.ends_of("committed", 2, "a", settles=True)


def _a_follower_is_cut_off_from_its_leader(story: TrioStory, members: Groups, payments: Payments) -> None:
    asks = story.asks
    payments.writes("write to a before the cut", 2, "a", "three")
    payments.writes("write to b before the cut", 3, "b", "three")
    story.cut_off(3, 2)
    asks("3 is cut off from 2: acks=1", 2, produce("orders", 0, "f", acks=1), 12)
    late = story.sends(2, produce("orders", 0, "f", timeout_ms=2000), 12)
    late.waits("acks=all for 2 s")
    patient = story.sends(2, produce("orders", 0, "g"), 12)
    patient.waits("acks=all for a minute")
    commits = story.sends(2, commit(members.member_id, 1, 4), 9)
    commits.waits("OffsetCommit")
    asks("the end while the follower is in sync", 2, offset_at("orders", 0), 10)
    asks("fetch at the follower", 3, fetch("orders", 0, 3, epoch=1), 12)
    story.passes(2)
    late.is_answered("acks=all for 2 s")
    story.passes(3)
    commits.is_answered("OffsetCommit")
    payments.ends("EndTxn", 2)
    payments.describe("b has no marker", 2, settles=True)
    payments.ends_of("a has its marker", 2, "a", settles=True)
    payments.ends_of("b has none", 3, "b")
    story.passes(LAG_S)
    story.partitions("3 is out of sync", 1, *TOPICS)
    patient.is_answered("acks=all for a minute")
    asks("acks=all with two in sync", 2, produce("orders", 0, "h"), 12)
    asks("the end with two in sync", 2, offset_at("orders", 0), 10)
    asks("fetch at the follower from before", 3, fetch("orders", 0, 3, epoch=1), 12)
    members.commits("OffsetCommit with two in sync", 2, 5)
    members.go_on("two in sync", 2)
    story.reconnect(3, 2)
    story.partitions("3 is back", 1, *TOPICS)
    asks("fetch at the follower that is back", 3, fetch("orders", 0, 3, epoch=1), 12, settles=True)
    story.passes(1)
    payments.describe("b has its marker", 2, settles=True)
    payments.ends_of("b has its marker", 3, "b", settles=True)
    asks("what is committed in b", 3, fetch("b", 0, 0, isolation=READ_COMMITTED), 12)


def _a_leader_is_cut_off_from_its_followers(story: TrioStory, members: Groups) -> None:
    asks = story.asks
    for other in (1, 3):
        story.cut_off(2, other)
    asks("2 is cut off from 1 and 3: acks=1", 2, produce("orders", 0, "i", acks=1), 12)
    patient = story.sends(2, produce("orders", 0, "j"), 12)
    patient.waits("acks=all for a minute at the lone leader")
    commits = story.sends(2, commit(members.member_id, 1, 6), 9)
    commits.waits("OffsetCommit at the lone leader")
    asks("fetch at a follower of the lone leader", 1, fetch("orders", 0, 3, epoch=1), 12)
    story.passes(5)
    commits.is_answered("OffsetCommit at the lone leader")
    story.passes(LAG_S)
    story.partitions("2 is alone", 1, *TOPICS, elr=([1, 3], [1], [3]))  # who fell out last, or both at once
    asks("acks=all with too few in sync", 2, produce("orders", 0, "k"), 12)
    asks("acks=1 with too few in sync", 2, produce("orders", 0, "k", acks=1), 12)
    asks("the end with too few in sync", 2, offset_at("orders", 0), 10)
    asks("fetch with too few in sync", 2, fetch("orders", 0, 9), 12)
    asks("fetch at a follower with too few in sync", 3, fetch("orders", 0, 9), 12)
    asks("Metadata with too few in sync", 1, metadata("orders"), 12)
    heard = story.sends(2, members.heartbeat(), 4)  # it waits for the OffsetCommit that is not in sync yet
    heard.waits("Heartbeat with too few in sync")
    story.passes(5)
    heard.is_answered("Heartbeat with too few in sync, 5 s later")
    members.commits("OffsetCommit with too few in sync", 2, 7)
    asks("OffsetFetch with too few in sync", 2, committed(), 9)
    patient.waits("acks=all for a minute at the lone leader, still")
    for other in (1, 3):
        story.reconnect(2, other)
    story.partitions("all are back", 1, *TOPICS)
    patient.is_answered("acks=all for a minute, when all are back")
    members.commits("OffsetCommit when all are back", 2, 8)
    members.go_on("in the end", 2)
    for broker_id in (2, 3):
        asks(f"all of it, at {broker_id}", broker_id, fetch("orders", 0, 0), 12, settles=True)
