"""Members of the classic protocol in a consumer group: they are told to join again, and get what the coordinator assigned."""

from typing import Any

import pytest

from groupcoord.coordinator.consumer.member import MemberState
from groupcoord.coordinator.events import Departure, MemberIdAssigned, MemberRemoved
from groupcoord.protocol import consumer_protocol
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import LeaveGroupRequest
from tests.coordinator.consumer.consumers import Consumer, ConsumerWorld, offer, settle
from tests.coordinator.world import Member, subscription

OK, REBALANCE = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS
INCONSISTENT, UNKNOWN = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.UNKNOWN_MEMBER_ID


def share(member: Member) -> dict[str, list[int]]:
    """What it was assigned."""
    assert member.assigned is not None
    told = consumer_protocol.read_assignment(member.assigned)
    return {each.topic: list(each.partitions) for each in told.assigned_partitions}


def mixed(**terms: Any) -> tuple[ConsumerWorld, Consumer, Member]:
    """A consumer with t-0 and t-1, and a classic member that has joined and is to have t-2 and t-3."""
    w = ConsumerWorld(topics={"t": 4})
    a, m = w.consumer("a"), w.classic("m", member_id="" if "instance" in terms else "m", **terms)
    a.join()
    assert m.join().error is OK
    return w, a, m


def settled(**terms: Any) -> tuple[ConsumerWorld, Consumer, Member]:
    """Both have what they are to have."""
    w, a, m = mixed(**terms)
    m.sync()
    a.heartbeat()
    settle([a])
    assert m.heartbeat().error is REBALANCE
    m.join()
    m.sync()
    assert (a.assigned, share(m)) == ({"t": [0, 1]}, {"t": [2, 3]})
    return w, a, m


def test_a_classic_member_gets_what_others_give_back() -> None:
    w, a, m = mixed()
    assert w.last() == "member:m group target:a target:m assigned current:m"
    assert (m.generation, m.leader, m.told.protocol_name, m.told.members) == (3, "", "range", ())
    assert m.sync().error is OK
    assert share(m) == {}
    assert m.heartbeat().error is OK  # it waits for a, and there is nothing to do for it
    assert w.deadline("member-join", "m") is None
    a.heartbeat()
    a.owns()
    assert m.heartbeat().error is REBALANCE  # there is something for it now
    assert w.deadline("member-join", "m") == 60_000
    w.advance(1_000)
    assert m.heartbeat().error is REBALANCE
    assert w.deadline("member-join", "m") == 59_000
    m.join()
    assert w.deadline("member-join", "m") is None
    m.sync()
    assert share(m) == {"t": [2, 3]}
    assert m.heartbeat().error is OK
    assert [(each.member_id, each.member_type) for each in w.described().members] == [("m", 0), ("a", 1)]
    assert {each.member_type for each in w.described(version=0).members} == {-1}


def test_a_classic_member_gives_back_by_joining_again() -> None:
    """What it owns is in its subscription."""
    w, a, m = settled()
    c = w.consumer("c")
    c.join()
    assert m.heartbeat().error is REBALANCE
    assert m.sync().error is REBALANCE
    m.protocols = offer("t", owned={"t": [2, 3], "nowhere": [0]})
    m.join()
    assert w.consumers.members["m"].state is MemberState.UNREVOKED_PARTITIONS
    assert m.sync().error is OK  # it learns what it keeps
    assert share(m) == {"t": [2]}
    assert m.heartbeat().error is REBALANCE
    m.protocols = offer("t", owned={"t": [2]})
    m.join()
    m.sync()
    assert m.heartbeat().error is OK
    settle([a, c])
    assert c.assigned == {"t": [3]} or a.assigned


def test_an_id_is_handed_out_first() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    m = w.classic("m")
    assert m.join().error is ErrorCode.MEMBER_ID_REQUIRED
    assert [each.member for each in w.seen(MemberIdAssigned)] == [m.member_id]
    assert len(m.member_id) == 22
    assert m.join().error is OK
    old = w.classic("old", version=3)
    assert old.join().error is OK
    assert old.member_id in w.consumers.members


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"protocol_type": "connect"}, INCONSISTENT),
        ({"protocols": {}}, INCONSISTENT),
        ({"protocols": {"range": b"x"}}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"protocols": {"roundrobin": subscription("t")}}, INCONSISTENT),
        ({"instance": "i"}, UNKNOWN),  # a static member comes without an id at first
        ({}, OK),
    ],
)
def test_who_may_join(changes: dict[str, Any], error: ErrorCode) -> None:
    w, *_ = settled()
    assert w.classic("n", member_id="n").join(**changes).error is error
    assert ("n" in w.consumers.members) is (error is OK)


def test_a_full_group() -> None:
    w = ConsumerWorld(group_consumer_max_size=1)
    w.joined_consumers("a")
    assert w.classic("m").join().error is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, OK),
        ({"member_id": "z"}, UNKNOWN),
        ({"member_id": "a"}, UNKNOWN),
        ({"generation": 4}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"instance": "i"}, UNKNOWN),
    ],
)
def test_who_may_sync_and_heartbeat(changes: dict[str, Any], error: ErrorCode) -> None:
    _, _, m = settled()
    assert m.sync(**changes).error is error
    assert m.heartbeat(**changes).error is error


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"protocol_type": "connect"}, INCONSISTENT),
        ({"protocol_name": "sticky"}, INCONSISTENT),
        ({"protocol_type": None, "protocol_name": None, "version": 4}, OK),
    ],
)
def test_a_sync_has_to_name_the_protocol(changes: dict[str, Any], error: ErrorCode) -> None:
    _, _, m = settled()
    assert m.sync(**changes).error is error


