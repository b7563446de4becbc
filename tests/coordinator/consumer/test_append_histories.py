"""Whatever the members of two groups ask for, and whatever becomes of the appends: readers see what is stored and nothing else,
and a write that failed leaves nothing behind."""

import dataclasses
import random
from typing import Any

import pytest

from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.consumer_group_members_and_epochs import Epochs
from groupcoord.coordinator.group_coordinator import GroupCoordinator
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, Reply
from groupcoord.core.events import AdminAction
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import Consumer, ConsumerWorld, offer
from tests.coordinator.topics import kafkas_defaults
from tests.coordinator.world import Member

GROUPS = ("g", "h")
LOGS_ERRORS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.MESSAGE_TOO_LARGE)
TIMEOUT_MS = 5_000
SUBSCRIPTIONS: tuple[tuple[str, ...], ...] = (("t",), ("t", "u"), ("u", "nowhere"), ())


class History:
    """A random history of two groups, in each of which members of both protocols come and go. All appends are held at first."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = w = ConsumerWorld(
            topics={"t": 4, "u": 2}, offsets_topic_num_partitions=1, group_consumer_session_timeout_ms=30_000
        )
        w.hold_appends()
        self.failed = 0
        self.members: list[Consumer] = []
        self.classic: list[Member] = []
        for group in GROUPS:
            self.members += [
                w.consumer("a", group=group, rebalance_ms=20_000),
                w.consumer("b", group=group, instance="i"),
                w.consumer("b2", group=group, instance="i"),
                w.consumer("c", "u", group=group, regex="t|v.*"),
                w.consumer("d", group=group, assignor="range"),
            ]
            self.classic += [w.classic(name, group=group, member_id=name) for name in ("k", "l")]
            self.classic.append(w.classic("s", group=group, instance="i"))

    # --- what happens

    def step(self) -> None:
        what = self.chance.randrange(12)
        if what < 7:
            self.ask_as_consumer(self.chance.choice(self.members))
        elif what < 9:
            self.ask_as_classic(self.chance.choice(self.classic))
        elif what == 9:
            self.world.advance(self.chance.choice((0, 1, 1_000, TIMEOUT_MS, 10_001)))
        elif what == 10:
            self.world.delete_groups(*GROUPS)
        else:
            self.change_topics()
        fate = self.chance.randrange(8)
        while self.world.held and fate < 5:
            self.world.confirm()
        if self.world.held and fate == 5:
            self.world.fail(self.chance.choice(LOGS_ERRORS))
            self.failed += 1
        elif self.world.held and fate == 6:
            self.world.confirm()

    def ask_as_consumer(self, member: Consumer) -> None:
        """It does what it likes; what it was not told it asks for again, as a client does that starts over."""
        for asked in self.world.asked[-20:]:
            if asked.replies and asked.call.api.key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
                request = asked.request
                if (request.group_id, request.member_id) == (member.group, member.member_id):
                    member.hear(asked)
        verb = self.chance.randrange(10)
        if member.epoch <= 0 or verb == 0:
            member.epoch, member.assigned = 0, {}
            member.join()
        elif verb < 4:
            member.heartbeat()
        elif verb < 7:
            member.owns()
        elif verb == 7:
            member.heartbeat(subscribed_topic_names=self.chance.choice(SUBSCRIPTIONS))
        elif verb == 8:
            member.commit({("t", self.chance.randrange(4)): len(self.world.asked)})
        elif member.instance is None or self.chance.random() < 0.5:
            member.leave()
        else:
            member.away()

    def ask_as_classic(self, member: Member) -> None:
        verb = self.chance.randrange(8)
        if verb < 4:
            member.protocols = offer(*self.chance.choice(SUBSCRIPTIONS[:2]))
            if self.finds_an_empty_consumer_group(member):
                member.member_id = ""  # with an id, Kafka forgets the group and leaves it in the log
            if member.join().parked:
                self.world.advance(3_000)
        elif verb < 6:
            member.sync()
        elif verb == 6:
            member.heartbeat()
        else:
            member.leave()

    def finds_an_empty_consumer_group(self, member: Member) -> bool:
        group = self.world.coordinator.shards[0].machine.groups.get(member.group)
        return isinstance(group, ConsumerGroup) and group.is_empty

    def change_topics(self) -> None:
        topics = self.world.topics
        if "v" not in topics.counts:
            topics.create("v", 2)
        elif self.chance.random() < 0.5:
            topics.grow("t", topics.counts["t"] + 1)
        else:
            topics.delete("v")

    # --- what must be true

    def check(self) -> None:
        w = self.world
        other = self.replayed()
        (shard,) = w.coordinator.shards
        (stored,) = other.shards
        live = shard.committed
        assert {(group.group_id, group.type) for group in live.groups()} == {
            (group.group_id, group.type) for group in stored.machine.groups.values()
        }
        for group_id in GROUPS:
            assert as_sets(live.offsets_of(group_id)) == as_sets(stored.machine.offsets.of_group(group_id))
            found, group = live.group(group_id), stored.machine.groups.get(group_id)
            assert told(w.coordinator, w.now_ms, group_id) == told(other, w.now_ms, group_id)
            if isinstance(group, ConsumerGroup):
                assert found.state_before(live.pending) == group.state
                assert listed(w.coordinator, w.now_ms, group_id) == listed(other, w.now_ms, group_id)
        if shard.is_idle:
            assert tables(shard.machine) == tables(stored.machine)

    def replayed(self) -> GroupCoordinator:
        """A coordinator that has read the log."""
        w = self.world
        of_consumers: Any = {"config_of": kafkas_defaults, "group_version": lambda: 1}
        other = GroupCoordinator(w.config, new_uuid=str, topics=w.topics, now_ms=w.now_ms, **of_consumers)
        ctx = HandlerContext(w.now_ms, AdminAction("the test"))
        loading = other.runtime.load(0, ctx)
        loading.apply(w.logged(0))
        assert loading.failure is None
        loading.finish(ctx)
        return other


def ask(coordinator: GroupCoordinator, now_ms: int, key: ApiKey, request: Any) -> Any:
    """What the coordinator answers at once."""
    api = APIS[key]
    call = Call(9, 1, api, api.max_version, "reader", "/127.0.0.1")
    (answer,) = [each.response for each in coordinator.handle(call, request, now_ms) if isinstance(each, Reply)]
    return answer


def told(coordinator: GroupCoordinator, now_ms: int, group_id: str) -> Any:
    """What ConsumerGroupDescribe tells, members by id: a table that has grown has another order than one that is read."""
    request = m.ConsumerGroupDescribeRequest(group_ids=(group_id,))
    (group,) = ask(coordinator, now_ms, ApiKey.CONSUMER_GROUP_DESCRIBE, request).groups
    return dataclasses.replace(group, members=tuple(sorted(group.members, key=lambda each: str(each.member_id))))


def listed(coordinator: GroupCoordinator, now_ms: int, group_id: str) -> Any:
    groups = ask(coordinator, now_ms, ApiKey.LIST_GROUPS, m.ListGroupsRequest()).groups
    return [group for group in groups if group.group_id == group_id]


def as_sets(offsets: Any) -> dict[str, set[Any]]:
    return {topic: set(partitions) for topic, partitions in offsets}


def tables(machine: GroupCoordinatorShard) -> dict[str, tuple[Epochs, Any, Any, Any, Any]]:
    """The whole state of each consumer group."""
    return {
        group_id: (
            group.epochs,
            dict(group.members.in_order()),
            dict(group.targets.in_order()),
            dict(group.regexes.in_order()),
            (group.index.counts, group.index.static, group.index.partition_epochs, group.index.stable_at),
        )
        for group_id, group in machine.groups.items()
        if isinstance(group, ConsumerGroup)
    }


@pytest.mark.slow
@pytest.mark.untraced  # tests of each request reach every line, and tracing takes four times as long
@pytest.mark.parametrize("seed", range(24))
def test_readers_see_what_is_stored_and_a_failed_write_leaves_nothing(seed: int) -> None:
    history = History(seed)
    for _ in range(80):
        history.step()
        history.check()
    assert history.failed
    w = history.world
    while w.held:
        w.confirm()
    history.check()
    assert w.coordinator.shards[0].is_idle
    assert all(asked.replies for asked in w.asked if asked.call.api.key == ApiKey.CONSUMER_GROUP_HEARTBEAT)
