"""A classic group becomes a consumer group, and back, with its members or without."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from groupcoord.coordinator.events import GroupMigrated, MemberRemoved, RebalanceStarted
from groupcoord.coordinator.group import GroupType
from groupcoord.protocol import consumer_protocol
from groupcoord.protocol.coordinator_records.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import Consumer, ConsumerWorld, offer, settle
from tests.coordinator.consumer.test_classic_members import share
from tests.coordinator.world import Member

OK, NOT_FOUND = ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND
POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")


def assigned(shares: Mapping[str, Sequence[int]], user_data: bytes | None = None) -> bytes:
    """What a leader gives."""
    topics = tuple(
        consumer_protocol.TopicPartition(topic=topic, partitions=tuple(of_topic)) for topic, of_topic in shares.items()
    )
    return consumer_protocol.write_assignment(
        consumer_protocol.ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data)
    )


def classic_group(w: ConsumerWorld, **shares: Sequence[int]) -> list[Member]:
    """A stable classic group whose members have these partitions of t."""
    members = [w.classic(name, session_ms=30_000) for name in shares]
    w.joined(*members)
    gives: dict[Member | str, bytes] = {member: assigned({"t": shares[member.name]}) for member in members}
    for member in members:
        member.sync(gives if member.leads else {})
    assert w.group.state == "Stable"
    return members


# --- to a consumer group


@pytest.mark.parametrize("policy", POLICIES)
def test_the_first_consumer_makes_it_a_consumer_group(policy: str) -> None:
    """Where that is allowed. Nobody stops: members keep what they have until they join again."""
    w = ConsumerWorld(topics={"t": 4}, group_consumer_migration_policy=policy.upper())
    m, n = classic_group(w, m=[0, 1], n=[2, 3])
    a = w.consumer()
    asked = a.join()
    if policy in ("disabled", "downgrade"):
        assert (asked.error, asked.answer.error_message) == (
            NOT_FOUND,
            "Cannot upgrade classic group g to consumer group because online upgrade is disabled.",
        )
        assert m.heartbeat().error is OK
        return
    assert asked.error is OK
    mm, nn = m.member_id, n.member_id
    first, rest = w.last().split(" group ", 1)
    assert first in (f"-classic member:{mm} member:{nn}", f"-classic member:{nn} member:{mm}")
    assert "assigned" in rest
    (migrated,) = w.seen(GroupMigrated)
    assert (migrated.to, migrated.reason) == (GroupType.CONSUMER, "a joined by the consumer protocol")
    assert (w.consumers.epochs.group, w.state) == (2, "Reconciling")
    assert m.sync().error is ErrorCode.REBALANCE_IN_PROGRESS
    for member, owned in ((m, [0, 1]), (n, [2, 3])):
        assert member.heartbeat().error is ErrorCode.REBALANCE_IN_PROGRESS
        member.protocols = offer("t", owned={"t": owned})
        for _ in range(3):
            member.join()
            member.sync()
            member.protocols = offer("t", owned=share(member))
    settle([a])
    assert sorted([*share(m)["t"], *share(n)["t"], *a.assigned["t"]]) == [0, 1, 2, 3]


def test_an_empty_classic_group_is_just_replaced() -> None:
    """Under every policy."""
    w = ConsumerWorld(group_consumer_migration_policy="disabled")
    (m,) = classic_group(w, m=[0])
    m.leave()
    a = w.consumer()
    a.join()
    assert w.last() == "-classic member:a group target:a assigned current:a"
    assert a.epoch == 2


def test_a_group_that_only_has_offsets() -> None:
    w = ConsumerWorld()
    w.commit()
    a = w.consumer()
    a.join()
    assert w.last() == "-classic member:a group target:a assigned current:a"
    assert w.fetch() == {("t", 0): 5}


@pytest.mark.parametrize("when", ["joining", "syncing"])
def test_requests_that_wait_are_answered(when: str) -> None:
    w = ConsumerWorld()
    m, n = classic_group(w, m=[0], n=[1])
    waiting = m.join()
    assert waiting.parked
    if when == "syncing":
        n.join()
        follower = n if m.leads else m
        waiting = follower.sync()
        assert waiting.parked
    assert w.consumer().join().error is OK
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert {each.member_id for each in w.described().members} == {"a", m.member_id, n.member_id}


@pytest.mark.parametrize(
    ("protocols", "given", "says"),
    [
        ({"range": b"x"}, b"", "the embedded consumer protocol is malformed."),
        (offer("t"), b"x", "the embedded consumer protocol is malformed."),
        (offer("t"), assigned({"t": [0]}, b"mine"), "an unsupported custom assignor is in use. "),
    ],
)
def test_groups_that_cannot_become_one(protocols: dict[str, bytes], given: bytes, says: str) -> None:
    w = ConsumerWorld()
    m = w.member("m", protocols=protocols)
    w.joined(m)
    m.sync({m: given})
    asked = w.consumer().join()
    assert (asked.error, says in (asked.answer.error_message or "")) == (NOT_FOUND, True)
    assert m.heartbeat().error is OK


def test_a_group_that_is_too_large_to_become_one() -> None:
    w = ConsumerWorld(group_consumer_max_size=1)
    classic_group(w, m=[0], n=[1])
    asked = w.consumer().join()
    assert asked.error is NOT_FOUND
    assert "the group size exceeds the consumer group maximum size." in (asked.answer.error_message or "")


def test_an_assignment_that_kafka_does_not_expect() -> None:
    """A length that reaches beyond the end is not what Kafka calls malformed, and it fails over it."""
    w = ConsumerWorld()
    m = w.classic("m")
    w.joined(m)
    m.sync({m: b"nonsense"})
    assert w.consumer().join().error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert m.heartbeat().error is OK


def test_a_group_of_another_protocol() -> None:
    w = ConsumerWorld()
    w.stable(w.member("m", protocol_type="connect", protocols={"default": b""}))
    asked = w.consumer().join()
    assert asked.answer.error_message == (
        "Cannot upgrade classic group g to consumer group because the group does not use the consumer embedded protocol."
    )


def test_a_group_without_a_generation() -> None:
    """Kafka fails, and has answered those who waited."""
    w = ConsumerWorld()
    m = w.classic("m")
    waiting = m.enter()
    assert w.consumer().join().error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_gave_a_partition_twice() -> None:
    """Kafka fails over it (``ConsumerGroup.addPartitionEpochs``)."""
    w = ConsumerWorld()
    m, _ = classic_group(w, m=[0], n=[0, 1])
    asked = w.consumer().join()
    assert (asked.error, asked.answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert m.heartbeat().error is OK


@pytest.mark.parametrize("broken", ["first", "last"])
def test_the_first_member_that_cannot_be_upgraded_decides(broken: str) -> None:
    """As in Kafka, which converts a member completely before the next (``ConsumerGroup.fromClassicGroup``)."""
    w = ConsumerWorld()
    members = [w.classic(name) for name in "mno"]
    w.joined(*members)
    in_order = [next(each for each in members if each.member_id == member_id) for member_id in w.group.members]
    unreadable = in_order.pop(0 if broken == "first" else -1)
    gives: dict[Member | str, bytes] = {each: assigned({"t": [0]}) for each in in_order}
    gives[unreadable] = b"x"
    for member in members:
        member.sync(gives if member.leads else {})
    assert w.consumer().join().error is (NOT_FOUND if broken == "first" else ErrorCode.UNKNOWN_SERVER_ERROR)


def test_a_leader_that_gave_nothing_and_topics_that_are_gone() -> None:
    w = ConsumerWorld(topics={"t": 2, "u": 2})
    m, n = w.classic("m"), w.classic("n", "t", "u")
    w.joined(m, n)
    gives: dict[Member | str, bytes] = {n: assigned({"t": [0, 1], "u": [0]})}
    for member in (m, n):
        member.sync(gives if member.leads else {})
    w.topics.delete("u")
    generation = w.group.generation_id
    w.consumer().join()
    members = w.consumers.members
    assert members[m.member_id].assigned == {}
    assert members[n.member_id].assigned == {w.topics.ids["t"]: {0: generation, 1: generation}}


def test_a_silent_classic_member_of_an_upgraded_group_is_removed() -> None:
    """After its own session timeout, whether it was heard of since or not."""
    w = ConsumerWorld()
    m, n = classic_group(w, m=[0], n=[1])
    a = w.consumer()
    a.join()
    w.advance(10_000)
    n.heartbeat()
    w.advance(20_000)
    assert [each.member for each in w.seen(MemberRemoved)] == [m.member_id]
    assert m.member_id not in w.consumers.members
    w.advance(10_000)
    assert [each.member_id for each in w.described().members] == ["a"]


@pytest.mark.parametrize("when", ["stable", "joining", "syncing"])
def test_an_upgrade_that_cannot_be_stored(when: str) -> None:
    """The classic group is what it was, and its timers run."""
    w = ConsumerWorld(topics={"t": 2})
    m, n = classic_group(w, m=[0], n=[1])
    if when != "stable":
        m.join()
        if when == "syncing":
            n.join()
    state = w.group.state
    w.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert w.consumer().join().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    w.fail_appends(None)
    assert w.group.state == state
    assert set(w.group.members) == {m.member_id, n.member_id}
    assert w.deadline("session", "a") is None
    w.advance(30_000)
    assert {each.member for each in w.seen(MemberRemoved)} == {m.member_id, n.member_id}
    w.advance(60_000)
    assert w.group.state == "Empty"


def test_an_assignment_that_could_not_be_stored_does_not_end_the_group_that_a_consumer_has_upgraded_meanwhile() -> None:
    """The classic group begins a rebalance that nobody sees, and whose time limit is about the group of this id."""
    w = ConsumerWorld(topics={"t": 2})
    m = w.classic("m", session_ms=300_000)
    w.joined(m)
    w.hold_appends()
    given = m.sync({m: assigned({"t": [0, 1]})})
    w.advance(1)
    a = w.consumer("a")
    joins = a.join()
    w.advance(w.config.offsets_commit_timeout_ms - 1)
    assert w.seen(RebalanceStarted)[-1].reason == "the assignment could not be stored: REQUEST_TIMED_OUT"
    w.confirm()
    w.confirm()
    a.hear(joins)
    for _ in range(5):
        w.advance(15_000)
        a.heartbeat()
    while w.held:
        w.confirm()
    assert (given.error, joins.error) == (ErrorCode.REBALANCE_IN_PROGRESS, OK)
    for _ in range(2):
        assert {each.member_id for each in w.described().members} == {"a", m.member_id}
        w.reload()


@pytest.mark.parametrize("emptied", [False, True])
def test_the_join_phase_ends_after_the_group_has_changed_its_type_twice(*, emptied: bool) -> None:
    """As in Kafka (``completeClassicGroupJoin``): the classic group of this id loses its dynamic members then, or passes over a
    generation if it has no members."""
    w = ConsumerWorld(topics={"t": 2})
    m, n = (w.classic(name, rebalance_ms=5_000) for name in "mn")
    w.joined(m, n)
    for member in (m, n):
        member.sync({m: assigned({"t": [0]}), n: assigned({"t": [1]})})
    assert (m if m.leads else n).join().parked
    a = w.consumer("a", instance="i")
    assert a.join().error is OK
    if emptied:
        for leaver in (m, n, a):
            leaver.leave()
        b = w.classic("b")
        b.join()
    else:
        b = w.classic("b", instance="i")
        assert b.join().error is OK
    assert w.group.state == ("Empty" if emptied else "Stable")
    w.advance(4_999)
    assert len(w.group.members) == (0 if emptied else 3)
    w.advance(1)
    assert list(w.group.members) == ([] if emptied else [b.member_id])
    assert w.group.state == ("Empty" if emptied else "Stable")
    again = b.join()
    w.advance(w.config.group_initial_rebalance_delay_ms)
    assert (again.error, again.answer.generation_id) == (OK, 2 if emptied else 3)


# --- to a classic group


def mixed(w: ConsumerWorld, **terms: Any) -> tuple[Consumer, Member]:
    """A consumer group of a consumer and a classic member."""
    a, m = w.consumer("a", **terms), w.classic("m", member_id="m")
    a.join()
    m.join()
    m.sync()
    settle([a])
    m.heartbeat()
    m.join()
    m.sync()
    return a, m


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("how", ["leaves", "is silent"])
def test_the_last_consumer_goes(policy: str, how: str) -> None:
    """Where that is allowed, only members of the classic protocol make a classic group, which rebalances."""
    w = ConsumerWorld(group_consumer_migration_policy=policy)
    a = w.consumer("a")
    a.join()
    m = w.classic("m", member_id="m", session_ms=100_000)
    if policy == "disabled":
        assert m.join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    m.join()
    m.sync()
    if how == "leaves":
        assert a.leave().answer.member_epoch == -1
    else:
        w.advance(45_000)
    if policy == "upgrade":
        assert w.state == "Assigning"
        return
    assert (
        w.last() == "-current:m -current:a -target:m -target:a -assigned -member:m -member:a -topics -group classic"
        or (
            w.last() == "-current:a -current:m -target:a -target:m -assigned -member:a -member:m -topics -group classic"
        )
    )
    assert w.group.state == "PreparingRebalance"
    (migrated,) = w.seen(GroupMigrated)
    assert (migrated.to, migrated.reason) == (GroupType.CLASSIC, "only members of the classic protocol are left")
    assert m.heartbeat().error is ErrorCode.REBALANCE_IN_PROGRESS
    m.join()
    assert m.leads
    m.sync()
    assert w.group.generation_id == 4


@pytest.mark.parametrize("policy", ["upgrade", "downgrade"])
def test_a_classic_member_takes_the_place_of_the_last_consumer(policy: str) -> None:
    """The group is stable at once if its target assignment is of its epoch."""
    w = ConsumerWorld(topics={"t": 2}, group_consumer_migration_policy=policy)
    _, m = mixed(w, instance="i")
    n = w.classic("n", instance="i")
    assert n.join().error is OK
    if policy == "upgrade":
        assert w.consumers.type is GroupType.CONSUMER
        return
    assert (w.group.state, w.group.generation_id) == ("Stable", 3)
    assert (w.deadline("session", "m"), w.deadline("session", n.member_id)) == (10_000, 10_000)
    n.sync()
    assert share(n) == {"t": [0]}
    assert m.heartbeat().error is OK
    m.sync()
    assert share(m) == {"t": [1]}


def test_it_rebalances_if_the_target_is_an_old_one() -> None:
    w = ConsumerWorld(topics={"t": 2})
    _, m = mixed(w, instance="i")
    n = w.classic("n", "t", "u", instance="i")
    n.join()
    assert w.group.state == "PreparingRebalance"
    assert m.heartbeat().error is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (b"\0", "Buffer underflow while parsing consumer protocol's header"),
        (b"\xff\xff", "Unsupported assignment version: -1"),
    ],
)
def test_a_subscription_without_a_version_that_there_is_keeps_the_group_as_it_is(version: bytes, why: str) -> None:
    """Its assignment cannot be written."""
    w = ConsumerWorld()
    a, m = mixed(w)
    w.consumers.members.put(
        "m",
        type(a.stored)(member_id="m", member_epoch=3, classic=_classic(version)),
    )
    asked = a.leave()
    assert asked.error is NOT_FOUND
    assert asked.answer.error_message.startswith(f"Cannot downgrade the classic group g: {why}")
    assert m.heartbeat().error is OK


def _classic(metadata: bytes) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=9, supported_protocols=(ClassicProtocol(name="range", metadata=metadata),)
    )


def test_a_downgrade_that_cannot_be_stored() -> None:
    """The consumer group is what it was, and its timers run."""
    w = ConsumerWorld()
    a, _ = mixed(w)
    a.heartbeat(subscribed_topic_names=())
    assert w.deadline("rebalance", "a") == 60_000
    before = w.described()
    w.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert a.leave().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    w.fail_appends(None)
    assert w.described() == before
    assert [w.deadline("session", name) for name in "am"] == [45_000, 10_000]
    assert [w.deadline("rebalance", name) for name in "am"] == [60_000, None]
    w.advance(45_000)
    assert w.state == "Empty"


def test_a_classic_member_finds_an_empty_consumer_group() -> None:
    """It is replaced by a classic one."""
    w = ConsumerWorld()
    w.joined_consumers("a")[0].leave()
    m = w.classic("m")
    w.joined(m)
    assert kinds_of_first_join(w) == "-assigned -topics -group classic"
    m.sync()
    assert w.group.state == "Stable"


def kinds_of_first_join(w: ConsumerWorld) -> str:
    return next(line for line in w.written() if "-assigned" in line)


def test_who_has_an_id_is_not_known_there() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")[0].leave()
    assert w.classic("m", member_id="m").join().error is ErrorCode.UNKNOWN_MEMBER_ID
