"""Who has which partition: by the coordinator's word, and by the members' own belief."""

from typing import Any

from groupcoord.assignors import TopicPartition, read_assignment, read_subscription
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.events import GroupRemoved, StateChanged
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.testing.simulation.invariants.base import Invariant


def assigned(group: ClassicGroup) -> dict[str, frozenset[TopicPartition]]:
    """What the coordinator's assignment gives to each member."""
    return {
        member.member_id: frozenset(read_assignment(member.assignment)) if member.assignment else frozenset()
        for member in group.members.unordered_values()
    }


class Assignments(Invariant):
    """See ``promise``."""

    name = "one-owner"
    promise = (
        "In a generation that is Stable a partition belongs to one member at most, to one that wants its topic; and to one at "
        "least, unless a member said when it joined that it still owns the partition (KIP-429: it has to give it up first)."
    )

    def noted(self, event: Event) -> None:
        """Look when there is an assignment. Raises Broken."""
        group = self.scene.brokers.group
        if group is None or not isinstance(event, StateChanged) or event.target != GroupState.STABLE:
            return
        said = {
            member.member_id: read_subscription(member.metadata_of(group.protocol_name), member.instance_id)
            for member in group.members.unordered_values()
        }
        owners: dict[TopicPartition, str] = {}
        for member_id, partitions in assigned(group).items():
            for partition in sorted(partitions):
                if partition in owners:
                    raise self.broken(
                        f"{partition[0]}-{partition[1]} belongs to {owners[partition]} and to {member_id}"
                    )
                if partition[0] not in said[member_id].topics:
                    raise self.broken(f"{partition[0]}-{partition[1]} belongs to {member_id}, which does not want it")
                owners[partition] = member_id
        topics = {topic for each in said.values() for topic in each.topics}
        wanted = {(topic, n) for topic in topics for n in range(self.scene.plan.topics.get(topic, 0))}
        claimed = {partition for each in said.values() for partition in each.owned_partitions}
        if nobodys := sorted(wanted - owners.keys() - claimed):
            raise self.broken(f"{nobodys[0][0]}-{nobodys[0][1]} belongs to nobody in generation {group.generation_id}")


class Beliefs(Invariant):
    """See ``promise``. Who is admitted is known from the answers to JoinGroup."""

    name = "no-two-believe"
    promise = (
        "No two processes believe to own the same partition whose members are both in the group and were both admitted to its "
        "present generation by the answer to a JoinGroup. A zombie may believe what it likes: one whose member is out, was "
        "replaced under its instance id, or (static) has not come back for the present generation; until it hears of that, it "
        "goes on. So may one that was admitted to a generation which the coordinator forgot because it moved before the "
        "assignment was stored."
    )
    apis = frozenset({ApiKey.JOIN_GROUP})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._admitted: dict[str, int] = {}

    def replied(self, call: Call, response: Any) -> None:
        """An answer to JoinGroup admits."""
        del call
        if not response.error_code:
            self._admitted[response.member_id] = response.generation_id

    def noted(self, event: Event) -> None:
        """A group that is gone has admitted nobody."""
        if isinstance(event, GroupRemoved):
            self._admitted.clear()

    def belief_changed(self) -> None:
        """Raises Broken."""
        group = self.scene.brokers.group
        if group is None:
            return
        owners: dict[TopicPartition, str] = {}
        for process in self.scene.processes():
            member_id = process.member_id
            if member_id in group.members and self._admitted.get(member_id) == group.generation_id:
                for partition in process.owned:
                    if partition in owners:
                        two = f"{owners[partition]} and {process.client_id}"
                        where = f"in generation {group.generation_id}"
                        raise self.broken(f"{two} both believe to own {partition[0]}-{partition[1]} {where}")
                    owners[partition] = process.client_id

    stepped = belief_changed
