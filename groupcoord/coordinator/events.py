"""The events of the group coordinator (member joined, rebalance started, offsets committed …), for traces and tests."""

import enum
from collections.abc import Mapping

from groupcoord.core.events import Event, counted, event_class, partition_names

Owners = Mapping[str, tuple[tuple[str, int], ...]]
"""Member id → its (topic, partition) pairs."""


class Departure(enum.StrEnum):
    """Why a member, or a pending member (KIP-394), was removed from its group."""

    LEFT = "left"
    """LeaveGroup, from the member or an administrator."""
    SESSION_OVER = "session over"
    """Its session timed out."""
    FIRST_JOIN_OVER = "first join over"
    """Its first JoinGroup waited longer than the limit for new members."""
    NEVER_CAME_BACK = "never came back"
    """It was given a member id (KIP-394) and did not join with it."""
    NOT_JOINED = "not joined"
    """It did not rejoin within the rebalance timeout."""
    NOT_SYNCED = "not synced"
    """It did not send SyncGroup within the rebalance timeout."""
    NOT_REVOKED = "not revoked"
    """It did not revoke partitions within its rebalance timeout (KIP-848)."""
    NO_ROOM = "no room"
    """It rejoined when the group already had ``group.max.size`` members."""


@event_class
class GroupEvent(Event):
    """Something happened to ``group``."""

    group: str


@event_class
class ShardLoaded(Event):
    """Partition ``partition`` of ``__consumer_offsets`` is loaded: its groups are served from now on.

    ``passed_over`` of its ``records`` belong to unsupported types of groups.
    """

    partition: int
    records: int
    groups: int
    passed_over: int
    took_ms: int

    def text(self) -> str:
        read = f"{counted(self.records, 'record')} of __consumer_offsets-{self.partition} in {self.took_ms} ms"
        passed_over = (
            f"{counted(self.passed_over, 'record')} of other kinds {'was' if self.passed_over == 1 else 'were'}"
        )
        others = f"; {passed_over} passed over" if self.passed_over else ""
        return f"read {read}: {counted(self.groups, 'group')}{others}"


@event_class
class ShardNotLoaded(Event):
    """Partition ``partition`` of ``__consumer_offsets`` could not be loaded: requests for its groups are refused."""

    partition: int
    records: int
    why: str

    def text(self) -> str:
        return f"__consumer_offsets-{self.partition} is not served: {self.why}"


@event_class
class GroupCreated(GroupEvent):
    """The group was created. A ``simple`` group only has offsets."""

    simple: bool

    def text(self) -> str:
        return f"new group {self.group}" + (" (holds offsets only)" if self.simple else "")


@event_class
class MemberIdAssigned(GroupEvent):
    """A new member was given the id ``member``, with which it must join again (KIP-394)."""

    member: str

    def text(self) -> str:
        return f"newcomer gets the id {self.member} and is told to come back with it"


