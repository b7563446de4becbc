"""What happens to groups: one event class per thing a person may want to see or a test assert."""

import enum
from collections.abc import Mapping

from groupcoord.core.events import Event, counted, event_class, partition_names

Owners = Mapping[str, tuple[tuple[str, int], ...]]
"""Member id → its (topic, partition) pairs."""


class Departure(enum.StrEnum):
    """Why a member was removed from its group, or a client with a new member id from the pending members."""

    LEFT = "left"
    """By LeaveGroup, of its own or of an administrator."""
    SESSION_OVER = "session over"
    """Nothing was heard of it for its session timeout."""
    FIRST_JOIN_OVER = "first join over"
    """Its first JoinGroup waited longer than a new member may be kept waiting."""
    NEVER_CAME_BACK = "never came back"
    """It was given a member id (KIP-394) and did not come back with it."""
    NOT_JOINED = "not joined"
    """It did not join again within the rebalance timeout."""
    NOT_SYNCED = "not synced"
    """It did not send SyncGroup within the rebalance timeout."""
    NOT_REVOKED = "not revoked"
    """It did not give partitions back within its rebalance timeout (KIP-848)."""
    NO_ROOM = "no room"
    """It came back when ``group.max.size`` others were there."""


@event_class
class GroupEvent(Event):
    """Something happened to ``group``."""

    group: str


@event_class
class ShardLoaded(Event):
    """Partition ``partition`` of ``__consumer_offsets`` was read: its groups are served from now on.

    ``passed_over`` of its ``records`` are of other kinds of groups, which are not served here.
    """

    partition: int
    records: int
    groups: int
    passed_over: int
    took_ms: int

    def text(self) -> str:
        read = f"{self.records} records of __consumer_offsets-{self.partition} in {self.took_ms} ms"
        others = f"; {self.passed_over} records of other kinds were passed over" if self.passed_over else ""
        return f"read {read}: {self.groups} groups{others}"


@event_class
class ShardNotLoaded(Event):
    """Partition ``partition`` of ``__consumer_offsets`` could not be read: requests for its groups are refused."""

    partition: int
    records: int
    why: str

    def text(self) -> str:
        return f"__consumer_offsets-{self.partition} is not served: {self.why}"


@event_class
class GroupCreated(GroupEvent):
    """The group did not exist before. A ``simple`` one only holds offsets."""

    simple: bool

    def text(self) -> str:
        return f"new group {self.group}" + (" (holds offsets only)" if self.simple else "")


@event_class
class MemberIdAssigned(GroupEvent):
    """A newcomer was given ``member`` as its id and told to come back with it (KIP-394)."""

    member: str

    def text(self) -> str:
        return f"newcomer gets the id {self.member} and is told to come back with it"


