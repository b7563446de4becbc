"""Every way in which a promise can be broken, by states that no coordinator should get into."""

from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.assignors import Subscription, write_assignment, write_subscription
from groupcoord.client.errors import BrokerError
from groupcoord.client.member import MemberState
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.events import GroupRemoved, StateChanged, StaticMemberReplaced
from groupcoord.core.effects import Call
from groupcoord.core.events import AdminAction
from groupcoord.core.timers import Timers
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupResponse, OffsetCommitRequest
from groupcoord.testing.request_builders import commit_request
from groupcoord.testing.simulation.invariants.base import Broken, Invariant
from groupcoord.testing.simulation.invariants.commits import CommitsLast, CommitsOfMembers
from groupcoord.testing.simulation.invariants.convergence import Convergence, NoSurprise
from groupcoord.testing.simulation.invariants.durability import EMPTIED, Generations, Replay
from groupcoord.testing.simulation.invariants.ownership import Assignments, Beliefs
from groupcoord.testing.simulation.invariants.replies import Replies
from groupcoord.testing.simulation.invariants.sessions import Sessions
from groupcoord.testing.simulation.invariants.structure import Deadlines, Instances, Leaders, OfGroup, Protocols

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
        session_key=ClassicGroup("app", 0).session_key(name),
        assignment=write_assignment(list(gets)),
    )


def group_of(*members: Member, state: GroupState = GroupState.STABLE, generation: int = 3) -> ClassicGroup:
    group = ClassicGroup("app", 0)
    for each in members:
        group.add(each, None)
    group.state, group.generation_id, group.protocol_name = state, generation, "range"
    return group


