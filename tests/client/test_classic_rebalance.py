"""A rebalance as one member lives through it: joining, leading, and what makes it join again."""

from typing import Any

import pytest

from groupcoord.assignors import (
    Assignment,
    FunctionAssignor,
    GroupSubscription,
    RebalanceProtocol,
    Subscription,
    as_leader,
    read_assignment,
    read_subscription,
)
from groupcoord.assignors.range_assignor import RangeAssignor
from groupcoord.assignors.serialization import write_subscription
from groupcoord.client.client_errors import AssignorFailedError, DisconnectedError
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.context import MemberState
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.protocol.apis.heartbeat import HeartbeatResponse
from groupcoord.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponseMember
from groupcoord.protocol.apis.sync_group import SyncGroupRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.talk import BROKER, COOPERATIVE, EAGER, LEADER, ME, Talk, beat_brings, partitions, settled

BOTH = [EAGER, COOPERATIVE]
P = partitions


# Joining.
def test_a_newcomer_joins_with_the_id_it_is_given() -> None:
    """KIP-394."""
    talk = Talk()
    talk.find()
    first = talk.join(E.MEMBER_ID_REQUIRED, member_id="given")
    assert (first.member_id, first.reason) == ("", "")
    second = talk.join(member_id="given")
    assert (second.member_id, second.reason) == ("given", "need to re-join with the given member-id: given")
    assert [event.member for event in talk.said(e.MemberIdGiven)] == ["given"]


def test_the_request_says_all_there_is_to_say() -> None:
    talk = Talk(
        ["sticky", "range"],
        topics=["b", "a"],
        instance_id="i",
        rack_id="r",
        session_timeout_ms=10_000,
        max_poll_interval_ms=60_000,
    )
    talk.find()
    send, request = talk.sends(JoinGroupRequest)
    assert (send.to, send.timeout_ms) == (BROKER, 65_000)
    assert (request.group_id, request.group_instance_id, request.protocol_type) == ("g", "i", "consumer")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 60_000)
    assert [protocol.name for protocol in request.protocols] == ["sticky", "range"]
    said = read_subscription(request.protocols[1].metadata)
    assert said == Subscription(topics=("a", "b"), owned_partitions=[], generation_id=None, rack_id="r")


def test_a_long_reason_is_cut() -> None:
    talk = settled(COOPERATIVE)
    talk.hears(talk.membership.rejoin("x" * 300, 0))
    assert talk.join().reason == "x" * 255


def test_a_follower_syncs_without_assignments_and_gets_its_own() -> None:
    talk = Talk()
    talk.find()
    talk.join(generation=7)
    before = talk.membership.state
    request = talk.sync(*P(1, 2))
    assert (before, talk.membership.state) == (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)
    assert (request.generation_id, request.member_id, request.protocol_name) == (7, ME, "range")
    assert request.assignments == ()
    talk.owns(*P(1, 2))
    talk.told("assigned", *P(1, 2))
    assert talk.is_quiet()
    (synced,) = talk.said(e.Synced)
    assert (synced.keeps, synced.gains, synced.gives_up) == ((), P(1, 2), ())


# Leading.
def test_a_leader_learns_of_all_topics_and_assigns_them() -> None:
    talk = Talk(["roundrobin"])
    talk.find()
    talk.join(
        leader=ME,
        members=tuple(
            JoinGroupResponseMember(member_id=member_id, metadata=said)
            for member_id, said in {ME: b"\0\0\0\0\0\1\0\1t\0\0\0\0", "b": b"\0\0\0\0\0\1\0\1u\0\0\0\0"}.items()
        ),
    )
    learn = talk.wish(a.FetchMetadata)
    assert learn.topics == {"t", "u"}
    assert talk.membership.watched_topics == {"t", "u"}
    talk.completes(learn, MetadataSnapshot(partitions={"t": 2, "u": 1, "nobody's": 9}))
    assign = talk.wish(a.RunAssignor)
    assert (assign.group.partitions, list(assign.group.subscriptions)) == ({"t": 2, "u": 1}, [ME, "b"])
    talk.completes(assign, {ME: [*P(1, 0)], "b": [("u", 0)]})
    request = talk.sync(*P(1, 0))
    assert {each.member_id: read_assignment(each.assignment) for each in request.assignments} == {
        ME: [*P(1, 0)],
        "b": [("u", 0)],
    }
    (ran,) = talk.said(e.AssignorRan)
    assert (ran.assignment, ran.withheld) == (((ME, P(1, 0)), ("b", (("u", 0),))), ())


