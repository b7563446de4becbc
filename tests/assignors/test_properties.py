"""What holds for every group, drawn by Hypothesis."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupcoord.assignors import ASSIGNORS, Assignment, GroupSubscription, Subscription
from groupcoord.assignors.group_simulator import GroupSimulator, count_moved, owners, ownership_changes, spread
from groupcoord.assignors.interface import RebalanceProtocol
from groupcoord.assignors.sticky.previous_assignment import write_sticky
from groupcoord.assignors.sticky.sticky_assignors import assign_sticky
from groupcoord.assignors.validation import run_assignor

pytestmark = [pytest.mark.slow, pytest.mark.untraced]

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky", "rendezvous", "weighted"]
KAFKAS_STICKY = ["sticky", "cooperative-sticky"]
TOPICS = ["orders", "payments", "refunds", "shipments"]
# No two of these share a bucket of a small HashMap, where Java would have to decide by the order of insertion.
MEMBERS = list("abcdefghijkl")

any_assignor = pytest.mark.parametrize("name", NAMES)
both_sticky = pytest.mark.parametrize("name", KAFKAS_STICKY)
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12), min_size=1)
member_ids = st.lists(st.sampled_from(MEMBERS), min_size=1, unique=True)
wishes = st.dictionaries(
    st.sampled_from(MEMBERS), st.lists(st.sampled_from(TOPICS), unique=True, min_size=1), min_size=1
)
quick = settings(max_examples=30)


def group_of(wanted: dict[str, list[str]], partitions: dict[str, int]) -> GroupSubscription:
    subscriptions = {member_id: Subscription(topics=topics) for member_id, topics in wanted.items()}
    return GroupSubscription(subscriptions=subscriptions, partitions=partitions)


def exists(group: GroupSubscription) -> set[tuple[str, int]]:
    """What somebody wants and what there is."""
    wanted = {topic for subscription in group.subscriptions.values() for topic in subscription.topics}
    return {(topic, number) for topic in wanted for number in range(group.partitions.get(topic, 0))}


@any_assignor
@quick
@given(wanted=wishes, partitions=counts)
def test_every_partition_goes_to_exactly_one_who_wants_it(
    name: str, wanted: dict[str, list[str]], partitions: dict[str, int]
) -> None:
    group = group_of(wanted, partitions)
    answer = run_assignor(ASSIGNORS.create(name), group)  # which checks just that
    given_out = Counter(partition for part in answer.values() for partition in part)
    assert set(given_out) == exists(group)
    assert set(given_out.values()) <= {1}


@any_assignor
@quick
@given(wanted=wishes, partitions=counts, data=st.data())
def test_the_answer_does_not_depend_on_the_order_of_the_question(
    name: str, wanted: dict[str, list[str]], partitions: dict[str, int], data: st.DataObject
) -> None:
    group = group_of(wanted, partitions)
    answer = ASSIGNORS.create(name).assign(group)
    assert ASSIGNORS.create(name).assign(group) == answer
    mixed = GroupSubscription(
        subscriptions={
            member_id: Subscription(topics=data.draw(st.permutations(wanted[member_id])))
            for member_id in data.draw(st.permutations(list(wanted)))
        },
        partitions=dict(data.draw(st.permutations(list(partitions.items())))),
    )
    assert as_sets(ASSIGNORS.create(name).assign(mixed)) == as_sets(answer)


def as_sets(assignment: Assignment) -> dict[str, set[tuple[str, int]]]:
    return {member_id: set(partitions) for member_id, partitions in assignment.items()}


@quick
@given(members=member_ids, partitions=counts)
def test_range_is_even_within_every_topic(members: list[str], partitions: dict[str, int]) -> None:
    answer = ASSIGNORS.create("range").assign(group_of(dict.fromkeys(members, TOPICS), partitions))
    for topic in TOPICS:
        of_topic = {member_id: [number for name, number in part if name == topic] for member_id, part in answer.items()}
        assert max(map(len, of_topic.values())) - min(map(len, of_topic.values())) <= 1
        for run_ in of_topic.values():
            assert run_ == list(range(run_[0], run_[0] + len(run_))) if run_ else True


@pytest.mark.parametrize("name", ["roundrobin", "sticky", "cooperative-sticky", "weighted"])
@quick
@given(members=member_ids, partitions=counts)
def test_who_want_the_same_have_as_much_to_one(name: str, members: list[str], partitions: dict[str, int]) -> None:
    answer = ASSIGNORS.create(name).assign(group_of(dict.fromkeys(members, TOPICS), partitions))
    assert spread(answer) <= 1


@both_sticky
@quick
@given(wanted=wishes, partitions=counts)
def test_no_partition_could_go_to_somebody_with_two_less(
    name: str, wanted: dict[str, list[str]], partitions: dict[str, int]
) -> None:
    answer = ASSIGNORS.create(name).assign(group_of(wanted, partitions))
    for (topic, _), owner in owners(answer).items():
        for other, topics in wanted.items():
            assert topic not in topics or len(answer[owner]) <= len(answer[other]) + 1


@both_sticky
@quick
@given(wanted=wishes, partitions=counts)
def test_what_is_even_stays_as_it_is(name: str, wanted: dict[str, list[str]], partitions: dict[str, int]) -> None:
    rehearsal = GroupSimulator(name, partitions)
    for member_id, topics in wanted.items():
        rehearsal.join(member_id, topics)
    first = rehearsal.rebalance().assignment
    assert as_sets(rehearsal.rebalance().assignment) == as_sets(first)


@pytest.mark.parametrize("name", [*KAFKAS_STICKY, "rendezvous"])
@quick
@given(members=member_ids, partitions=counts, data=st.data())
def test_when_one_leaves_the_others_keep_all_they_had(
    name: str, members: list[str], partitions: dict[str, int], data: st.DataObject
) -> None:
    if len(members) == 1:
        return
    rehearsal = GroupSimulator(name, partitions)
    for member_id in members:
        rehearsal.join(member_id)
    rehearsal.rebalance()
    rehearsal.leave(data.draw(st.sampled_from(members)))
    outcome = rehearsal.rebalance()
    assert not [member_id for member_id in outcome.assignment if outcome.changes[member_id].lost]
    assert len(outcome.rounds) == 1


@pytest.mark.parametrize("name", [*KAFKAS_STICKY, "rendezvous"])
@quick
@given(members=member_ids, partitions=counts)
def test_when_one_joins_only_it_gains(name: str, members: list[str], partitions: dict[str, int]) -> None:
    rehearsal = GroupSimulator(name, partitions)
    for member_id in members:
        rehearsal.join(member_id)
    rehearsal.rebalance()
    rehearsal.join("newcomer")
    outcome = rehearsal.rebalance()
    assert {member_id for member_id, change in outcome.changes.items() if change.gained} <= {"newcomer"}
    if name in KAFKAS_STICKY:
        # Nobody gives up more than evenness asks for.
        assert outcome.moved == sum(partitions.values()) // (len(members) + 1)


@pytest.mark.parametrize("name", ["cooperative-sticky", "rendezvous", "weighted"])
@quick
@given(wanted=wishes, later=wishes, partitions=counts)
def test_under_the_cooperative_protocol_nothing_has_two_owners_at_any_time(
    name: str, wanted: dict[str, list[str]], later: dict[str, list[str]], partitions: dict[str, int]
) -> None:
    rehearsal = GroupSimulator(name, partitions)
    for member_id, topics in wanted.items():
        rehearsal.join(member_id, topics)
    before = rehearsal.rebalance().assignment
    for member_id, topics in later.items():
        if member_id in wanted:
            rehearsal.leave(member_id)
        else:
            rehearsal.join(member_id, topics)
    if set(wanted) == set(later):
        return
    for after in rehearsal.rebalance().rounds:
        held = owners({member_id: part for member_id, part in before.items() if member_id in after})
        for partition, owner in owners(after).items():
            assert held.get(partition, owner) == owner
        before = after


@quick
@given(wanted=wishes, partitions=counts, data=st.data())
def test_claims_of_any_kind_end_in_a_sound_assignment(
    wanted: dict[str, list[str]], partitions: dict[str, int], data: st.DataObject
) -> None:
    """Claims that contradict each other, are out of date or for topics that are not wanted any more."""
    group = group_of(wanted, partitions)
    claims = st.lists(st.sampled_from(sorted(exists(group)) or [("gone", 0)]), unique=True)
    generations = st.one_of(st.none(), st.integers(0, 3))
    subscriptions = {
        member_id: replace(
            subscription,
            user_data=write_sticky(data.draw(claims), data.draw(generations)),
            generation_id=data.draw(generations),
        )
        for member_id, subscription in group.subscriptions.items()
    }
    answer = assign_sticky(replace(group, subscriptions=subscriptions), strict=False)
    assert sorted(owners(answer.assignment)) == sorted(exists(group))
    assert sum(map(len, answer.assignment.values())) == len(exists(group))


@pytest.mark.parametrize("protocol", list(RebalanceProtocol))
def test_changes_are_told_apart(protocol: RebalanceProtocol) -> None:
    before: Assignment = {"a": [("t", 0), ("t", 1)], "b": [("t", 2)]}
    after: Assignment = {"a": [("t", 1), ("t", 2)], "c": [("t", 3 + protocol)]}
    told = ownership_changes(before, after)
    kept: Sequence[tuple[str, int]] = told["a"].kept
    assert (kept, told["a"].gained, told["a"].lost) == ([("t", 1)], [("t", 2)], [("t", 0)])
    assert (told["c"].gained, told["b"].lost) == ([("t", 3 + protocol)], [("t", 2)])
    assert list(told) == ["a", "c", "b"]
    assert count_moved(before, after) == 1