def scene(group: ClassicGroup | None, *processes: Any, now_ms: int = 0) -> Any:
    timers = Timers()
    for each in group.members if group else ():
        assert group is not None
        timers.schedule(group.session_key(each), 10_000, lambda _: None)
    return SimpleNamespace(
        agenda=SimpleNamespace(now_ms=now_ms),
        plan=SimpleNamespace(topics={"orders": 2}),
        processes=lambda: list(processes),
        brokers=SimpleNamespace(
            group=group,
            serves=True,
            coordinates=lambda broker: broker == 0,
            node=SimpleNamespace(coordinator=SimpleNamespace(timers=timers)),
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
        plan=SimpleNamespace(instance_id=None),
        waits_for=lambda: {(1, 1)},
    )


def call_of(key: ApiKey, broker: int = 0) -> Call:
    return Call(1, 1, APIS[key], APIS[key].max_version, "a", "/127.0.0.1", broker)


def test_what_an_invariant_says_by_itself() -> None:
    silent = Invariant(scene(None))
    for tell in (silent.resigning, silent.loaded, silent.stepped, silent.beaten, silent.belief_changed, silent.finish):
        tell()
    silent.asked(call_of(ApiKey.HEARTBEAT), None)
    silent.replied(call_of(ApiKey.HEARTBEAT), None)
    silent.noted(GroupRemoved(**NEWS, reason=""))
    silent.appended("store")
    silent.failed(process("a"), ValueError())
    with pytest.raises(NotImplementedError):
        OfGroup(scene(group_of())).stepped()


def broken_by(invariant: Invariant, why: str) -> None:
    with pytest.raises(Broken, match=why):
        invariant.stepped()


def test_leaders() -> None:
    group = group_of(member("a"))
    Leaders(scene(group)).stepped()
    Leaders(scene(None)).stepped()
    group.leader_id = "b"
    broken_by(Leaders(scene(group)), "the leader is b, the members are a")
    broken_by(Leaders(scene(group_of(member("a"), state=GroupState.EMPTY))), "is Empty and has the members a")
    broken_by(Leaders(scene(group_of())), "is Stable and has no members")


def test_protocols() -> None:
    group = group_of(member("a"))
    Protocols(scene(group)).stepped()
    group.protocol_name = "sticky"
    broken_by(Protocols(scene(group)), "the protocol is sticky; a offers range")
    group.state = GroupState.PREPARING_REBALANCE
    Protocols(scene(group)).stepped()


def test_instances() -> None:
    group = group_of(member("a", instance_id="one"), member("b"))
    Instances(scene(group)).stepped()
    group.members["b"].instance_id = "one"
    broken_by(Instances(scene(group)), "one")


def test_deadlines() -> None:
    look = scene(group_of(member("a")))
    timers, group = look.brokers.node.coordinator.timers, look.brokers.group
    invariant = Deadlines(look)
    invariant.stepped()
    group.pending_join_members.add("new")
    broken_by(invariant, "new may come back with that id for ever")
    group.pending_join_members.clear()
    timers.schedule(group.session_key("zoe"), 5, lambda _: None)
    broken_by(invariant, "sessions of zoe")
    timers.cancel(group.session_key("zoe"))
    timers.cancel(group.session_key("a"))
    broken_by(invariant, "a has no session timer")
    group.members["a"].parked_sync = call_of(ApiKey.SYNC_GROUP)
    invariant.stepped()
    timers.schedule(group.join_key, 5, lambda _: None)
    broken_by(invariant, "is Stable and has a join timer")
    group.state = GroupState.PREPARING_REBALANCE
    invariant.stepped()
    timers.cancel(group.join_key)
    broken_by(invariant, "has no join timer")
    group.state = GroupState.COMPLETING_REBALANCE
    group.pending_sync_members.add("a")
    broken_by(invariant, "1 SyncGroups are missing, and there is no sync timer")
    timers.schedule(group.sync_key, 5, lambda _: None)
    invariant.stepped()
    group.pending_sync_members.clear()
    broken_by(invariant, "there is a sync timer")
    look.brokers.group = None
    broken_by(invariant, "there is no group, and deadlines of it are left: sync")
    timers.cancel(group.sync_key)
    invariant.stepped()


def test_sessions_of_whom_nobody_speaks_to_the_coordinator() -> None:
    group = group_of(member("a", instance_id="one"))
    look = scene(group)
    sessions = Sessions(look)
    sessions.stepped()
    look.agenda.now_ms = 9_000

    def beat(generation: int = 3, instance_id: str | None = "one", name: str = "a", broker: int = 0) -> None:
        request = HeartbeatRequest(
            group_id="app", generation_id=generation, member_id=name, group_instance_id=instance_id
        )
        sessions.asked(call_of(ApiKey.HEARTBEAT, broker), request)

    beat(generation=2)
    beat(instance_id="two")
    beat(name="b")
    beat(broker=1)
    look.agenda.now_ms = 10_000
    with pytest.raises(Broken, match="a is still in the group: nothing was heard of it for 10000 ms"):
        sessions.beaten()
    beat()
    sessions.beaten()
    look.agenda.now_ms = 20_000
    broken_by(sessions, "still in the group")
    beat(instance_id=None)
    sessions.stepped()
    look.brokers.group = None
    beat()
    sessions.stepped()


def test_a_member_whose_successor_is_not_stored_has_a_new_session() -> None:
    look = scene(group_of(member("a", instance_id="one")))
    sessions = Sessions(look)
    sessions.stepped()
    look.brokers.group = group_of(member("b", instance_id="one"))
    look.agenda.now_ms = 5_000
    sessions.noted(StaticMemberReplaced(**NEWS, instance_id="one", old_member="a", new_member="b", rebalances=False))
    look.brokers.group = group_of(member("a", instance_id="one"))
    look.agenda.now_ms = 9_000
    sessions.stepped()
    look.agenda.now_ms = 18_999
    sessions.stepped()
    look.agenda.now_ms = 19_000
    broken_by(sessions, "a is still in the group: nothing was heard of it for 10000 ms")


def test_replies() -> None:
    look = scene(None, process("a"))
    replies = Replies(look)
    call = call_of(ApiKey.JOIN_GROUP)
    replies.asked(call, None)
    with pytest.raises(Broken, match="JoinGroup of a was not answered"):
        replies.finish()
    replies.replied(call, None)
    replies.finish()
    with pytest.raises(Broken, match="answered once more"):
        replies.replied(call, None)


STABLE = StateChanged(**NEWS, origin=GroupState.COMPLETING_REBALANCE, target=GroupState.STABLE, generation=3)


def assignments(*members: Member) -> None:
    Assignments(scene(group_of(*members))).noted(STABLE)


def test_assignments() -> None:
    assignments(member("a", gets=(ONE,)), member("b", gets=(TWO,)))
    assignments(member("a", gets=(ONE,)), member("b", owns=[TWO]))
    with pytest.raises(Broken, match="orders-0 belongs to a and to b"):
        assignments(member("a", gets=(ONE, TWO)), member("b", gets=(ONE,)))
    with pytest.raises(Broken, match="payments-0 belongs to a, which does not want it"):
        assignments(member("a", gets=(("payments", 0),)))
    with pytest.raises(Broken, match="orders-1 belongs to nobody in generation 3"):
        assignments(member("a", gets=(ONE,)))
    empty = member("a")
    empty.assignment = b""
    with pytest.raises(Broken, match="orders-0 belongs to nobody"):
        assignments(empty)
    Assignments(scene(None)).noted(STABLE)
    Assignments(scene(group_of(empty))).noted(GroupRemoved(**NEWS, reason=""))


def test_beliefs() -> None:
    look = scene(group_of(member("a"), member("b")), process("a", ONE), process("b", ONE))
    beliefs = Beliefs(look)

    def admit(name: str, code: int = 0) -> None:
        answer = JoinGroupResponse(error_code=code, generation_id=3, leader="", member_id=name, members=())
        beliefs.replied(call_of(ApiKey.JOIN_GROUP), answer)

    admit("a")
    admit("b", 27)
    beliefs.stepped()  # b may be a zombie
    admit("b")
    with pytest.raises(Broken, match="a and b both believe to own orders-0 in generation 3"):
        beliefs.belief_changed()
    beliefs.noted(STABLE)
    look.brokers.group = None
    beliefs.belief_changed()
    beliefs.noted(GroupRemoved(**NEWS, reason=""))
    look.brokers.group = group_of(member("a"), member("b"))
    beliefs.belief_changed()


def commit(
    name: str = "a", generation: int = 3, instance_id: str | None = None, offset: int = 5
) -> OffsetCommitRequest:
    return commit_request("app", generation, name, instance_id, {ONE: offset})


def commit_answer(code: int = 0) -> Any:
    return SimpleNamespace(
        topics=(SimpleNamespace(name="orders", partitions=(SimpleNamespace(partition_index=0, error_code=code),)),)
    )


def test_commits_of_strangers() -> None:
    look = scene(group_of(member("a", instance_id="one")))
    commits, call = CommitsOfMembers(look), call_of(ApiKey.OFFSET_COMMIT)
    commits.asked(call, commit())
    commits.replied(call, commit_answer())
    for request, why in (
        (commit("b"), "b is not in the group"),
        (commit(generation=2), "generation 2, the group is at 3"),
        (commit(instance_id="two"), "two belongs to another member"),
    ):
        commits.asked(call, request)
        commits.replied(call, commit_answer(25))
        commits.asked(call, request)
        with pytest.raises(Broken, match=why):
            commits.replied(call, commit_answer())
    commits.asked(call, commit(instance_id="one"))
    commits.replied(call, commit_answer())
    look.brokers.group = None
    commits.asked(call, commit())
    with pytest.raises(Broken, match="there is no group"):
        commits.replied(call, commit_answer())


def test_commits_last() -> None:
    look = scene(None)
    look.plan.topics["orders"] = 1
    there: dict[str, Any] = {"offset": None}
    look.brokers.shard = SimpleNamespace(committed=SimpleNamespace(offset=lambda *_: there["offset"]))
    commits, call = CommitsLast(look), call_of(ApiKey.OFFSET_COMMIT)

    def committed(offset: int, code: int = 0) -> None:
        commits.asked(call, commit(offset=offset))
        commits.replied(call, commit_answer(code))

    def has(offset: int) -> None:
        there["offset"] = SimpleNamespace(offset=offset)
        commits.loaded()
        commits.stepped()

    commits.loaded()
    commits.stepped()
    committed(5)
    has(5)
    committed(4, ErrorCode.ILLEGAL_GENERATION)
    committed(6, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    has(5)
    has(6)
    with pytest.raises(Broken, match="has offset 4 of orders-0, the last commit acknowledged is of 5"):
        has(4)
    committed(3)
    has(3)
    with pytest.raises(Broken, match="has offset 6"):
        has(6)
    look.brokers.serves = False
    commits.stepped()
    commits.replied(call, commit_answer())  # of somebody it was not told of


def test_an_answer_that_comes_late_is_not_of_the_last_commit() -> None:
    look = scene(None)
    commits = CommitsLast(look)
    early, late = call_of(ApiKey.OFFSET_COMMIT), call_of(ApiKey.OFFSET_COMMIT)._replace(correlation_id=2)
    commits.asked(early, commit(offset=1))
    commits.asked(late, commit(offset=2))
    commits.replied(late, commit_answer())
    commits.replied(early, commit_answer())
    fetch = call_of(ApiKey.OFFSET_FETCH)

    def told(offset: int, code: int = 0) -> Any:
        each = SimpleNamespace(partition_index=0, committed_offset=offset)
        topics = (SimpleNamespace(name="orders", partitions=(each,)),)
        return SimpleNamespace(groups=(SimpleNamespace(error_code=code, topics=topics),))

    commits.asked(fetch, None)
    commits.replied(fetch, told(2))
    commits.replied(fetch, told(1, 16))
    with pytest.raises(Broken, match="a member is told offset 1"):
        commits.replied(fetch, told(1))


def test_generations() -> None:
    look = scene(group_of(member("a"), generation=4))
    generations = Generations(look)
    generations.stepped()
    look.brokers.group.generation_id = 3
    broken_by(generations, "the generation is 3, and it was 4 before")
    generations.noted(STABLE)
    generations.noted(GroupRemoved(**NEWS, reason="the coordinator has moved"))
    look.brokers.group = None
    generations.stepped()
    look.brokers.group = group_of(generation=2)
    broken_by(generations, "it was 3 before")
    generations.noted(GroupRemoved(**NEWS, reason=EMPTIED))
    generations.stepped()


def test_replay() -> None:
    look = scene(group_of(member("a", gets=(ONE,))))
    replay = Replay(look)
    replay.loaded()
    replay.noted(STABLE)
    replay.appended("store")
    replay.stepped()
    replay.resigning()
    replay.loaded()
    look.brokers.group = group_of(member("a", gets=(TWO,)))
    with pytest.raises(Broken, match="members: it was"):
        replay.loaded()
    look.brokers.group = None
    with pytest.raises(Broken, match="not there any more"):
        replay.loaded()
    replay.noted(GroupRemoved(**NEWS, reason=""))
    replay.resigning()
    replay.loaded()
    look.brokers.group = group_of(member("a"))
    replay.noted(STABLE)
    replay.appended("hold")
    replay.stepped()
    replay.resigning()
    look.brokers.group = None
    replay.loaded()  # nobody was told that this is stored


def test_only_who_is_fenced_may_end() -> None:
    surprise, static = NoSurprise(scene(None)), process("a")
    fenced = BrokerError(ErrorCode.FENCED_INSTANCE_ID, "heartbeat")
    with pytest.raises(Broken, match="a ended"):
        surprise.failed(static, fenced)
    static.plan.instance_id = "one"
    surprise.failed(static, fenced)
    with pytest.raises(Broken, match="a ended: boo"):
        surprise.failed(static, ValueError("boo"))


def test_convergence() -> None:
    group = group_of(member("a", gets=(ONE, TWO)))
    Convergence(scene(group, process("a", ONE, TWO))).finish()
    for look, why in (
        (scene(None), "not there"),
        (scene(group_of(state=GroupState.EMPTY)), "the group is Empty"),
        (scene(group, process("b")), "are members"),
        (scene(group, process("a", ONE, TWO, state=MemberState.UNJOINED)), "a is Unjoined"),
        (scene(group, process("a", ONE)), "believes to own"),
        (scene(group_of(member("a", gets=(ONE,))), process("a", ONE)), "orders-1 belongs to nobody"),
    ):
        with pytest.raises(Broken, match=why):
            Convergence(look).finish()
