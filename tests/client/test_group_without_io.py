"""Whole groups of members with groupcoord's coordinator, in a world where chance decides what happens next."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupcoord.client.events import JoinSent, Synced
from tests.client.world import COOPERATIVE, EAGER, World

seeds = st.integers(0, 2**32)


@pytest.mark.parametrize("assignors", [EAGER, COOPERATIVE])
def test_members_come_and_go(assignors: tuple[str, ...]) -> None:
    world = World(random.Random(0), partitions=7)
    world.joins(assignors)
    world.settles()
    world.joins(assignors)
    world.joins(assignors)
    world.settles()
    first = world.members[0]
    first.hears(first.membership.leave("done", world.now_ms))
    world.settles()
    assert first.gone
    world.members[1].gone = True  # without a word
    world.settles()
    assert len(world.members[2].owned) == 7


def test_a_cooperative_rebalance_has_two_phases_only_where_something_moves() -> None:
    world = World(random.Random(0), partitions=4)
    first = world.joins(COOPERATIVE)
    world.settles()
    first.events.clear()
    second = world.joins(COOPERATIVE)
    world.settles()
    assert [len(synced.gives_up) for synced in first.events if isinstance(synced, Synced)] == [2, 0]
    kept = [len(join.keeps) for join in first.events if isinstance(join, JoinSent)]
    assert kept == [4, 2]
    first.events.clear()
    second.hears(second.membership.leave("done", world.now_ms))
    world.settles()
    assert [len(synced.gives_up) for synced in first.events if isinstance(synced, Synced)] == [0]


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    world = World(random.Random(0), partitions=4)
    world.joins(COOPERATIVE, instance_id="one")
    other = world.joins(COOPERATIVE, instance_id="two")
    world.settles()
    before, generation = other.owned, other.membership.generation.generation_id
    other.hears(other.membership.leave("a restart", world.now_ms))
    world.passes(1_000)
    assert other.gone
    back = world.joins(COOPERATIVE, instance_id="two")
    world.settles()
    assert (back.owned, back.membership.generation.generation_id) == (before, generation)


def test_a_group_upgrades_from_eager_to_cooperative_one_by_one() -> None:
    """The second of the two documented steps: all know cooperative-sticky, and one after the other forgets range."""
    world = World(random.Random(0), partitions=6)
    for _ in range(3):
        world.joins(EAGER)
    world.settles()
    for old in tuple(world.members):
        old.hears(old.membership.leave("an upgrade", world.now_ms))
        world.passes(100)
        world.joins(COOPERATIVE)
        world.settles()


@pytest.mark.slow
@settings(max_examples=60)
@given(seed=seeds)
def test_nothing_ever_belongs_to_two(seed: int) -> None:
    """Members join, leave, die, are busy, lose connections; eager and cooperative, static and dynamic in one group."""
    chance = random.Random(seed)
    world = World(chance, partitions=chance.randint(1, 9))
    for number in range(20):
        living = world.living
        kind = chance.choice(["joins", "joins", "leaves", "dies", "polls", "away", "away", "breaks", "rejoins"])
        somebody = chance.choice(living) if living else None
        if kind == "joins" and len(living) < 4:
            static = {"instance_id": f"static-{number}"} if chance.random() < 0.3 else {}
            world.joins(chance.choice([EAGER, COOPERATIVE]), auto_commit=chance.random() < 0.5, **static)
        elif somebody is None:
            continue
        elif kind == "leaves":
            somebody.hears(somebody.membership.leave("done", world.now_ms))
        elif kind == "dies":
            somebody.gone = True
        elif kind == "polls":
            somebody.polls()
        elif kind == "away":
            somebody.goes_away()
        elif kind == "breaks":
            somebody.loses_wire(chance.random() < 0.5)
        elif kind == "rejoins":
            somebody.hears(somebody.membership.rejoin("why not", world.now_ms))
        for _ in range(chance.randrange(40)):
            world.step()
        world.passes(chance.choice([0, 50, 500, 3_000]))
    world.settles()
