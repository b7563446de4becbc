"""Whatever is asked, and whatever becomes of the appends: answers, state and log agree."""

import random
from typing import Any

import pytest

from groupcoord.cluster.cluster_core import TopicsOfBroker
from groupcoord.cluster.coordinator_partition_writer import HOLD, STORE
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.group_coordinator import GroupCoordinator
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.events import AdminAction
from groupcoord.protocol.batches.record_batch import records_in
from groupcoord.protocol.errors import ErrorCode
from tests.cluster.gated import Bench
from tests.coordinator.topics import broker_config, kafkas_defaults

TIMEOUT_MS = 5_000
LOGS_ERRORS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.MESSAGE_TOO_LARGE)
GROUPS = ("a", "b", "c", "d")


class History:
    """A random history: requests of four groups in two partitions, and a gate that does what it likes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.bench = Bench(partitions=2)
        self.bench.decision = lambda _: self.chance.choice((STORE, STORE, HOLD, HOLD, ErrorCode.NOT_ENOUGH_REPLICAS))
        self.commits: dict[int, int] = {}  # the number of the request, and the offset, which no other commit has
        self.members: dict[str, tuple[str, int]] = {}

    def step(self) -> None:
        chance, bench = self.chance, self.bench
        group = chance.choice(GROUPS)
        what = chance.randrange(12)
        if what < 4:
            offset = len(self.commits) + 1
            self.commits[bench.commit(offset, group, chance.randrange(2))] = offset
        elif what == 4:
            bench.delete_offset(group)
        elif what == 5:
            bench.delete_group(group)
        elif what == 6:
            number = bench.join(group=group)
            said = bench.answer(number)
            if said is not None and said.member_id:
                bench.join(said.member_id, group)
                bench.advance(0)
                live = bench.node.coordinator.shard_of(group).machine.classic_group(group)
                if live is not None and said.member_id in live.members:
                    self.members[group] = said.member_id, live.generation_id
        elif what == 7 and group in self.members:
            bench.sync(*self.members[group], group)
        elif what == 8 and group in self.members:
            bench.leave(self.members[group][0], group)
        elif what == 9:
            bench.advance(chance.choice((1, 1_000, TIMEOUT_MS)))
        elif bench.held:
            place = chance.randrange(len(bench.held))
            if what == 10:
                bench.release(place)
            else:
                bench.fail(chance.choice(LOGS_ERRORS), place)

    def check(self) -> None:
        """What was acknowledged is in the log, what was refused is not, and whoever reads the log finds what readers see."""
        bench = self.bench
        logged = self.logged_offsets()
        assert len(set(logged)) == len(logged)
        for number, offset in self.commits.items():
            told = bench.committed(number)
            if told is ErrorCode.NONE:
                assert offset in logged
            elif told in (ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR):
                assert offset not in logged
        for partition, shard in enumerate(bench.node.coordinator.shards):
            replayed = self.replayed(partition)
            live = shard.committed
            assert {group.group_id for group in live.groups()} == set(replayed.groups)
            for name in GROUPS:
                assert as_sets(live.offsets_of(name)) == as_sets(replayed.offsets.of_group(name))
            for group in live.groups():
                if group.state is GroupState.STABLE:
                    stored = replayed.groups[group.group_id]
                    assert (stored.state, stored.generation_id) == (GroupState.STABLE, group.generation_id)
                    assert set(stored.members) == set(group.members)
            if shard.is_idle:
                assert {group.group_id for group in shard.latest.groups()} == set(replayed.groups)

    def logged_offsets(self) -> list[int]:
        found = []
        for partition in range(2):
            for key, value in self.log(partition):
                if key[:2] == b"\0\1" and value is not None:
                    found.append(int.from_bytes(value[2:10]))
        return found

    def log(self, partition: int) -> list[tuple[bytes, bytes | None]]:
        log = self.bench.node.broker.log("__consumer_offsets", partition)
        assert log is not None
        if log.log_end_offset == 0:
            return []
        data = log.read(0, 10_000_000, at_least_one=True).data()
        return [(record.key or b"", record.value) for record in records_in(data)]

    def replayed(self, partition: int) -> Any:
        """A shard that was read from the log."""
        config = broker_config(offsets_topic_num_partitions=2)
        topics = TopicsOfBroker(self.bench.node.broker)
        of_consumers: Any = {"config_of": kafkas_defaults, "group_version": lambda: 1}
        other = GroupCoordinator(config, new_uuid=str, topics=topics, now_ms=0, **of_consumers)
        ctx = HandlerContext(0, AdminAction("the test"))
        loading = other.runtime.load(partition, ctx)
        loading.apply([(offset, key, value) for offset, (key, value) in enumerate(self.log(partition))])
        loading.finish(ctx)
        return other.shards[partition].machine


def as_sets(offsets: Any) -> dict[str, set[Any]]:
    return {topic: set(partitions) for topic, partitions in offsets}


@pytest.mark.slow
@pytest.mark.untraced  # tests of each request reach every line, and tracing takes four times as long
@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_asked_and_whatever_becomes_of_it_log_answers_and_state_agree(seed: int) -> None:
    history = History(seed)
    for _ in range(60):
        history.step()
        history.check()
    history.bench.decision = lambda _: STORE
    while history.bench.held:
        history.bench.release()
    history.check()
    assert all(shard.is_idle for shard in history.bench.node.coordinator.shards)
    assert not [deadline for deadline in history.bench.node.deadlines() if deadline.key.kind == "append"]
    assert all(history.bench.committed(number) is not None for number in history.commits)
