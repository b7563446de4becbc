"""Aggregates over the members of a consumer group (subscription counts, owners, assignors), updated incrementally.

Source: ``ConsumerGroup``.
"""

import uuid
from collections import Counter
from typing import NamedTuple, TypeVar

from groupcoord.assignors.server_side.group_spec import SubscriptionType
from groupcoord.coordinator.consumer.member import ConsumerMember, MemberState
from groupcoord.core.java_hash_order import TimelineMap, string_hash
from groupcoord.core.java_map import JavaMap, slots_of_copy

K = TypeVar("K", str, int)


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched at ``at_ms``, in ``version`` of the topic metadata."""

    topics: frozenset[str]
    version: int
    at_ms: int


class SubscriptionCounts(NamedTuple):
    """The number of members that subscribe to each topic by name, of expressions that match it, and of members per expression.

    Sources: ``SubscriptionCount``, ``ConsumerGroup.subscribedRegularExpressions``.
    """

    by_name: dict[str, int]
    by_regex: dict[str, int]
    regexes: dict[str, int]

    def copy(self) -> "SubscriptionCounts":
        """An independent copy."""
        return SubscriptionCounts(dict(self.by_name), dict(self.by_regex), dict(self.regexes))

    def topics(self) -> set[str]:
        """All subscribed topics."""
        return self.by_name.keys() | self.by_regex.keys()

    def add(self, member: ConsumerMember, change: int = 1) -> None:
        """Add a member or, with a ``change`` of -1, remove it."""
        for topic in member.topics:
            _count(self.by_name, topic, change)
        if member.topic_regex:
            _count(self.regexes, member.topic_regex, change)

    def add_matches(self, resolved: ResolvedRegex, change: int = 1) -> None:
        """Add (or remove) the matches of an expression."""
        for topic in resolved.topics:
            _count(self.by_regex, topic, change)

    def subscription_type(self, members: int) -> SubscriptionType:
        """HOMOGENEOUS if all of ``members`` members have the same subscription."""
        if self.regexes:
            # Each member has at most one expression, so with two of them the subscriptions differ.
            same = (
                members in self.regexes.values()
                and not self.by_name
                and all(count == 1 for count in self.by_regex.values())
            )
        else:
            same = not self.by_regex.keys() - self.by_name.keys() and all(
                count == members for count in self.by_name.values()
            )
        return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def _count(counts: dict[K, int], name: K, change: int) -> None:
    after = counts.get(name, 0) + change
    if after:
        counts[name] = after
    else:
        del counts[name]


class MemberIndex:
    """Lookup tables over the members of one group."""

    def __init__(self) -> None:
        self.counts = SubscriptionCounts({}, {}, {})
        self.assignors: TimelineMap[str, int] = TimelineMap()
        """How many members ask for which assignor."""
        self.static: dict[str, str] = {}
        """Instance id → member id. A member that changes its instance id keeps the earlier one, even when it is gone."""
        self.stable_at: dict[int, int] = {}
        """Epoch → how many members are stable at it."""
        self.classic = 0
        """How many members speak the classic protocol."""
        self.protocols: Counter[str] = Counter()
        """How many of these offer which of its protocols."""
        self.partition_epochs: dict[uuid.UUID, dict[int, int]] = {}
        """Topic id → partition → the epoch of the member that has it, or has yet to give it back."""

    def add(self, member: ConsumerMember) -> None:
        """Add a member."""
        self.counts.add(member)
        if member.server_assignor is not None:
            self.assignors.put(member.server_assignor, self.assignors.get(member.server_assignor, 0) + 1)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        if member.state is MemberState.STABLE:
            _count(self.stable_at, member.member_epoch, 1)
        if member.classic is not None:
            self.classic += 1
            self.protocols.update(protocol.name for protocol in member.classic.supported_protocols)
        for assigned in (member.assigned, member.revoking):
            for topic_id, of_topic in assigned.items():
                self.partition_epochs.setdefault(topic_id, {}).update(dict.fromkeys(of_topic, member.member_epoch))

    def remove(self, member: ConsumerMember) -> None:
        """Remove a member."""
        self.counts.add(member, -1)
        if member.server_assignor is not None:
            left = self.assignors[member.server_assignor] - 1
            if left:
                self.assignors.put(member.server_assignor, left)
            else:
                del self.assignors[member.server_assignor]
        if member.state is MemberState.STABLE:
            _count(self.stable_at, member.member_epoch, -1)
        if member.classic is not None:
            self.classic -= 1
            self.protocols.subtract(protocol.name for protocol in member.classic.supported_protocols)
        for assigned in (member.assigned, member.revoking):
            for topic_id, of_topic in assigned.items():
                epochs = self.partition_epochs.get(topic_id, {})
                for partition in of_topic:
                    if epochs.get(partition) == member.member_epoch:
                        del epochs[partition]
                if not epochs:
                    self.partition_epochs.pop(topic_id, None)

    def preferred_assignor(self, *, without: ConsumerMember | None, plus: ConsumerMember | None) -> str | None:
        """The assignor that most members prefer, after replacing a member by another; None if none has a preference.

        Source: ``ConsumerGroup.computePreferredServerAssignor``.
        """
        counts: JavaMap[str, int] = JavaMap(string_hash, slots_of_copy(len(self.assignors)))
        for name, count in self.assignors.in_order():
            counts.put(name, count)
        for member, change in ((without, -1), (plus, 1)):
            asked = None if member is None else member.server_assignor
            if asked is not None:
                after = counts.computed(asked, int) + change
                counts.replace(asked, after)
                if not after:
                    counts.remove(asked)
        return max(counts.listed(), key=counts.__getitem__, default=None)
