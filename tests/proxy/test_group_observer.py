"""What requests and answers tell of groups."""

import uuid
from typing import Any

import pytest

from groupcoord.coordinator import events
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.apis.consumer_group_heartbeat import Assignment, TopicPartitions
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from groupcoord.protocol.apis.leave_group import MemberIdentity, MemberResponse
from groupcoord.protocol.apis.metadata import MetadataResponseTopic
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupcoord.protocol.apis.sync_group import SyncGroupRequestAssignment
from groupcoord.protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write_assignment
from groupcoord.protocol.errors import ErrorCode
from groupcoord.proxy.group_observer import GroupObserver
from groupcoord.testing.trace.trace import Trace

TOPIC_ID = uuid.UUID(int=7)


class Story:
    """Tells an observer what is asked and answered, a second later each time."""

    def __init__(self) -> None:
        self.observer = GroupObserver()
        self.now_ms = 0
        self.all: list[Event] = []

    def ask(self, request: Any, client: str | None = "c") -> list[Event]:
        self.now_ms += 1000
        return self._kept(self.observer.asked(self._call(request, client), request, self.now_ms))

    def answer(self, request: Any, response: Any, client: str | None = "c") -> list[Event]:
        return self._kept(self.observer.answered(self._call(request, client), request, response, self.now_ms))

    def both(self, request: Any, response: Any, client: str | None = "c") -> list[Event]:
        return self.ask(request, client) + self.answer(request, response, client)

    def join(self, *members: str, generation: int, known: tuple[str, ...] = ()) -> list[Event]:
        """All join, and the first leads."""
        told = [event for member in members for event in self.ask(join(member), member)]
        for member in members:
            told += self.answer(join(member), joined(member, generation, members), member)
        return told

    def _kept(self, told: list[Event]) -> list[Event]:
        self.all += told
        return told

    def _call(self, request: Any, client: str | None) -> Call:
        return Call(1, self.now_ms, API_BY_REQUEST[type(request)], 0, client, "/127.0.0.1")

    def why(self) -> str:
        trace = Trace()
        for event in self.all:
            trace(event)
        return trace.why("g")


def join(
    member: str, *, metadata: bytes = b"", protocols: tuple[str, ...] = ("range",), reason: str | None = None
) -> Any:
    return m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member,
        protocol_type="consumer",
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols),
        reason=reason,
    )


def joined(member: str, generation: int, members: tuple[str, ...], error: int = 0) -> m.JoinGroupResponse:
    told = members if member == members[0] else ()
    return m.JoinGroupResponse(
        error_code=error,
        generation_id=generation,
        protocol_name="range",
        leader=members[0],
        member_id=member,
        members=tuple(JoinGroupResponseMember(member_id=name, metadata=b"") for name in told),
    )


def kinds(told: list[Event]) -> list[str]:
    return [type(event).__name__ for event in told]


def test_a_generation_begins_when_the_first_member_is_told() -> None:
    story = Story()
    told = story.join("a", "b", generation=1)
    assert kinds(told) == ["RebalanceStarted", "MemberJoined", "MemberJoined", "GenerationStarted"]
    begun = told[-1]
    assert isinstance(begun, events.GenerationStarted)
    assert (begun.generation, begun.leader, begun.members, begun.votes) == (1, "a", ("a", "b"), {"range": 2})
    assert story.why().startswith("generation 1: a joins, at 0.0 s; the group had no members")


def test_a_newcomer_gets_an_id_and_comes_back_with_it() -> None:
    story = Story()
    told = story.both(join(""), m.JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="a"))
    assert kinds(told) == ["MemberIdAssigned"]


def test_a_member_without_an_id_of_its_own_is_in_when_it_is_told() -> None:
    story = Story()
    told = story.both(join("", reason="I am new"), joined("a", 1, ("a",)), None)
    assert kinds(told) == ["RebalanceStarted", "MemberJoined", "GenerationStarted"]
    assert isinstance(told[0], events.RebalanceStarted)
    assert told[0].reason == "a client without id joins: I am new"


