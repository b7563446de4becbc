"""From one target assignment to the next, member by member: what each may have, what it has to give back, whom it waits for."""

import uuid

import pytest

from groupcoord.coordinator.consumer.member import ConsumerMember, MemberState
from groupcoord.coordinator.consumer.reconciliation import FREE, Owned, reconcile
from groupcoord.coordinator.events import MemberReconciled
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import ConsumerWorld, settle

T, U = uuid.UUID(int=1), uuid.UUID(int=2)
V = uuid.UUID(int=17)
"""In the same bucket of Java's hash maps as T."""
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS


def member(
    state: MemberState = STABLE,
    epoch: int = 5,
    assigned: dict[uuid.UUID, tuple[int, ...]] | None = None,
    revoking: dict[uuid.UUID, tuple[int, ...]] | None = None,
) -> ConsumerMember:
    """A member whose partitions were all assigned at epoch 2."""
    have, give = (
        {topic_id: dict.fromkeys(of_topic, 2) for topic_id, of_topic in (each or {}).items()}
        for each in (assigned, revoking)
    )
    return ConsumerMember(
        member_id="a", member_epoch=epoch, previous_member_epoch=epoch - 1, state=state, assigned=have, revoking=give
    )


def step(
    before: ConsumerMember,
    target: dict[uuid.UUID, tuple[int, ...]],
    *,
    epoch: int = 6,
    owned: Owned = None,
    subscribed: tuple[uuid.UUID, ...] = (T, U),
    changed: bool = False,
    others: tuple[int, ...] = (),
) -> ConsumerMember:
    """One step; ``others`` are partitions of T that others still have."""

    def partition_epoch(topic_id: uuid.UUID, partition: int) -> int:
        return 4 if topic_id == T and partition in others else FREE

    return reconcile(
        before,
        epoch,
        target,
        subscribed_ids=subscribed,
        has_subscription_changed=changed,
        partition_epoch=partition_epoch,
        owned=owned,
    )


def test_who_is_there_stays_as_it_is() -> None:
    before = member(assigned={T: (0,)})
    assert step(before, {T: (0,)}, epoch=5) is before
    assert step(before, {T: (0,)}, epoch=5, changed=True) is before


@pytest.mark.parametrize(
    ("before", "target", "others", "owned", "after"),
    [
        # Nothing to give back: the next epoch at once; new partitions are of that epoch.
        (member(), {T: (0, 1)}, (), None, (STABLE, 6, {T: {0: 6, 1: 6}}, {})),
        (member(assigned={T: (0,)}), {T: (0, 1)}, (), None, (STABLE, 6, {T: {0: 2, 1: 6}}, {})),
        # Others have them: wait for these, have the rest.
        (member(assigned={T: (0,)}), {T: (0, 1, 2)}, (1,), None, (UNRELEASED, 6, {T: {0: 2, 2: 6}}, {})),
        (member(), {T: (0,)}, (0,), None, (UNRELEASED, 6, {}, {})),
        (member(UNRELEASED, 6), {T: (0,)}, (0,), None, (UNRELEASED, 6, {}, {})),
        (member(UNRELEASED, 6), {T: (0,)}, (), None, (STABLE, 6, {T: {0: 6}}, {})),
        # Something to give back: the epoch stays until the member says that it did.
        (member(assigned={T: (0, 1)}), {T: (0,)}, (), None, (UNREVOKED, 5, {T: {0: 2}}, {T: {1: 2}})),
        (member(assigned={T: (0, 1)}), {T: (0,)}, (), [(T, (0, 1))], (UNREVOKED, 5, {T: {0: 2}}, {T: {1: 2}})),
        (member(assigned={T: (0, 1)}), {T: (0,)}, (), [(T, (0,))], (STABLE, 6, {T: {0: 2}}, {})),
        (member(assigned={T: (0,), U: (0,)}), {T: (0,)}, (), [], (STABLE, 6, {T: {0: 2}}, {})),
        (member(UNREVOKED, 5, {T: (0,)}, {T: (1,)}), {T: (0,)}, (), [(T, (0,))], (STABLE, 6, {T: {0: 2}}, {})),
        # What it gave back it may be given again; of its own it need not wait for what it still has.
        (member(UNREVOKED, 5, {}, {T: (1,)}), {T: (1,)}, (1,), [], (STABLE, 6, {T: {1: 6}}, {})),
        (
            member(UNREVOKED, 5, {T: (0, 3)}, {T: (1,)}),
            {T: (3,)},
            (),
            [(T, (0,))],
            (UNREVOKED, 5, {T: {3: 2}}, {T: {0: 2}}),
        ),
    ],
)
def test_one_step(
    before: ConsumerMember,
    target: dict[uuid.UUID, tuple[int, ...]],
    others: tuple[int, ...],
    owned: Owned,
    after: tuple[MemberState, int, dict[uuid.UUID, dict[int, int]], dict[uuid.UUID, dict[int, int]]],
) -> None:
    found = step(before, target, others=others, owned=owned)
    assert (found.state, found.member_epoch, found.assigned, found.revoking) == after
    assert found.previous_member_epoch == before.member_epoch


def test_who_still_owns_what_it_gives_back_stays_as_it_is() -> None:
    before = member(UNREVOKED, assigned={T: (0,)}, revoking={T: (1,)})
    assert step(before, {T: (0, 1)}) is before
    assert step(before, {T: (0, 1)}, owned=[(T, (1,))]) is before
    assert step(before, {T: (0, 1)}, owned=[(T, (1,))], changed=True) is before


