"""Every way in which a promise can be broken, by states that no coordinator should get into."""

from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.assignors import Subscription, write_assignment, write_subscription
from groupcoord.client.client_errors import BrokerError
from groupcoord.client.member.context import MemberState
from groupcoord.client.member.metadata_and_commit_requests import offset_commit_request
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState, Member
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.member import ConsumerMember
from groupcoord.coordinator.events import GroupRemoved, StateChanged, StaticMemberReplaced
from groupcoord.core.effects import Call
from groupcoord.core.events import AdminAction
from groupcoord.core.timers import Timers
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupResponse, OffsetCommitRequest
from groupcoord.simulation import TransactionPlan
from groupcoord.simulation.invariants.base import Invariant, InvariantViolation
from groupcoord.simulation.invariants.classic_groups import (
    EMPTIED,
    CommitDurability,
    CommitFencing,
    CommonProtocol,
    GroupInvariant,
    LeaderIsMember,
    MonotonicGenerations,
    ReplayMatchesState,
    TimersMatchState,
    UniqueInstanceIds,
)
from groupcoord.simulation.invariants.members import (
    ClientOwnership,
    Convergence,
    NoUnexpectedExit,
    OneResponse,
    SessionTimeouts,
    SingleOwner,
)
from tests.coordinator.bare_group import bare_group

ONE, TWO = ("orders", 0), ("orders", 1)
NEWS: dict[str, Any] = {"at_ms": 0, "cause": AdminAction("test"), "group": "app"}


def member(
    name: str, *, instance_id: str | None = None, gets: tuple[tuple[str, int], ...] = (), owns: Any = ()
) -> Member:
    said = write_subscription(Subscription(topics=["orders"], owned_partitions=owns))
    return Member(
        member_id=name,
        instance_id=instance_id,
        client_id=name,
        client_host="/127.0.0.1",
        rebalance_timeout_ms=10_000,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", said),),
        session_key=bare_group("app").session_key(name),
        assignment=write_assignment(list(gets)),
    )


def group_of(*members: Member, state: GroupState = GroupState.STABLE, generation: int = 3) -> ClassicGroup:
    group = bare_group("app")
    for each in members:
        group.add_member(each, None)
    group.state, group.generation_id, group.protocol_name = state, generation, "range"
    return group


def context(group: ClassicGroup | None, *processes: Any, now_ms: int = 0) -> Any:
    timers = Timers()
    for each in group.members if group else ():
        assert group is not None
        timers.schedule(group.session_key(each), 10_000, lambda _: None)
    return SimpleNamespace(
        event_queue=SimpleNamespace(now_ms=now_ms),
        plan=SimpleNamespace(topics={"orders": 2}, may_migrate=False),
        processes=lambda: list(processes),
        brokers=SimpleNamespace(
            group=group,
            consumer_group=None,
            partition_counts={"orders": 2},
            has_coordinator=True,
            coordinates=lambda broker: broker == 0,
            cluster=SimpleNamespace(coordinator=SimpleNamespace(timers=timers)),
        ),
    )


def process(name: str, *owned: tuple[str, int], state: MemberState = MemberState.STABLE) -> Any:
    return SimpleNamespace(
        client_id=name,
        member_id=name,
        owned=frozenset(owned),
        topics=("orders",),
        is_stable=state is MemberState.STABLE,
        membership=SimpleNamespace(state=state),
        plan=SimpleNamespace(instance_id=None, transactions=None),
        protocol="classic",
        awaited_requests=lambda: {(1, 1)},
    )


def call_of(key: ApiKey, broker: int = 0) -> Call:
    return Call(1, 1, APIS[key], APIS[key].max_version, "a", "/127.0.0.1", broker)