def test_a_member_that_joins_again_starts_a_rebalance() -> None:
    story = Story()
    story.join("a", "b", generation=1)
    told = story.ask(join("b", metadata=b"other"))
    assert kinds(told) == ["RebalanceStarted", "MemberRejoined"]
    assert isinstance(told[0], events.RebalanceStarted)
    assert (told[0].reason, told[0].generation, told[0].waits_ms) == ("c joins again with new metadata", 1, 60_000)
    assert story.ask(join("b", metadata=b"other")) == []  # again, while it waits
    assert kinds(story.ask(join("a"))) == ["MemberRejoined"]
    assert kinds(story.answer(join("b"), joined("b", 2, ("a", "b")))) == ["GenerationStarted"]
    assert story.answer(join("a"), joined("a", 2, ("a", "b"))) == []


def test_who_is_not_in_the_new_generation_is_out() -> None:
    story = Story()
    story.join("a", "b", "silent", generation=1)
    story.now_ms += 9_000
    told = story.join("a", "b", generation=2)
    removed = [event for event in told if isinstance(event, events.MemberRemoved)]
    assert [(event.member, event.how, event.timeout_ms) for event in removed] == [
        ("silent", events.Departure.SESSION_OVER, 10_000)
    ]
    story.ask(join("a"))
    told = story.answer(join("a"), joined("a", 3, ("x", "a")))  # the leader is not seen here
    removed = [event for event in told if isinstance(event, events.MemberRemoved)]
    assert [(event.member, event.how) for event in removed] == [("b", events.Departure.NOT_JOINED)]
    assert isinstance(told[-1], events.GenerationStarted)
    assert told[-1].members == ("a",)


def test_votes_count_what_all_have() -> None:
    story = Story()
    story.ask(join("a", protocols=("sticky", "range")))
    story.ask(join("b", protocols=("range", "sticky", "own")))
    told = story.answer(join("a"), joined("a", 1, ("a", "b", "elsewhere")))
    assert isinstance(told[-1], events.GenerationStarted)
    assert told[-1].votes == {"sticky": 1, "range": 1}
    story.ask(join("c", protocols=()))
    told = story.answer(join("a"), joined("a", 2, ("a", "c")))
    assert isinstance(told[-1], events.GenerationStarted)
    assert told[-1].votes == {}
    assert isinstance(story.answer(join("a"), joined("x", 3, ("y", "x")))[-1], events.GenerationStarted)


def test_a_join_that_is_refused_says_why() -> None:
    told = Story().answer(join("a"), m.JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="a"))
    assert isinstance(told[0], events.RequestRefused)
    assert (told[0].api, told[0].error, told[0].why) == (
        "JoinGroup",
        "UNKNOWN_MEMBER_ID",
        ErrorCode.UNKNOWN_MEMBER_ID.text,
    )


def sync(member: str, assignment: bytes | None = None, protocol_type: str | None = "consumer") -> m.SyncGroupRequest:
    assignments = () if assignment is None else (SyncGroupRequestAssignment(member_id=member, assignment=assignment),)
    return m.SyncGroupRequest(
        group_id="g", generation_id=1, member_id=member, protocol_type=protocol_type, assignments=assignments
    )


ASSIGNED = write_assignment(
    ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 1)),))
)


@pytest.mark.parametrize(
    ("assignment", "protocol_type", "owners"),
    [
        (ASSIGNED, "consumer", {"a": (("orders", 0), ("orders", 1))}),
        (ASSIGNED, None, {"a": (("orders", 0), ("orders", 1))}),
        (ASSIGNED, "connect", None),
        (b"", "consumer", None),
    ],
)
def test_the_assignment_of_the_leader_is_told(assignment: bytes, protocol_type: str | None, owners: Any) -> None:
    story = Story()
    (told,) = story.both(sync("a", assignment, protocol_type), m.SyncGroupResponse(assignment=b""))
    assert isinstance(told, events.AssignmentReceived)
    assert told.owners == owners
    assert story.both(sync("b"), m.SyncGroupResponse(assignment=b"")) == []
    (told,) = story.both(sync("b"), m.SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION, assignment=b""))
    assert isinstance(told, events.RequestRefused)


