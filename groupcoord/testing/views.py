"""A group and its members at one moment, as anybody may see them who asks its coordinator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from groupcoord.protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment
from groupcoord.protocol.errors import WireError

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMember:
    """A member of a group. ``assigned`` is what the leader gave it in the present generation."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assigned: frozenset[TopicPartition]

    def name(self) -> str:
        """What to call it in a line."""
        return self.client_id or self.member_id


MemberT = TypeVar("MemberT", bound=SeenMember)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenGroup(Generic[MemberT]):
    """A group; ``state`` is Kafka's word, and ``Dead`` if there is no such group.

    While nobody coordinates the group, it is the name of the error that clients get.
    """

    group: str
    state: str
    protocol: str | None
    members: tuple[MemberT, ...]

    def member(self, name: str) -> MemberT:
        """The member that has ``name`` as its id, instance id or client id. Raises LookupError if none or several have."""
        found = [each for each in self.members if name in (each.member_id, each.instance_id, each.client_id)]
        if len(found) != 1:
            many = "no member" if not found else f"{len(found)} members"
            raise LookupError(f"{many} called {name!r} in {self.text()}")
        return found[0]

    @property
    def assignment(self) -> Mapping[str, frozenset[TopicPartition]]:
        """Member id → what it was assigned."""
        return {member.member_id: member.assigned for member in self.members}

    def title(self) -> str:
        """The group without its members."""
        return f"{self.group} {self.state}"

    def text(self) -> str:
        """The group in one line."""
        who = ", ".join(each.name() for each in sorted(self.members, key=lambda each: (each.client_id, each.member_id)))
        count = "1 member" if len(self.members) == 1 else f"{len(self.members)} members"
        return f"{self.title()}, {count}{f': {who}' if who else ''}"


def assigned_by(assignment: bytes, protocol_type: str | None) -> frozenset[TopicPartition]:
    """The partitions in an assignment, if it is a consumer's."""
    if protocol_type != PROTOCOL_TYPE or not assignment:
        return frozenset()
    try:
        found = read_assignment(assignment)
    except WireError:
        return frozenset()
    return frozenset((each.topic, number) for each in found.assigned_partitions for number in each.partitions)