def test_what_an_invariant_says_by_itself() -> None:
    silent = Invariant(context(None))
    for tell in (
        silent.coordinator_unloading,
        silent.coordinator_loaded,
        silent.step_done,
        silent.heartbeat_done,
        silent.ownership_changed,
        silent.finish,
    ):
        tell()
    silent.request_received(call_of(ApiKey.HEARTBEAT), None)
    silent.response_sent(call_of(ApiKey.HEARTBEAT), None)
    silent.event_emitted(GroupRemoved(**NEWS, reason=""))
    silent.append_decided("store")
    silent.member_failed(process("a"), ValueError())
    with pytest.raises(NotImplementedError):
        GroupInvariant(context(group_of())).step_done()


def broken_by(invariant: Invariant, why: str) -> None:
    with pytest.raises(InvariantViolation, match=why):
        invariant.step_done()


def test_leaders() -> None:
    group = group_of(member("a"))
    LeaderIsMember(context(group)).step_done()
    LeaderIsMember(context(None)).step_done()
    group.leader_id = "b"
    broken_by(LeaderIsMember(context(group)), "the leader is b, the members are a")
    broken_by(LeaderIsMember(context(group_of(member("a"), state=GroupState.EMPTY))), "is Empty and has the members a")
    broken_by(LeaderIsMember(context(group_of())), "is Stable and has no members")


def test_protocols() -> None:
    group = group_of(member("a"))
    CommonProtocol(context(group)).step_done()
    group.protocol_name = "sticky"
    broken_by(CommonProtocol(context(group)), "the protocol is sticky; a supports range")
    group.state = GroupState.PREPARING_REBALANCE
    CommonProtocol(context(group)).step_done()


def test_instances() -> None:
    group = group_of(member("a", instance_id="one"), member("b"))
    UniqueInstanceIds(context(group)).step_done()
    group.members["b"].instance_id = "one"
    broken_by(UniqueInstanceIds(context(group)), "one")


def test_deadlines() -> None:
    look = context(group_of(member("a")))
    timers, group = look.brokers.cluster.coordinator.timers, look.brokers.group
    invariant = TimersMatchState(look)
    invariant.step_done()
    group.pending_join_members.add("new")
    broken_by(invariant, "new may join with that id for ever")
    group.pending_join_members.clear()
    timers.schedule(group.session_key("zoe"), 5, lambda _: None)
    broken_by(invariant, "session timers of zoe")
    timers.cancel(group.session_key("zoe"))
    timers.cancel(group.session_key("a"))
    broken_by(invariant, "a has no session timer")
    group.members["a"].parked_sync = call_of(ApiKey.SYNC_GROUP)
    invariant.step_done()
    timers.schedule(group.join_key, 5, lambda _: None)
    broken_by(invariant, "is Stable and has a join timer")
    group.state = GroupState.PREPARING_REBALANCE
    invariant.step_done()
    timers.cancel(group.join_key)
    broken_by(invariant, "has no join timer")
    group.state = GroupState.COMPLETING_REBALANCE
    group.pending_sync_members.add("a")
    broken_by(invariant, "1 SyncGroups are missing, and there is no sync timer")
    timers.schedule(group.sync_key, 5, lambda _: None)
    invariant.step_done()
    group.pending_sync_members.clear()
    broken_by(invariant, "there is a sync timer")
    look.brokers.group = None
    broken_by(invariant, "there is no group, but it has timers: sync")
    timers.cancel(group.sync_key)
    invariant.step_done()


def test_only_valid_requests_renew_a_session() -> None:
    group = group_of(member("a", instance_id="one"))
    look = context(group)
    sessions = SessionTimeouts(look)
    sessions.step_done()
    look.event_queue.now_ms = 9_000

    def beat(generation: int = 3, instance_id: str | None = "one", name: str = "a", broker: int = 0) -> None:
        request = HeartbeatRequest(
            group_id="app", generation_id=generation, member_id=name, group_instance_id=instance_id
        )
        sessions.request_received(call_of(ApiKey.HEARTBEAT, broker), request)

    beat(generation=2)
    beat(instance_id="two")
    beat(name="b")
    beat(broker=1)
    look.event_queue.now_ms = 10_000
    with pytest.raises(InvariantViolation, match="a is still in the group: it was silent for 10000 ms"):
        sessions.heartbeat_done()
    beat()
    sessions.heartbeat_done()
    look.event_queue.now_ms = 20_000
    broken_by(sessions, "still in the group")
    beat(instance_id=None)
    sessions.step_done()
    look.brokers.group = None
    beat()
    sessions.step_done()