def beat(member: str) -> m.HeartbeatRequest:
    return m.HeartbeatRequest(group_id="g", generation_id=1, member_id=member)


def refusal(told: list[Event]) -> events.RequestRefused:
    last = told[-1]
    assert isinstance(last, events.RequestRefused)
    return last


def test_a_refused_heartbeat_says_what_was_seen() -> None:
    story = Story()
    story.join("a", "b", generation=1)
    assert story.both(beat("a"), m.HeartbeatResponse()) == []
    story.ask(join("c"), "newcomer")
    refused = refusal(story.both(beat("a"), m.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)))
    assert refused.why.endswith("It rebalances because newcomer joins.")
    refused = refusal(story.both(beat("a"), m.HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)))
    assert refused.why.endswith("Generation 1 is the newest that was seen here.")
    story.now_ms += 20_000
    refused = refusal(story.both(beat("b"), m.HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)))
    assert refused.why.endswith("It was heard last 25000 ms ago, and its session timeout is 10000 ms.")


def test_a_rebalance_that_nobody_here_caused_is_told() -> None:
    story = Story()
    story.join("a", generation=1)
    told = story.both(beat("a"), m.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert isinstance(told[0], events.RebalanceStarted)
    assert told[0].reason == "the coordinator says so; who caused it was not seen here"
    story.join("a", "b", generation=2)
    story.now_ms += 9_000
    story.both(beat("a"), m.HeartbeatResponse())
    story.now_ms += 5_000
    told = story.both(beat("a"), m.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert isinstance(told[0], events.RebalanceStarted)
    assert told[0].reason == "b was not heard for 16000 ms, and its session timeout is 10000 ms"


def leave(*members: str) -> m.LeaveGroupRequest:
    return m.LeaveGroupRequest(group_id="g", members=tuple(MemberIdentity(member_id=each) for each in members))


def test_who_leaves_is_out_and_the_others_join_again() -> None:
    story = Story()
    story.join("a", "b", generation=1)
    told = story.both(leave("b"), m.LeaveGroupResponse(members=(MemberResponse(member_id="b"),)))
    assert kinds(told) == ["MemberRemoved", "RebalanceStarted"]
    told = story.both(leave("a"), m.LeaveGroupResponse())
    assert kinds(told) == ["MemberRemoved"]
    told = story.both(leave("a"), m.LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
    assert refusal(told).error == "NOT_COORDINATOR"
    unknown = MemberResponse(member_id="x", error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert kinds(story.both(leave("x"), m.LeaveGroupResponse(members=(unknown,)))) == ["RequestRefused"]
    static = m.LeaveGroupRequest(group_id="g", members=(MemberIdentity(group_instance_id="i", reason="moved"),))
    (told_one,) = story.both(static, m.LeaveGroupResponse())
    assert isinstance(told_one, events.MemberRemoved)
    assert (told_one.member, told_one.reason) == ("instance i", "moved")


def commit(name: str, topic_id: uuid.UUID | None = None) -> m.OffsetCommitRequest:
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=each, committed_offset=5, committed_metadata="") for each in (0, 1)
    )
    topic = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=partitions)
    return m.OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id="a", group_instance_id=None, topics=(topic,)
    )


def committed(name: str, topic_id: uuid.UUID | None = None, second: int = 0) -> m.OffsetCommitResponse:
    partitions = (
        OffsetCommitResponsePartition(partition_index=0),
        OffsetCommitResponsePartition(partition_index=1, error_code=second),
    )
    return m.OffsetCommitResponse(
        topics=(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=partitions),)
    )