@event_class
class MemberJoined(GroupEvent):
    """``member`` is in the group now; ``protocols`` are what it offers, most wanted first.

    ``reason`` is what the client says, if it does (KIP-800).
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
    """``member``, already in the group, sent JoinGroup again and waits for the others; ``changed`` says if it offers
    something else than before."""

    member: str
    changed: bool
    reason: str

    def text(self) -> str:
        return f"{self.member} joins again{', with new metadata' if self.changed else ''}{_because(self.reason)}"


@event_class
class StaticMemberReplaced(GroupEvent):
    """Static member ``instance_id`` came back under a new id (KIP-345); ``rebalances`` says whether that starts one."""

    instance_id: str
    old_member: str
    new_member: str
    rebalances: bool

    def text(self) -> str:
        effect = "which starts a rebalance" if self.rebalances else "and keeps its assignment"
        return f"static member {self.instance_id} is back as {self.new_member}, was {self.old_member}, {effect}"


@event_class
class MemberRemoved(GroupEvent):
    """``member`` is out of the group. ``timeout_ms`` is the time that ran out, None if none did."""

    member: str
    reason: str
    how: Departure
    timeout_ms: int | None

    def text(self) -> str:
        return f"{self.member} is out: {self.reason}"


@event_class
class LeaderElected(GroupEvent):
    """``leader`` leads from now on."""

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
    """All members have to join again; ``waits_ms`` is how long the group waits for them at most."""

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
    """A new member joined during the initial delay, which is extended."""

    by_ms: int
    remaining_ms: int

    def text(self) -> str:
        return f"somebody new came: waiting {self.by_ms} ms more ({self.remaining_ms} ms left after that)"


@event_class
class RebalanceStuck(GroupEvent):
    """All members are there, and yet the generation does not begin properly: Kafka fails over what one of them sent."""

    generation: int
    why: str

    def text(self) -> str:
        return f"generation {self.generation} gets stuck, as it would in Kafka: {self.why}"


@event_class
class GenerationStarted(GroupEvent):
    """All have joined: a new generation with its voted protocol and its leader, who must now assign."""

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
    """The leader's SyncGroup brought the assignment; ``owners`` is None where it is not a consumer's and stays opaque."""

    generation: int
    leader: str
    owners: Owners | None

    def text(self) -> str:
        return f"leader {self.leader} assigns generation {self.generation}" + (
            "" if self.owners is None else ": " + "; ".join(f"{m} {partition_names(p)}" for m, p in self.owners.items())
        )


@event_class
class ConsumerMemberJoined(GroupEvent):
    """``member`` is in the consumer group now (KIP-848), and speaks that ``protocol``: ``consumer`` or ``classic``."""

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
    """``member`` of a consumer group subscribes to something else now."""

    member: str
    topics: tuple[str, ...]
    regex: str | None

    def text(self) -> str:
        return f"{self.member} subscribes to {_subscription(self.topics, self.regex)} now"


@event_class
class StaticMemberAway(GroupEvent):
    """Static member ``member`` left for now and keeps its assignment until its session ends (KIP-848)."""

    member: str
    instance_id: str

    def text(self) -> str:
        return f"static member {self.instance_id} ({self.member}) leaves for now"


@event_class
class GroupEpochBumped(GroupEvent):
    """The consumer group is at ``epoch``: a target assignment is to be computed for it."""

    epoch: int
    reason: str

    def text(self) -> str:
        return f"epoch {self.epoch}: {self.reason}"


@event_class
class TargetAssignmentComputed(GroupEvent):
    """The coordinator computed who is to have what at ``epoch``."""

    epoch: int
    assignor: str
    owners: Owners

    def text(self) -> str:
        owners = "; ".join(f"{member} {partition_names(pairs)}" for member, pairs in self.owners.items())
        return f"target assignment of epoch {self.epoch} by {self.assignor}: {owners}"


@event_class
class MemberReconciled(GroupEvent):
    """``member`` is one step nearer to the target assignment: it is at ``epoch``, may use ``assigned`` and has yet to give back
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
    """The group is of type ``to`` now: ``consumer`` or ``classic`` (KIP-848)."""

    to: str
    reason: str

    def text(self) -> str:
        return f"the group is a {self.to} group now: {self.reason}"


@event_class
class OffsetsCommitted(GroupEvent):
    """``member`` (``""`` outside of group management) committed ``offsets``: (topic, partition, offset)."""

    member: str
    generation: int
    offsets: tuple[tuple[str, int, int], ...]

    def text(self) -> str:
        return f"{self.member or 'a client outside of the group'} commits {_offsets(self.offsets)}"


@event_class
class TransactionalOffsetsPending(GroupEvent):
    """``member`` (``""`` outside of group management) committed ``offsets`` (topic, partition, offset) in a transaction.

    They count when that is committed; until then a consumer can ask OffsetFetch to refuse these partitions (KIP-447).
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

    They count now if it was ``committed``, unless later ones were committed before: those of the ``overtaken``
    (topic, partition) pairs. Otherwise they are forgotten.
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
    """The group's offsets of these (topic, partition) pairs are gone."""

    partitions: tuple[tuple[str, int], ...]
    reason: str

    def text(self) -> str:
        return f"offsets of {partition_names(self.partitions)} are gone: {self.reason}"


@event_class
class GroupRemoved(GroupEvent):
    """The group is gone."""

    reason: str

    def text(self) -> str:
        return f"group {self.group} is gone: {self.reason}"


@event_class
class RequestRefused(GroupEvent):
    """A request was refused with ``error`` (Kafka's name); ``why`` says what was wrong."""

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