def test_a_leader_gives_topics_of_one_hash_bucket_in_the_order_in_which_java_meets_them() -> None:
    """``Aa`` and ``BB`` have the same hash, and a leader in Java learns of topics from its members, in a ``HashMap``."""
    talk = Talk(["range"])
    talk.find()
    wants = {"y": ("Aa", "t"), "x": ("BB",), ME: ("Aa", "BB")}
    members = {member_id: Subscription(topics=topics) for member_id, topics in wants.items()}
    counts = {"Aa": 1, "BB": 3, "t": 1}
    talk.lead(members, counts=counts)
    java = as_leader(GroupSubscription(subscriptions=members, partitions=counts))
    expected = RangeAssignor().assign(java)
    request = talk.sync(*P(0))
    assert {each.member_id: read_assignment(each.assignment) for each in request.assignments} == expected
    assert expected[ME] == [("BB", 0), ("BB", 1), ("Aa", 0)]


def test_a_cooperative_leader_shows_what_nobody_gets_yet() -> None:
    talk = Talk(COOPERATIVE)
    talk.find()
    owner = Subscription(topics=["t"], owned_partitions=[*P(0, 1, 2, 3)], generation_id=1)
    gone = [*owner.owned_partitions, ("t", 99)]
    talk.lead({ME: Subscription(topics=["t"]), "b": Subscription(topics=["t"], owned_partitions=gone, generation_id=1)})
    (ran,) = talk.said(e.AssignorRan)
    assert (len(ran.withheld), dict(ran.assignment)[ME]) == (2, ())


def test_a_static_leader_that_comes_back_assigns_nothing() -> None:
    """KIP-814."""
    talk = Talk(instance_id="i")
    talk.find()
    talk.join(
        leader=ME,
        skip_assignment=True,
        members=(JoinGroupResponseMember(member_id=ME, metadata=b"\0\0\0\0\0\0\0\0\0\0"),),
    )
    talk.completes(talk.wish(a.FetchMetadata), MetadataSnapshot(partitions={"t": 4}))
    assert talk.sync(*P(0)).assignments == ()
    assert len(talk.said(e.AssignmentSkipped)) == 1


def test_a_subscription_that_is_none_ends_the_leader() -> None:
    talk = Talk()
    talk.find()
    talk.join(leader=ME, members=(JoinGroupResponseMember(member_id="b", metadata=b"?"),))
    talk.leave()
    assert "a member sent a subscription that is none" in str(talk.wish(a.RaiseError).error)


def test_a_leader_that_cannot_learn_joins_again() -> None:
    talk = Talk()
    talk.find()
    talk.join(leader=ME)
    talk.fails(talk.wish(a.FetchMetadata), DisconnectedError("no broker"))
    talk.waits(100)
    assert talk.join(leader=ME).reason == "rebalance failed due to DisconnectedError"
    talk.fails(talk.wish(a.FetchMetadata), ValueError("nonsense"))
    talk.leave()
    assert str(talk.wish(a.RaiseError).error) == "nonsense"


def raising(group: GroupSubscription) -> Assignment:
    raise ZeroDivisionError("by design")


def giving_twice(group: GroupSubscription) -> Assignment:
    return {member_id: [*P(0, 1, 2, 3)] for member_id in group.subscriptions}


def forgetting(group: GroupSubscription) -> Assignment:
    return {member_id: [] for member_id in group.subscriptions}


def forgetting_a_member(group: GroupSubscription) -> Assignment:
    return {ME: [*P(0, 1, 2, 3)]}


def naming_a_stranger(group: GroupSubscription) -> Assignment:
    return {**forgetting(group), "stranger": [*P(0, 1, 2, 3)]}


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (raising, "raised ZeroDivisionError: by design"),
        (giving_twice, "gives t-0 to both"),
        (forgetting, "gives t-0 to nobody"),
        (forgetting_a_member, "forgets member b"),
        (naming_a_stranger, "names 'stranger'"),
    ],
)
@pytest.mark.parametrize("protocol", RebalanceProtocol)
def test_a_faulty_assignor_ends_its_member_alone(function: object, problem: str, protocol: RebalanceProtocol) -> None:
    talk = Talk([FunctionAssignor("mine", function, [protocol])])  # type: ignore[arg-type]
    talk.find()
    talk.lead({ME: Subscription(topics=["t"]), "b": Subscription(topics=["t"])})
    request = talk.leave()
    assert request.members[0].member_id == ME, "it leaves, so that the group goes on without it"
    raised = talk.wish(a.RaiseError)
    assert raised.final
    assert isinstance(raised.error, AssignorFailedError)
    assert str(raised.error).startswith("assignor mine: ")
    assert problem in str(raised.error)


