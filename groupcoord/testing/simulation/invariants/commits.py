"""Committed offsets: who may commit, and that what was acknowledged stays."""

from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing.simulation.invariants.base import Invariant
from groupcoord.testing.simulation.user import GROUP

_NEVER_STORED = frozenset(
    {
        E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
        E.FENCED_INSTANCE_ID,
        E.REBALANCE_IN_PROGRESS,
        E.GROUP_ID_NOT_FOUND,
        E.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""What a commit is refused with. Any other error may have come from the log, and what it says of is stored, perhaps, later."""


class CommitsOfMembers(Invariant):
    """See ``promise``."""

    name = "commits-of-members"
    promise = (
        "A commit is accepted only from a member of the group that speaks of its present generation, and only under an "
        "instance id that is still its own: not from somebody thrown out, fenced or late."
    )
    apis = frozenset({ApiKey.OFFSET_COMMIT})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._strangers: dict[tuple[int, int], str] = {}

    def asked(self, call: Call, request: Any) -> None:
        """Look before the coordinator does."""
        if why := self._why_not(request):
            self._strangers[call.connection_id, call.correlation_id] = why

    def replied(self, call: Call, response: Any) -> None:
        """Raises Broken for a commit that should not have been accepted."""
        why = self._strangers.pop((call.connection_id, call.correlation_id), None)
        if why is not None and not all(each.error_code for topic in response.topics for each in topic.partitions):
            raise self.broken(f"a commit of {call.client_id} was accepted, and {why}")

    def _why_not(self, request: Any) -> str | None:
        group = self.scene.brokers.group
        if group is None:
            return "there is no group"
        if request.member_id not in group.members:
            return f"{request.member_id} is not in the group"
        if request.generation_id_or_member_epoch != group.generation_id:
            of = request.generation_id_or_member_epoch
            return f"it is of generation {of}, the group is at {group.generation_id}"
        instance_id = request.group_instance_id
        if instance_id is not None and group.static_members.get(instance_id) != request.member_id:
            return f"{instance_id} belongs to another member"
        return None


class _Commit(NamedTuple):
    """One commit: its place in the order in which commits came, and its offset."""

    number: int
    offset: int


class CommitsLast(Invariant):
    """See ``promise``."""

    name = "commits-last"
    promise = (
        "The committed offset is that of the last commit that was acknowledged, before and after the coordinator reads its log "
        "again; or that of a later one whose answer left open whether it is stored (an error of the log). Who fetches offsets "
        "is told that, too."
    )
    apis = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._count = 0
        self._asked: dict[tuple[int, int], tuple[int, Any]] = {}
        self._last: dict[TopicPartition, _Commit] = {}
        self._maybe: dict[TopicPartition, list[_Commit]] = {}
        self._is_open = False

    def asked(self, call: Call, request: Any) -> None:
        """One more commit."""
        if call.api.key == ApiKey.OFFSET_COMMIT:
            self._count += 1
            self._asked[call.connection_id, call.correlation_id] = self._count, request
            self._is_open = True

    def replied(self, call: Call, response: Any) -> None:
        """What came of it; or what somebody is told. Raises Broken."""
        if call.api.key == ApiKey.OFFSET_COMMIT:
            asked = self._asked.pop((call.connection_id, call.correlation_id), None)
            if asked is not None:
                self._acknowledged(*asked, response)
        elif call.api.key == ApiKey.OFFSET_FETCH and not response.groups[0].error_code:
            for topic in response.groups[0].topics:
                for each in topic.partitions:
                    self._compare((topic.name, each.partition_index), each.committed_offset, "a member is told")

    def loaded(self) -> None:
        """Look at all of them."""
        self._is_open = True

    def stepped(self) -> None:
        """After commits, or after a log was read. Raises Broken."""
        brokers = self.scene.brokers
        if not self._is_open or not brokers.serves:
            return
        self._is_open = bool(self._asked)
        committed = brokers.shard.committed
        for topic, count in self.scene.plan.topics.items():
            for number in range(count):
                found = committed.offset(GROUP, topic, number)
                self._compare((topic, number), -1 if found is None else found.offset, "the coordinator has")

    def _acknowledged(self, number: int, request: Any, response: Any) -> None:
        codes = {
            (topic.name, each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }
        for topic in request.topics:
            for each in topic.partitions:
                partition = topic.name, each.partition_index
                commit = _Commit(number, each.committed_offset)
                code = codes[partition]
                if not code:
                    if number > self._last.get(partition, _Commit(0, -1)).number:
                        self._last[partition] = commit
                    self._maybe[partition] = [one for one in self._maybe.get(partition, ()) if one.number > number]
                elif code not in _NEVER_STORED:
                    self._maybe.setdefault(partition, []).append(commit)

    def _compare(self, partition: TopicPartition, offset: int, who: str) -> None:
        expected = self._last.get(partition, _Commit(0, -1)).offset
        if offset != expected and offset not in {one.offset for one in self._maybe.get(partition, ())}:
            name = f"{partition[0]}-{partition[1]}"
            raise self.broken(f"{who} offset {offset} of {name}, the last commit acknowledged is of {expected}")