def test_a_member_whose_successor_is_not_stored_has_a_new_session() -> None:
    look = context(group_of(member("a", instance_id="one")))
    sessions = SessionTimeouts(look)
    sessions.step_done()
    look.brokers.group = group_of(member("b", instance_id="one"))
    look.event_queue.now_ms = 5_000
    sessions.event_emitted(
        StaticMemberReplaced(**NEWS, instance_id="one", old_member="a", new_member="b", rebalances=False)
    )
    look.brokers.group = group_of(member("a", instance_id="one"))
    look.event_queue.now_ms = 9_000
    sessions.step_done()
    look.event_queue.now_ms = 18_999
    sessions.step_done()
    look.event_queue.now_ms = 19_000
    broken_by(sessions, "a is still in the group: it was silent for 10000 ms")


def test_replies() -> None:
    look = context(None, process("a"))
    replies = OneResponse(look)
    call = call_of(ApiKey.JOIN_GROUP)
    replies.request_received(call, None)
    with pytest.raises(InvariantViolation, match="JoinGroup of a was not answered"):
        replies.finish()
    replies.response_sent(call, None)
    replies.finish()
    with pytest.raises(InvariantViolation, match="answered twice"):
        replies.response_sent(call, None)


STABLE = StateChanged(**NEWS, origin=GroupState.COMPLETING_REBALANCE, target=GroupState.STABLE, generation=3)


def assignments(*members: Member) -> None:
    SingleOwner(context(group_of(*members))).event_emitted(STABLE)


def test_assignments() -> None:
    assignments(member("a", gets=(ONE,)), member("b", gets=(TWO,)))
    assignments(member("a", gets=(ONE,)), member("b", owns=[TWO]))
    with pytest.raises(InvariantViolation, match="orders-0 is assigned to a and to b"):
        assignments(member("a", gets=(ONE, TWO)), member("b", gets=(ONE,)))
    with pytest.raises(InvariantViolation, match="payments-0 is assigned to a, which does not subscribe to it"):
        assignments(member("a", gets=(("payments", 0),)))
    with pytest.raises(InvariantViolation, match="orders-1 is assigned to no member in generation 3"):
        assignments(member("a", gets=(ONE,)))
    empty = member("a")
    empty.assignment = b""
    with pytest.raises(InvariantViolation, match="orders-0 is assigned to no member"):
        assignments(empty)
    SingleOwner(context(None)).event_emitted(STABLE)
    SingleOwner(context(group_of(empty))).event_emitted(GroupRemoved(**NEWS, reason=""))


def test_beliefs() -> None:
    look = context(group_of(member("a"), member("b")), process("a", ONE), process("b", ONE))
    ownership = ClientOwnership(look)

    def admit(name: str, code: int = 0) -> None:
        answer = JoinGroupResponse(error_code=code, generation_id=3, leader="", member_id=name, members=())
        ownership.response_sent(call_of(ApiKey.JOIN_GROUP), answer)

    admit("a")
    admit("b", 27)
    ownership.step_done()  # b may be a zombie
    admit("b")
    with pytest.raises(InvariantViolation, match="a and b both own orders-0 in generation 3"):
        ownership.ownership_changed()
    ownership.event_emitted(STABLE)
    look.brokers.group = None
    ownership.ownership_changed()
    ownership.event_emitted(GroupRemoved(**NEWS, reason=""))
    look.brokers.group = group_of(member("a"), member("b"))
    ownership.ownership_changed()


def commit(
    name: str = "a", generation: int = 3, instance_id: str | None = None, offset: int = 5
) -> OffsetCommitRequest:
    return offset_commit_request("app", generation, name, instance_id, {ONE: offset})