def test_a_generation_that_ends_while_the_assignor_runs() -> None:
    talk = Talk()
    talk.find()
    talk.join(leader=ME)
    talk.completes(talk.wish(a.FetchMetadata), MetadataSnapshot())
    assign = talk.wish(a.RunAssignor)
    beat_brings(talk, E.ILLEGAL_GENERATION)
    assert talk.wish(a.CancelAction).ticket == assign.ticket
    talk.join(generation=2)
    talk.completes(assign, {})
    talk.sends(SyncGroupRequest)
    assert talk.is_quiet()


# Reasons to join again.
def leading(assignors: tuple[str], **how: Any) -> Talk:
    talk = Talk(assignors, **how)
    talk.find()
    talk.lead({ME: Subscription(topics=["t"])}, counts={"t": 2})
    talk.sync(*P(0, 1))
    talk.owns(*P(0, 1))
    talk.told("assigned", *P(0, 1))
    return talk


def test_a_leader_joins_again_when_partitions_come() -> None:
    talk = leading(COOPERATIVE)
    talk.learns(t=2, other=5)
    assert talk.is_quiet()
    talk.learns(t=3)
    assert talk.join(generation=2, leader=LEADER).reason == "cached metadata has changed"
    talk.sync(*P(0, 1, 2))
    talk.owns(*P(0, 1, 2))
    talk.told("assigned", *P(2))
    talk.learns(t=4)
    assert talk.is_quiet(), "it does not lead any more"


@pytest.mark.parametrize(("rack", "rejoins"), [("r", True), (None, False)])
def test_racks_matter_to_a_leader_that_says_where_it_is(rack: str | None, rejoins: bool) -> None:
    talk = leading(COOPERATIVE, rack_id=rack)
    racks = {"t": (frozenset({"r"}), frozenset({"s"}))}
    talk.hears(talk.membership.topics_changed(MetadataSnapshot(partitions={"t": 2}, racks=racks), 0))
    assert talk.is_quiet() is not rejoins


def test_a_follower_does_not_care_about_topics() -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.learns(t=99)
    assert talk.is_quiet()


def test_a_user_may_ask_for_a_rebalance() -> None:
    """KIP-568."""
    talk = settled(COOPERATIVE, *P(0))
    talk.hears(talk.membership.rejoin("I want to", 0))
    assert talk.join(generation=2).reason == "I want to"


def test_the_same_subscription_is_no_reason() -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.subscribes("t")
    assert talk.is_quiet()


def test_a_rebalance_during_the_callback_follows_it() -> None:
    talk = settled(COOPERATIVE)
    talk.hears(talk.membership.rejoin("first", 0))
    talk.join(generation=2)
    talk.sync(*P(0))
    talk.owns(*P(0))
    tell = talk.wish(a.InvokeCallback)
    talk.waits(3_000)
    send = talk.wish(a.SendRequest)
    talk.completes(send, HeartbeatResponse(error_code=E.REBALANCE_IN_PROGRESS))
    assert talk.is_quiet()
    talk.completes(tell)
    assert talk.join(generation=3).reason == "group is already rebalancing"


def test_sticky_remembers_for_the_next_join_what_it_was_given() -> None:
    talk = settled(["sticky"], *P(0, 1))
    talk.hears(talk.membership.rejoin("why not", 0))
    talk.told("revoked", *P(0, 1))
    talk.owns()
    said = read_subscription(talk.join(generation=2).protocols[0].metadata)
    assert said.owned_partitions == []
    assert said.user_data is not None


def test_an_assignor_that_does_not_end_ends_the_member_when_the_rebalance_would() -> None:
    talk = Talk(EAGER, max_poll_interval_ms=20_000)
    talk.find()
    said = write_subscription(Subscription(topics=["t"]))
    talk.join(leader=ME, members=(JoinGroupResponseMember(member_id=ME, metadata=said),))
    talk.completes(talk.wish(a.FetchMetadata), MetadataSnapshot(partitions={"t": 1}))
    assigning = talk.wish(a.RunAssignor)
    for _ in range(6):
        talk.waits(3_000)
        talk.beat()
    talk.waits(2_000)
    assert talk.wish(a.CancelAction).ticket == assigning.ticket
    talk.leave()
    raised = talk.wish(a.RaiseError)
    assert raised.final
    assert str(raised.error) == "assignor range: it has not ended within max_poll_interval_ms=20000 ms"
    assert talk.membership.failure is raised.error
