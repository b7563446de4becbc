"""Invariants of committed offsets: which members may commit, and that acknowledged commits are kept."""

from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.simulation.application import GROUP
from groupcoord.simulation.invariants.base import Invariant

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
"""Errors after which a commit is certainly not stored. After any other error it may still be stored later."""


class CommitFencing(Invariant):
    """See ``statement``."""

    name = "commit-fencing"
    statement = (
        "A commit is accepted only from a member of the group with the present generation and, if it has an instance id, only "
        "while that belongs to it: not from removed, fenced or late members."
    )
    apis = frozenset({ApiKey.OFFSET_COMMIT})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._invalid: dict[tuple[int, int], str] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """Decide before the coordinator does."""
        if reason := self._why_invalid(request):
            self._invalid[call.connection_id, call.correlation_id] = reason

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation if an invalid commit was accepted."""
        reason = self._invalid.pop((call.connection_id, call.correlation_id), None)
        if reason is not None and not all(each.error_code for topic in response.topics for each in topic.partitions):
            raise self.violation(f"a commit of {call.client_id} was accepted, and {reason}")

    def _why_invalid(self, request: Any) -> str | None:
        group = self.context.brokers.group
        if group is None:
            return "there is no group"
        if request.member_id not in group.members:
            return f"{request.member_id} is not in the group"
        if request.generation_id_or_member_epoch != group.generation_id:
            sent = request.generation_id_or_member_epoch
            return f"it has generation {sent}, the group {group.generation_id}"
        instance_id = request.group_instance_id
        if instance_id is not None and group.static_members.get(instance_id) != request.member_id:
            return f"{instance_id} belongs to another member"
        return None


class _Commit(NamedTuple):
    """A commit of one partition; commits are numbered as they arrive."""

    number: int
    offset: int


class CommitDurability(Invariant):
    """See ``statement``."""

    name = "commit-durability"
    statement = (
        "The committed offset is that of the last acknowledged commit, or of a later one whose error leaves open whether it is "
        "stored; also after the coordinator has read its log, and in responses to OffsetFetch."
    )
    apis = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._count = 0
        self._requests: dict[tuple[int, int], tuple[int, Any]] = {}
        self._last: dict[TopicPartition, _Commit] = {}
        self._maybe: dict[TopicPartition, list[_Commit]] = {}
        self._must_check = False

    def request_received(self, call: Call, request: Any) -> None:
        """Remember a commit."""
        if call.api.key == ApiKey.OFFSET_COMMIT:
            self._count += 1
            self._requests[call.connection_id, call.correlation_id] = self._count, request
            self._must_check = True

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation for a wrong offset in a response to OffsetFetch."""
        if call.api.key == ApiKey.OFFSET_COMMIT:
            commit = self._requests.pop((call.connection_id, call.correlation_id), None)
            if commit is not None:
                self._responded(*commit, response)
        elif call.api.key == ApiKey.OFFSET_FETCH and not response.groups[0].error_code:
            for topic in response.groups[0].topics:
                for each in topic.partitions:
                    self._compare((topic.name, each.partition_index), each.committed_offset, "a response has")

    def coordinator_loaded(self) -> None:
        """Check all offsets."""
        self._must_check = True

    def step_done(self) -> None:
        """Raises InvariantViolation, after commits and after loading."""
        brokers = self.context.brokers
        if not self._must_check or not brokers.has_coordinator:
            return
        self._must_check = bool(self._requests)
        committed = brokers.shard.committed
        for topic, count in self.context.plan.topics.items():
            for number in range(count):
                found = committed.offset(GROUP, topic, number)
                self._compare((topic, number), -1 if found is None else found.offset, "the coordinator has")

    def _responded(self, number: int, request: Any, response: Any) -> None:
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

    def _compare(self, partition: TopicPartition, offset: int, source: str) -> None:
        expected = self._last.get(partition, _Commit(0, -1)).offset
        if offset != expected and offset not in {one.offset for one in self._maybe.get(partition, ())}:
            name = f"{partition[0]}-{partition[1]}"
            raise self.violation(f"{source} offset {offset} of {name}, the last acknowledged commit has {expected}")
