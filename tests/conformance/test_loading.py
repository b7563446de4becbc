"""What a story of consumer groups leaves in the log, which is what a real Kafka leaves there, gives the same groups when it is
read back."""

from typing import Any

import pytest

from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard
from groupcoord.protocol.batches.record_batch import records_in
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales, tell
from tests.conformance.virtual import VirtualTarget

pytestmark = pytest.mark.slow

REMOVED_WITHOUT_A_RECORD = {"a_stranger_joins_an_empty_consumer_group"}
"""Stories in which a refused JoinGroup removes a group. As in Kafka, nothing is written of it: the log still has the group."""
TALES = [tale for tale in all_tales() if tale.topic.startswith("consumer_")]


@pytest.mark.parametrize("tale", [pytest.param(tale, id=tale.name) for tale in TALES])
def test_the_log_of_a_story_gives_its_groups(tale: Tale) -> None:
    target = VirtualTarget(tale.settings.properties, seed=tale.name)
    tell(tale, target)
    back: set[str] = set()
    for shard in target.node.coordinator.shards:
        read, kept = tables(read_back(target, shard.partition)), tables(shard.machine)
        assert {group: read.pop(group) for group in kept} == kept
        back |= read.keys()
    assert bool(back) == (tale.name in REMOVED_WITHOUT_A_RECORD)


def read_back(target: VirtualTarget, partition: int) -> GroupCoordinatorShard:
    """What the log of a partition of the offsets topic says, in a machine of its own."""
    node = target.node
    log = node.broker.log("__consumer_offsets", partition)
    machine = node.coordinator.shards[partition].new_machine()
    if log is not None and log.log_end_offset:
        for record in records_in(log.read(0, 100_000_000, at_least_one=True).data()):
            decoded = machine.decode(record.key or b"", record.value)
            assert decoded is not None
            machine.apply(decoded, record.offset, -1)
    return machine


def tables(machine: GroupCoordinatorShard) -> dict[str, Any]:
    """The whole state of each consumer group."""
    return {
        group_id: (
            group.epochs,
            dict(group.members.in_order()),
            dict(group.targets.in_order()),
            dict(group.regexes.in_order()),
        )
        for group_id, group in machine.groups.items()
        if isinstance(group, ConsumerGroup)
    }