def test_topics_that_are_given_up_have_to_be_given_back_before_all_else() -> None:
    """Also while there is no new target, and while other partitions are on their way back."""
    before = member(assigned={T: (0,), U: (0,)})
    found = step(before, {T: (0,), U: (0,)}, epoch=5, changed=True, subscribed=(T,))
    assert (found.state, found.member_epoch, found.previous_member_epoch) == (UNREVOKED, 5, 5)
    assert (found.assigned, found.revoking) == ({T: {0: 2}}, {U: {0: 2}})
    without = step(before, {}, epoch=5, changed=True, subscribed=(T,), owned=[(T, (0,))])
    assert (without.state, without.assigned, without.revoking) == (STABLE, {T: {0: 2}}, {})
    both = member(UNREVOKED, assigned={T: (0,), U: (0,)}, revoking={T: (1,)})
    found = step(both, {}, changed=True, subscribed=(U,))
    assert (found.state, found.assigned, found.revoking) == (UNREVOKED, {U: {0: 2}}, {T: {1: 2, 0: 2}})


def test_a_member_in_a_state_that_is_not_known_has_to_start_over() -> None:
    """A newer broker wrote it."""
    before = member(MemberState.UNKNOWN, assigned={T: (0, 1)})
    for owned in (None, [(T, (0,))]):
        with pytest.raises(ApiError, match="is in a unknown state") as caught:
            step(before, {T: (0,)}, owned=owned)
        assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    found = step(before, {T: (0,)}, owned=[])
    assert (found.state, found.member_epoch, found.assigned) == (STABLE, 6, {T: {0: 2}})


# --- in a group


def test_partitions_move_one_owner_at_a_time() -> None:
    """Nobody is told a partition that another may still have."""
    w = ConsumerWorld(topics={"t": 6})
    a, b, c = w.consumer("a"), w.consumer("b"), w.consumer("c")
    held: dict[str, set[int]] = {}
    a.join()
    for member in (b, c):
        member.join()
        for _ in range(6):
            for each in (a, b, c):
                if each.epoch:
                    each.owns()
                    held[each.name] = set(each.assigned.get("t", ()))
                    assert sum(map(len, held.values())) == len(set().union(*held.values()))
    assert held == {"a": {0, 1}, "b": {3, 4}, "c": {2, 5}}
    reconciled = w.seen(MemberReconciled)
    assert [(each.member, each.epoch, each.state) for each in reconciled[:3]] == [
        ("a", 2, "STABLE"),
        ("b", 3, "UNRELEASED_PARTITIONS"),
        ("a", 2, "UNREVOKED_PARTITIONS"),
    ]
    assert reconciled[2].revoking == (("t", 3), ("t", 4), ("t", 5))


def test_a_target_that_changes_while_partitions_are_on_their_way() -> None:
    """Nothing moves until what is asked for is given back; then the newest target counts."""
    w = ConsumerWorld(topics={"t": 4})
    a, b = w.consumer("a"), w.consumer("b")
    a.join()
    b.join()
    a.heartbeat()
    b.leave()
    before = len(w.batches)
    a.heartbeat()
    assert w.written(before) == ["target:a assigned"]
    assert a.stored.state is UNREVOKED
    a.owns({"t": [0, 1]})
    assert a.assigned == {"t": [0, 1, 2, 3]}
    assert a.stored.assigned[w.topics.ids["t"]] == {0: 2, 1: 2, 2: 4, 3: 4}


def test_subscribing_to_nothing_gives_everything_back() -> None:
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    a.heartbeat(subscribed_topic_names=())
    assert (a.epoch, a.assigned, a.stored.state) == (2, {}, UNREVOKED)
    assert w.last() == "member:a group target:a assigned current:a"
    a.owns({})
    assert (a.epoch, a.stored.state, w.state) == (3, STABLE, "Stable")


def test_racks_are_told_to_the_assignor() -> None:
    w = ConsumerWorld()
    a, b = w.joined_consumers("ab", rack="r")
    settle([a, b])
    assert [each.rack_id for each in w.described().members] == ["r", "r"]


@pytest.mark.parametrize(("has", "order"), [((), [V, T]), ((T,), [V, T]), ((V,), [T, V])])
def test_a_new_topic_comes_first_in_its_bucket(has: tuple[uuid.UUID, ...], order: list[uuid.UUID]) -> None:
    before = member(assigned=dict.fromkeys(has, (0,)))
    assert list(step(before, {T: (0,), V: (0,)}, subscribed=(T, V)).assigned) == order


def test_a_topic_to_give_back_comes_first_in_its_bucket() -> None:
    before = member(assigned={T: (0,), V: (0,)})
    assert list(step(before, {}, epoch=5, subscribed=(), changed=True).revoking) == [V, T]
    before = member(UNREVOKED, assigned={V: (0,)}, revoking={T: (0,)})
    assert list(step(before, {}, subscribed=(), changed=True).revoking) == [V, T]
    before = member(UNREVOKED, assigned={T: (1,), V: (0,)}, revoking={V: (1,), T: (0,)})
    assert list(step(before, {}, subscribed=(), changed=True).revoking.items()) == [
        (V, {0: 2, 1: 2}),
        (T, {0: 2, 1: 2}),
    ]


def test_topics_that_stay_are_in_the_order_of_a_small_map() -> None:
    ninth = uuid.UUID(int=9)  # of eight buckets the one before that of U
    before = member(assigned={T: (0,), U: (0,), ninth: (0,)})
    after = step(before, {}, epoch=5, subscribed=(U, ninth), changed=True)
    assert list(after.assigned) == [ninth, U]