def commit_answer(code: int = 0) -> Any:
    return SimpleNamespace(
        topics=(SimpleNamespace(name="orders", partitions=(SimpleNamespace(partition_index=0, error_code=code),)),)
    )


def test_commits_of_strangers() -> None:
    look = context(group_of(member("a", instance_id="one")))
    commits, call = CommitFencing(look), call_of(ApiKey.OFFSET_COMMIT)
    commits.request_received(call, commit())
    commits.response_sent(call, commit_answer())
    for request, why in (
        (commit("b"), "b is not in the group"),
        (commit(generation=2), "generation 2, the group 3"),
        (commit(instance_id="two"), "two belongs to another member"),
    ):
        commits.request_received(call, request)
        commits.response_sent(call, commit_answer(25))
        commits.request_received(call, request)
        with pytest.raises(InvariantViolation, match=why):
            commits.response_sent(call, commit_answer())
    commits.request_received(call, commit(instance_id="one"))
    commits.response_sent(call, commit_answer())
    look.brokers.group = None
    commits.request_received(call, commit())
    with pytest.raises(InvariantViolation, match="there is no group"):
        commits.response_sent(call, commit_answer())
    look.brokers.has_coordinator = False  # it loads: a transaction's commit may be accepted when it is loaded
    commits.request_received(call, commit())
    commits.response_sent(call, commit_answer())


def test_commits_with_other_epochs() -> None:
    """A member of a consumer group may be behind with partitions that it has had since (KIP-1251)."""
    context_of_group = bare_group("app").context
    view: Any = context_of_group.topics.view
    view.create("orders", 2)
    group = ConsumerGroup("app", context_of_group)
    has = {view.topic_id("orders"): {ONE[1]: 3}}
    group.members.put("a", ConsumerMember(member_id="a", member_epoch=5, assigned=has))
    look = context(None)
    look.brokers.consumer_group = group
    commits, call = CommitFencing(look), call_of(ApiKey.OFFSET_COMMIT)
    for epoch in (5, 4, 3):
        commits.request_received(call, commit(generation=epoch))
        commits.response_sent(call, commit_answer())
    for request, why in (
        (commit("b", generation=5), "b is not in the group"),
        (commit(generation=6), "epoch 6, the member 5"),
        (commit(generation=2), "epoch 2, the member 5"),
    ):
        commits.request_received(call, request)
        with pytest.raises(InvariantViolation, match=why):
            commits.response_sent(call, commit_answer())