@event_class
class MemberJoined(GroupEvent):
    """``member`` joined the group; ``protocols`` are in its order of preference.

    ``reason`` is that of the client (KIP-800), "" if it gives none.
    """

    member: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocols: tuple[str, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    reason: str

    def text(self) -> str:
        static = f" (static, instance {self.instance_id})" if self.instance_id is not None else ""
        return f"{self.member}{static} joins, offers {', '.join(self.protocols)}{_because(self.reason)}"


@event_class
class MemberRejoined(GroupEvent):
    """``member``, already in the group, sent JoinGroup again and waits for the others; ``changed`` says whether its
    protocols or metadata have changed."""

    member: str
    changed: bool
    reason: str

    def text(self) -> str:
        return f"{self.member} joins again{', with new metadata' if self.changed else ''}{_because(self.reason)}"


@event_class
class StaticMemberReplaced(GroupEvent):
    """Static member ``instance_id`` rejoined under a new id (KIP-345); ``rebalances`` says whether that starts a rebalance."""

    instance_id: str
    old_member: str
    new_member: str
    rebalances: bool

    def text(self) -> str:
        effect = "which starts a rebalance" if self.rebalances else "and keeps its assignment"
        return f"static member {self.instance_id} is back as {self.new_member}, was {self.old_member}, {effect}"


@event_class
class MemberRemoved(GroupEvent):
    """``member`` was removed from the group. ``timeout_ms`` is the timeout that expired, None if none did."""

    member: str
    reason: str
    how: Departure
    timeout_ms: int | None

    def text(self) -> str:
        return f"{self.member} is out: {self.reason}"


@event_class
class LeaderElected(GroupEvent):
    """``leader`` became the leader of the group."""

    leader: str
    reason: str

    def text(self) -> str:
        return f"leader is {self.leader}: {self.reason}"


@event_class
class StateChanged(GroupEvent):
    """The group moved from state ``origin`` to ``target``."""

    origin: str
    target: str
    generation: int

    def text(self) -> str:
        return f"{self.group} {self.origin} → {self.target} gen={self.generation}"


@event_class
class RebalanceStarted(GroupEvent):
    """All members must rejoin; the group waits for them for ``waits_ms`` at most."""

    generation: int
    reason: str
    waits_ms: int
    initial: bool

    def text(self) -> str:
        if self.initial:
            return f"rebalance because {self.reason}; nobody else was there, so it waits {self.waits_ms} ms for others"
        return (
            f"rebalance of generation {self.generation} because {self.reason}; "
            f"the members have {self.waits_ms} ms to join again"
        )


@event_class
class InitialDelayExtended(GroupEvent):
    """The initial delay is extended, because a new member joined during it."""

    by_ms: int
    remaining_ms: int

    def text(self) -> str:
        return f"somebody new came: waiting {self.by_ms} ms more ({self.remaining_ms} ms left after that)"


@event_class
class RebalanceStuck(GroupEvent):
    """All members have joined, but the generation cannot begin: Kafka fails on the data that one of them sent."""

    generation: int
    why: str

    def text(self) -> str:
        return f"generation {self.generation} gets stuck, as it would in Kafka: {self.why}"


@event_class
class GenerationStarted(GroupEvent):
    """All members have joined: a new generation with its chosen protocol and its leader, which must now assign."""

    generation: int
    protocol: str
    votes: Mapping[str, int]
    leader: str
    members: tuple[str, ...]

    def text(self) -> str:
        count = counted(len(self.members), "member")
        votes = ", ".join(f"{name} {votes}" for name, votes in self.votes.items())
        return f"generation {self.generation}: {count}, protocol {self.protocol} (votes: {votes}), leader {self.leader}"


@event_class
class AssignmentReceived(GroupEvent):
    """The leader sent the assignment with SyncGroup; ``owners`` is None if it is not a consumer's and cannot be decoded."""

    generation: int
    leader: str
    owners: Owners | None

    def text(self) -> str:
        return f"leader {self.leader} assigns generation {self.generation}" + (
            "" if self.owners is None else ": " + "; ".join(f"{m} {partition_names(p)}" for m, p in self.owners.items())
        )


@event_class
class ConsumerMemberJoined(GroupEvent):
    """``member`` joined the consumer group (KIP-848) by that ``protocol``: ``consumer`` or ``classic``."""

    member: str
    instance_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    assignor: str | None
    rack: str | None
    protocol: str

    def text(self) -> str:
        static = f" (static, instance {self.instance_id})" if self.instance_id is not None else ""
        how = " by the classic protocol" if self.protocol == "classic" else ""
        return f"{self.member}{static} joins{how}, subscribes to {_subscription(self.topics, self.regex)}"


@event_class
class SubscriptionChanged(GroupEvent):
    """``member`` of a consumer group changed its subscription."""

    member: str
    topics: tuple[str, ...]
    regex: str | None

    def text(self) -> str:
        return f"{self.member} subscribes to {_subscription(self.topics, self.regex)} now"


@event_class
class StaticMemberAway(GroupEvent):
    """Static member ``member`` left temporarily, and keeps its assignment until its session expires (KIP-848)."""

    member: str
    instance_id: str

    def text(self) -> str:
        return f"static member {self.instance_id} ({self.member}) leaves for now"


@event_class
class GroupEpochBumped(GroupEvent):
    """The group epoch of the consumer group is ``epoch``; its target assignment is still to be computed."""

    epoch: int
    reason: str

    def text(self) -> str:
        return f"epoch {self.epoch}: {self.reason}"


@event_class
class TargetAssignmentComputed(GroupEvent):
    """The coordinator computed the target assignment of ``epoch``."""

    epoch: int
    assignor: str
    owners: Owners

    def text(self) -> str:
        owners = "; ".join(f"{member} {partition_names(pairs)}" for member, pairs in self.owners.items())
        return f"target assignment of epoch {self.epoch} by {self.assignor}: {owners}"


@event_class
class MemberReconciled(GroupEvent):
    """``member`` took a step towards the target assignment: it is at ``epoch``, may consume ``assigned`` and must revoke
    ``revoking``. ``state`` is STABLE, UNREVOKED_PARTITIONS or UNRELEASED_PARTITIONS."""

    member: str
    epoch: int
    state: str
    assigned: tuple[tuple[str, int], ...]
    revoking: tuple[tuple[str, int], ...]

    def text(self) -> str:
        text = f"{self.member} is at epoch {self.epoch} and has {partition_names(self.assigned)}"
        if self.revoking:
            text += f"; it must give back {partition_names(self.revoking)}"
        return text + ("; it waits for partitions of others" if self.state == "UNRELEASED_PARTITIONS" else "")


@event_class
class RegexResolved(GroupEvent):
    """Regular expression ``regex`` matches ``topics``."""

    regex: str
    topics: tuple[str, ...]

    def text(self) -> str:
        return f"{self.regex} matches {', '.join(self.topics) or 'no topic'}"


@event_class
class GroupMigrated(GroupEvent):
    """The group was converted to the type ``to``: ``consumer`` or ``classic`` (KIP-848)."""

    to: str
    reason: str

    def text(self) -> str:
        return f"the group is a {self.to} group now: {self.reason}"


@event_class
class OffsetsCommitted(GroupEvent):
    """``member`` (``""`` for a consumer with manual assignment) committed ``offsets``: (topic, partition, offset)."""

    member: str
    generation: int
    offsets: tuple[tuple[str, int, int], ...]

    def text(self) -> str:
        return f"{self.member or 'a client outside of the group'} commits {_offsets(self.offsets)}"


@event_class
class TransactionalOffsetsPending(GroupEvent):
    """``member`` (``""`` if the producer names none) committed ``offsets`` (topic, partition, offset) in a transaction.

    They take effect when it is committed; until then an OffsetFetch with ``require_stable`` refuses these partitions (KIP-447).
    """

    member: str
    generation: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    offsets: tuple[tuple[str, int, int], ...]

    def text(self) -> str:
        who = self.member or "a client outside of the group"
        transaction = f"the transaction of {self.transactional_id} (producer {self.producer_id})"
        return f"{who} commits {_offsets(self.offsets)} in {transaction}"


@event_class
class TransactionalOffsetsEnded(GroupEvent):
    """The transaction of ``producer_id`` with ``offsets`` (topic, partition, offset) has ended.

    If it was ``committed``, they take effect, except for the ``overtaken`` (topic, partition) pairs, for which a later offset
    was committed meanwhile. Otherwise they are discarded.
    """

    producer_id: int
    committed: bool
    offsets: tuple[tuple[str, int, int], ...]
    overtaken: tuple[tuple[str, int], ...]

    def text(self) -> str:
        if not self.committed:
            return f"the transaction of producer {self.producer_id} is aborted: {_offsets(self.offsets)} forgotten"
        late = f"; later commits of {partition_names(self.overtaken)} stay" if self.overtaken else ""
        return f"the transaction of producer {self.producer_id} is committed: {_offsets(self.offsets)}{late}"


@event_class
class OffsetsRemoved(GroupEvent):
    """The group's offsets of these (topic, partition) pairs were removed."""

    partitions: tuple[tuple[str, int], ...]
    reason: str

    def text(self) -> str:
        return f"offsets of {partition_names(self.partitions)} are gone: {self.reason}"


@event_class
class GroupRemoved(GroupEvent):
    """The group was deleted."""

    reason: str

    def text(self) -> str:
        return f"group {self.group} is gone: {self.reason}"


@event_class
class RequestRefused(GroupEvent):
    """A request was refused with ``error`` (Kafka's name); ``why`` is the explanation."""

    api: str
    member: str
    error: str
    why: str

    def text(self) -> str:
        who = f" of {self.member}" if self.member else ""
        return f"{self.api}{who} is refused with {self.error}: {self.why}"


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _subscription(topics: tuple[str, ...], regex: str | None) -> str:
    return (
        " and ".join([*([", ".join(topics)] if topics else []), *([f"what {regex} matches"] if regex else [])])
        or "nothing"
    )


def _offsets(offsets: tuple[tuple[str, int, int], ...]) -> str:
    return ", ".join(f"{topic}-{partition} at {offset}" for topic, partition, offset in offsets)