def test_commits_are_told_and_refusals_with_them() -> None:
    story = Story()
    (told,) = story.both(commit("orders"), committed("orders"))
    assert isinstance(told, events.OffsetsCommitted)
    assert told.offsets == (("orders", 0, 5), ("orders", 1, 5))
    told_both = story.both(commit("orders"), committed("orders", second=ErrorCode.ILLEGAL_GENERATION))
    assert kinds(told_both) == ["OffsetsCommitted", "RequestRefused"]
    nothing = m.OffsetCommitResponse(topics=())
    empty = m.OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id="a", group_instance_id=None, topics=()
    )
    assert story.both(empty, nothing) == []


def test_topics_are_named_as_metadata_named_them() -> None:
    story = Story()
    (told,) = story.both(commit("", TOPIC_ID), committed("", TOPIC_ID))
    assert isinstance(told, events.OffsetsCommitted)
    assert told.offsets[0][0] == "AAAAAAAAAAAAAAAAAAAABw"
    topics = (MetadataResponseTopic(name="orders", topic_id=TOPIC_ID), MetadataResponseTopic(name=None))
    assert story.both(m.MetadataRequest(), m.MetadataResponse(topics=topics)) == []
    (told,) = story.both(commit("", TOPIC_ID), committed("", TOPIC_ID))
    assert isinstance(told, events.OffsetsCommitted)
    assert told.offsets[0][0] == "orders"


def heartbeat(epoch: int, topics: tuple[str, ...] | None = None, instance: str | None = None) -> Any:
    return m.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="a", member_epoch=epoch, subscribed_topic_names=topics, instance_id=instance
    )


def reconciled(epoch: int, *partitions: int, error: int = 0) -> m.ConsumerGroupHeartbeatResponse:
    assignment = Assignment(topic_partitions=(TopicPartitions(topic_id=TOPIC_ID, partitions=partitions),))
    return m.ConsumerGroupHeartbeatResponse(
        error_code=error, member_id="a", member_epoch=epoch, assignment=assignment if partitions else None
    )


def test_epochs_of_a_consumer_group_are_told() -> None:
    story = Story()
    told = story.both(heartbeat(0, ("orders",)), reconciled(1, 0, 1))
    assert kinds(told) == ["ConsumerMemberJoined", "GroupEpochBumped", "MemberReconciled"]
    assert isinstance(told[1], events.GroupEpochBumped)
    assert (told[1].epoch, told[1].reason) == (1, "c joined")
    assert story.both(heartbeat(1), reconciled(1)) == []
    told = story.both(heartbeat(1, ("orders", "more")), reconciled(2))
    assert kinds(told) == ["SubscriptionChanged", "GroupEpochBumped", "MemberReconciled"]
    told = story.both(heartbeat(2), reconciled(3, 0))
    assert isinstance(told[0], events.GroupEpochBumped)
    assert told[0].reason == "the coordinator says so; what caused it was not seen here"
    assert story.why().startswith("epoch 3: ")


def test_members_of_a_consumer_group_leave_for_good_or_for_a_time() -> None:
    story = Story()
    story.both(heartbeat(0, ("orders",)), reconciled(1, 0))
    assert kinds(story.both(heartbeat(-2, instance="i"), reconciled(-2))) == ["StaticMemberAway"]
    story.both(heartbeat(0, ("orders",)), reconciled(1, 0))
    assert kinds(story.both(heartbeat(-1), reconciled(-1), None)) == ["MemberRemoved"]
    refused = refusal(story.both(heartbeat(1), reconciled(0, error=ErrorCode.FENCED_MEMBER_EPOCH)))
    assert refused.why == ErrorCode.FENCED_MEMBER_EPOCH.text


def test_other_requests_tell_nothing() -> None:
    assert Story().both(m.ApiVersionsRequest(), m.ApiVersionsResponse()) == []
