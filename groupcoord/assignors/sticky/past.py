"""What the members of a group had, and who may keep it. Source: ``AbstractStickyAssignor.allSubscriptionsEqual``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groupcoord.assignors.model import Subscription, TopicPartition
from groupcoord.assignors.sticky.user_data import UnreadableUserData, read_cooperative, read_sticky

NO_GENERATION = -1
"""``DEFAULT_GENERATION``."""


class Past(NamedTuple):
    """The partitions one member claims, in the order of the claim, and since which generation; None if it does not say."""

    partitions: Sequence[TopicPartition]
    generation: int | None


def sticky_past(subscription: Subscription) -> Past:
    """Sticky's members have given everything up when they join, so the past travels in user data."""
    if not subscription.user_data:
        return Past((), None)
    try:
        return Past(*read_sticky(subscription.user_data))
    except UnreadableUserData:
        return Past((), NO_GENERATION)


def cooperative_past(subscription: Subscription) -> Past:
    """Cooperative members still own what they had; the generation is in the user data of those who are too old to say it."""
    if subscription.generation_id is not None:
        return Past(subscription.owned_partitions, subscription.generation_id)
    if subscription.user_data is None:
        return Past(subscription.owned_partitions, None)
    try:
        return Past(subscription.owned_partitions, read_cooperative(subscription.user_data))
    except UnreadableUserData:
        return Past(subscription.owned_partitions, NO_GENERATION)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who keeps what, before balance comes into it."""

    kept: dict[str, list[TopicPartition]]
    """Member id → the claims that stand, in the order in which they were made; members in ``HashMap`` order."""
    double_claimed: set[TopicPartition]
    """What two members claimed in one generation."""
    max_generation: int
    """The highest generation ever seen."""


def collect_ownership(
    members: Mapping[str, Subscription],
    pasts: Mapping[str, Past],
    table: Mapping[str, int],
    max_generation: int = NO_GENERATION,
) -> Ownership:
    """Settle the claims on the topics of ``table``, member by member.

    Of two who claim a partition the one with the higher generation keeps it; in the same generation neither does. As in
    Kafka the earlier claimant is compared by the generation that its subscription states, not the one in its user data, and
    a claim of an old generation that nobody contests stands.
    """
    claimant: dict[TopicPartition, str] = {}
    disowned: set[TopicPartition] = set()
    double_claimed: set[TopicPartition] = set()
    for member_id in members:
        past = pasts[member_id]
        generation = NO_GENERATION if past.generation is None else past.generation
        max_generation = max(max_generation, generation)
        for partition in past.partitions:
            if partition[0] not in table:
                continue
            if partition not in claimant:
                claimant[partition] = member_id
                continue
            other = claimant[partition]
            stated = members[other].generation_id
            rival = NO_GENERATION if stated is None else stated
            if generation < rival:
                continue
            del claimant[partition]  # so that it comes last among what the member keeps
            claimant[partition] = member_id
            if generation == rival:
                double_claimed.add(partition)
                disowned.add(partition)
            elif other != member_id:  # who claims twice does not win against itself
                disowned.discard(partition)
    kept: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    for partition, member_id in claimant.items():
        if partition not in disowned:
            kept[member_id].append(partition)
    return Ownership(kept, double_claimed, max_generation)


def wants_are_equal(members: Mapping[str, Subscription]) -> bool:
    """Do all members want the same topics, whether or not these exist?

    As in Kafka a member that wants nothing goes unnoticed as long as nobody before it wants anything.
    """
    first: set[str] = set()
    for subscription in members.values():
        if not first:
            first.update(subscription.topics)
        elif len(subscription.topics) != len(first) or not first.issuperset(subscription.topics):
            return False
    return True