def test_instance_ids_of_classic_members() -> None:
    """They take the place of the instance at any time, whoever has it, and are in turn replaced."""
    w, a, m = settled(instance="i")
    n = w.classic("n", instance="i")
    n.join()
    assert m.member_id not in w.consumers.members
    assert w.consumers.static_member("i").member_id == n.member_id  # type: ignore[union-attr]
    n.sync()
    assert share(n) == {"t": [2, 3]}
    assert m.heartbeat().error is ErrorCode.FENCED_INSTANCE_ID
    back = w.consumer("b", instance="i")
    back.join()
    assert back.assigned == {"t": [2, 3]}
    settle([a, back])
    assert w.state == "Stable"


def test_a_classic_member_with_its_own_id_is_not_replaced() -> None:
    """With its member id it is the member; with another one it is fenced."""
    w, _, m = settled(instance="i")
    before = len(w.batches)
    assert m.join().error is OK
    assert len(w.batches) == before
    assert m.join(member_id="z").error is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize(("timer", "how"), [("session", Departure.SESSION_OVER), ("member-join", Departure.NOT_JOINED)])
def test_a_classic_member_out_of_time(timer: str, how: Departure) -> None:
    w, a, m = settled(session_ms=10_000, rebalance_ms=25_000)
    if timer == "member-join":
        w.consumer("c").join()
        for _ in range(6):
            w.advance(5_000)
            m.heartbeat()
            a.heartbeat()
    else:
        w.advance(10_000)
    assert [each.how for each in w.seen(MemberRemoved)] == [how]


def test_a_classic_member_that_never_syncs() -> None:
    w, _, m = mixed(rebalance_ms=7_000)
    assert w.deadline("member-sync", "m") == 7_000
    w.advance(6_999)
    m.heartbeat()
    w.advance(1)
    assert [each.how for each in w.seen(MemberRemoved)] == [Departure.NOT_SYNCED]


def test_commits_of_a_classic_member() -> None:
    w, _, m = settled()
    assert m.commit({("t", 2): 5}, version=8).partition_errors == {("t", 2): OK}
    assert m.commit({("t", 2): 5}, generation=9).partition_errors == {("t", 2): ErrorCode.ILLEGAL_GENERATION}
    assert m.commit({("t", 0): 5}, generation=1).partition_errors == {("t", 0): ErrorCode.ILLEGAL_GENERATION}
    assert w.fetch_as_member("m", m.generation) is OK
    assert w.fetch_as_member("m", 1) is ErrorCode.ILLEGAL_GENERATION


def test_requests_whose_records_cannot_be_stored() -> None:
    """Whether they have records of their own or wait for those of others, they are answered."""
    w, _, m = settled()
    w.hold_appends()
    n = w.classic("n", member_id="n")
    m.commit()
    asked = [m.sync(), m.heartbeat(), n.join(), m.leave()]
    assert all(each.parked for each in asked)
    w.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert [each.error for each in asked] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 4
    assert not w.held


def leave(w: ConsumerWorld, *who: tuple[str, str | None]) -> list[ErrorCode]:
    members = tuple(MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in who)
    answer = w.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id="g", members=members)).answer
    return [ErrorCode(each.error_code) for each in answer.members]


def test_many_leave_at_once() -> None:
    """Whatever they speak; those who are not known keep nobody."""
    w = ConsumerWorld()
    w.joined_consumers("abc")
    w.consumer("d", instance="i").join()
    w.consumer("e", instance="j").join()
    before = len(w.batches)
    fenced = ErrorCode.FENCED_INSTANCE_ID
    who = [("a", None), ("a", None), ("z", None), ("x", "k"), ("", "k"), ("b", "i"), ("", "i"), ("e", "j")]
    assert leave(w, *who) == [OK, OK, UNKNOWN, UNKNOWN, UNKNOWN, fenced, OK, OK]
    assert len(w.batches) == before + 1
    assert {each.member_id for each in w.described().members} == {"b", "c"}
    assert leave(w) == []
    assert leave(w, ("z", None)) == [UNKNOWN]
    assert len(w.batches) == before + 1


def test_a_classic_member_becomes_a_consumer() -> None:
    """With the same id it goes on where it was."""
    w, a, _ = settled()
    b = w.consumer("m")
    b.join()
    assert w.consumers.members["m"].classic is None
    settle([a, b])
    assert b.assigned == {"t": [2, 3]}


def test_a_subscription_in_an_old_version_gets_an_assignment_in_it() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    for version in (0, 3):
        m = w.classic("m", member_id="m")
        m.protocols = offer("t", version=version)
        m.join()
        m.sync()
        assert m.assigned is not None
        assert int.from_bytes(m.assigned[:2]) == version


def test_a_classic_member_makes_no_difference_to_expressions() -> None:
    """It gives its expression up when it comes back as a classic one."""
    w = ConsumerWorld()
    a = w.consumer("a", regex="t")
    a.join()
    w.consumer("b").join()
    w.advance(0)
    m = w.classic("a", member_id="a")
    assert m.join().error is OK
    assert "-regex" in w.last()
    assert not w.consumers.members["a"].topic_regex