def test_commits_last() -> None:
    look = context(None)
    look.plan.topics["orders"] = 1
    there: dict[str, Any] = {"offset": None}
    look.brokers.shard = SimpleNamespace(committed=SimpleNamespace(offset=lambda *_: there["offset"]))
    commits, call = CommitDurability(look), call_of(ApiKey.OFFSET_COMMIT)

    def committed(offset: int, code: int = 0) -> None:
        commits.request_received(call, commit(offset=offset))
        commits.response_sent(call, commit_answer(code))

    def has(offset: int) -> None:
        there["offset"] = SimpleNamespace(offset=offset)
        commits.coordinator_loaded()
        commits.step_done()

    commits.coordinator_loaded()
    commits.step_done()
    committed(5)
    has(5)
    committed(4, ErrorCode.ILLEGAL_GENERATION)
    committed(6, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    has(5)
    has(6)
    with pytest.raises(InvariantViolation, match="has offset 4 of orders-0, the last acknowledged commit has 5"):
        has(4)
    committed(3)
    has(3)
    with pytest.raises(InvariantViolation, match="has offset 6"):
        has(6)
    look.brokers.has_coordinator = False
    commits.step_done()
    commits.response_sent(call, commit_answer())  # a response whose request it has not seen


def test_an_answer_that_comes_late_is_not_of_the_last_commit() -> None:
    look = context(None)
    commits = CommitDurability(look)
    early, late = call_of(ApiKey.OFFSET_COMMIT), call_of(ApiKey.OFFSET_COMMIT)._replace(correlation_id=2)
    commits.request_received(early, commit(offset=1))
    commits.request_received(late, commit(offset=2))
    commits.response_sent(late, commit_answer())
    commits.response_sent(early, commit_answer())
    fetch = call_of(ApiKey.OFFSET_FETCH)

    def told(offset: int, code: int = 0) -> Any:
        each = SimpleNamespace(partition_index=0, committed_offset=offset)
        topics = (SimpleNamespace(name="orders", partitions=(each,)),)
        return SimpleNamespace(groups=(SimpleNamespace(error_code=code, topics=topics),))

    commits.request_received(fetch, None)
    commits.response_sent(fetch, told(2))
    commits.response_sent(fetch, told(1, 16))
    with pytest.raises(InvariantViolation, match="a response has offset 1"):
        commits.response_sent(fetch, told(1))


def test_generations() -> None:
    look = context(group_of(member("a"), generation=4))
    generations = MonotonicGenerations(look)
    generations.step_done()
    look.brokers.group.generation_id = 3
    broken_by(generations, "the generation is 3, and it was 4 before")
    generations.event_emitted(STABLE)
    generations.event_emitted(GroupRemoved(**NEWS, reason="the coordinator has moved"))
    look.brokers.group = None
    generations.step_done()
    look.brokers.group = group_of(generation=2)
    broken_by(generations, "it was 3 before")
    generations.event_emitted(GroupRemoved(**NEWS, reason=EMPTIED))
    generations.step_done()


def test_replay() -> None:
    look = context(group_of(member("a", gets=(ONE,))))
    replay = ReplayMatchesState(look)
    replay.coordinator_loaded()
    replay.event_emitted(STABLE)
    replay.append_decided("store")
    replay.step_done()
    replay.coordinator_unloading()
    replay.coordinator_loaded()
    look.brokers.group = group_of(member("a", gets=(TWO,)))
    with pytest.raises(InvariantViolation, match="members: it was"):
        replay.coordinator_loaded()
    look.brokers.group = None
    with pytest.raises(InvariantViolation, match="not there any more"):
        replay.coordinator_loaded()
    replay.event_emitted(GroupRemoved(**NEWS, reason=""))
    replay.coordinator_unloading()
    replay.coordinator_loaded()
    look.brokers.group = group_of(member("a"))
    replay.event_emitted(STABLE)
    replay.append_decided("hold")
    replay.step_done()
    replay.coordinator_unloading()
    look.brokers.group = None
    replay.coordinator_loaded()  # without an append that is stored nothing is expected


def test_only_who_is_fenced_may_end() -> None:
    surprise, static = NoUnexpectedExit(context(None)), process("a")
    fenced = BrokerError(ErrorCode.FENCED_INSTANCE_ID, "heartbeat")
    with pytest.raises(InvariantViolation, match="a ended"):
        surprise.member_failed(static, fenced)
    static.plan.instance_id = "one"
    surprise.member_failed(static, fenced)
    with pytest.raises(InvariantViolation, match="a ended: boo"):
        surprise.member_failed(static, ValueError("boo"))
    superseded = BrokerError(ErrorCode.PRODUCER_FENCED, "EndTxn")
    with pytest.raises(InvariantViolation, match="a ended: EndTxn"):
        surprise.member_failed(static, superseded)
    static.plan.transactions = TransactionPlan()
    surprise.member_failed(static, superseded)


def test_convergence() -> None:
    group = group_of(member("a", gets=(ONE, TWO)))
    Convergence(context(group, process("a", ONE, TWO))).finish()
    for look, why in (
        (context(None), "not there"),
        (context(group_of(state=GroupState.EMPTY)), "the group is Empty"),
        (context(group, process("b")), "are members"),
        (context(group, process("a", ONE, TWO, state=MemberState.UNJOINED)), "a is Unjoined"),
        (context(group, process("a", ONE)), "but is assigned"),
        (context(group_of(member("a", gets=(ONE,))), process("a", ONE)), "orders-1 is assigned to no member"),
    ):
        with pytest.raises(InvariantViolation, match=why):
            Convergence(look).finish()
