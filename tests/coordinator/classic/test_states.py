"""Which moves are legal, and the table of (state, request): every cell is asked."""

from collections.abc import Callable
from itertools import product

import pytest

from groupcoord.coordinator.classic.classic_group_state import COMMIT_ANSWERS, HEARTBEAT_ANSWERS, GroupState, may_move
from groupcoord.coordinator.events import StateChanged
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.bare_group import bare_group
from tests.coordinator.world import INITIAL_DELAY_MS, Asked, Member, World, subscription

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
LEGAL = {
    (EMPTY, PREPARING),
    (PREPARING, EMPTY),
    (PREPARING, COMPLETING),
    (COMPLETING, PREPARING),
    (COMPLETING, STABLE),
    (STABLE, PREPARING),
    *((state, DEAD) for state in GroupState),
}


@pytest.mark.parametrize(("origin", "target"), list(product(GroupState, GroupState)))
def test_only_the_legal_moves_are_possible(origin: GroupState, target: GroupState) -> None:
    group = bare_group()
    group.state = origin
    assert may_move(origin, target) == ((origin, target) in LEGAL)
    if may_move(origin, target):
        group.move_to(target, 7)
        assert (group.previous_state, group.state, group.state_since_ms) == (origin, target, 7)
    else:
        with pytest.raises(AssertionError, match="cannot go from"):
            group.move_to(target, 7)


def test_the_tables_know_every_state() -> None:
    assert set(HEARTBEAT_ANSWERS) == set(COMMIT_ANSWERS) == set(GroupState)


def missing() -> tuple[World, Member, Member]:
    """Nobody has ever heard of the group."""
    world = World()
    a, b = world.member("a", member_id="a-1"), world.member("b", member_id="b-2")
    a.generation = b.generation = 1
    return world, a, b


def empty() -> tuple[World, Member, Member]:
    """Both have left."""
    world, a, b = stable()
    a.leave()
    b.leave()
    world.advance(60_000)
    return world, a, b


def preparing() -> tuple[World, Member, Member]:
    """Somebody new has come, and both members have yet to join again."""
    world, a, b = stable()
    world.member("c").enter()
    return world, a, b


def completing() -> tuple[World, Member, Member]:
    """The leader has yet to assign."""
    world = World()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    return world, a, b


def stable() -> tuple[World, Member, Member]:
    """Both have their assignment."""
    world, a, b = completing()
    a.sync()
    b.sync()
    return world, a, b


SCENES = {
    None: missing,
    EMPTY: empty,
    PREPARING: preparing,
    COMPLETING: completing,
    STABLE: stable,
}
NO, PARKED = ErrorCode.NONE, "parked"
UNKNOWN, OLD, AGAIN = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS
NO_GROUP, TAKE_ID = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.MEMBER_ID_REQUIRED

# What the leader a, the follower b or a stranger asks → the answer in: no group, Empty, Preparing, Completing, Stable.
TABLE: dict[str, tuple[Callable[[World, Member, Member], Asked], tuple[object, ...]]] = {
    "heartbeat": (lambda w, a, b: b.heartbeat(), (UNKNOWN, UNKNOWN, AGAIN, NO, NO)),
    "heartbeat of an old generation": (
        lambda w, a, b: b.heartbeat(generation=0),
        (UNKNOWN, UNKNOWN, OLD, OLD, OLD),
    ),
    "sync of the leader": (lambda w, a, b: a.sync(), (UNKNOWN, UNKNOWN, AGAIN, NO, NO)),
    "sync of a follower": (lambda w, a, b: b.sync(), (UNKNOWN, UNKNOWN, AGAIN, PARKED, NO)),
    "sync of an old generation": (lambda w, a, b: b.sync(generation=0), (UNKNOWN, UNKNOWN, OLD, OLD, OLD)),
    "rejoin of the leader": (lambda w, a, b: a.join(), (UNKNOWN, UNKNOWN, PARKED, NO, PARKED)),
    "rejoin of a follower": (lambda w, a, b: b.join(), (UNKNOWN, UNKNOWN, PARKED, NO, NO)),
    "rejoin with new metadata": (
        lambda w, a, b: b.join(protocols={"range": subscription("u")}),
        (UNKNOWN, UNKNOWN, PARKED, PARKED, PARKED),
    ),
    "join of a newcomer": (lambda w, a, b: w.member("z").join(), (TAKE_ID,) * 5),
    "join of an old newcomer": (lambda w, a, b: w.member("z").join(version=3), (PARKED,) * 5),
    "join of a static newcomer": (lambda w, a, b: w.member("z", instance="z").join(), (PARKED,) * 5),
    "join of a stranger": (lambda w, a, b: w.member("z").join(member_id="z-9"), (UNKNOWN,) * 5),
    "leave": (lambda w, a, b: b.leave(version=2), (UNKNOWN, UNKNOWN, NO, NO, NO)),
    "commit": (lambda w, a, b: b.commit(), (NO_GROUP, UNKNOWN, NO, AGAIN, NO)),
    "commit of version 8": (lambda w, a, b: b.commit(version=8), (OLD, UNKNOWN, NO, AGAIN, NO)),
    "commit of an old generation": (lambda w, a, b: b.commit(generation=0), (NO_GROUP, UNKNOWN, OLD, OLD, OLD)),
    "commit of a stranger": (lambda w, a, b: w.commit(generation=1, member_id="z"), (NO_GROUP,) + (UNKNOWN,) * 4),
    "commit from outside": (lambda w, a, b: w.commit(), (NO, NO, UNKNOWN, UNKNOWN, UNKNOWN)),
    "commit of a member without generation": (lambda w, a, b: b.commit(generation=-1), (NO, NO, OLD, OLD, OLD)),
    "commit of a stranger without generation": (
        lambda w, a, b: w.commit(member_id="z"),
        (NO, NO, UNKNOWN, UNKNOWN, UNKNOWN),
    ),
    "deletion": (lambda w, a, b: w.delete_groups(), (NO_GROUP, NO) + (ErrorCode.NON_EMPTY_GROUP,) * 3),
}


def outcome(asked: Asked) -> object:
    """The one error of whatever was asked."""
    if asked.parked:
        return PARKED
    answer = asked.answer
    if hasattr(answer, "results"):
        return answer.results[0].error_code
    if hasattr(answer, "topics"):
        return answer.topics[0].partitions[0].error_code
    return answer.error_code


@pytest.mark.untraced
@pytest.mark.parametrize(("state", "what"), [(state, what) for what in TABLE for state in SCENES], ids=str)
def test_each_request_in_each_state(state: GroupState | None, what: str) -> None:
    world, a, b = SCENES[state]()
    assert (world.group.state if world.exists else None) is state
    ask, answers = TABLE[what]
    expected = answers[list(SCENES).index(state)]
    assert outcome(ask(world, a, b)) == expected


def test_a_group_goes_through_all_states_and_says_so() -> None:
    world, _, _ = empty()
    moves = [(change.origin, change.target) for change in world.seen(StateChanged)]
    assert moves == [
        (EMPTY, PREPARING),
        (PREPARING, COMPLETING),
        (COMPLETING, STABLE),
        (STABLE, PREPARING),
        (PREPARING, EMPTY),
    ]


def test_the_last_member_of_a_stable_group_leaves_it_empty_at_once() -> None:
    world = World()
    (a,) = world.stable("a")
    a.leave()
    assert world.group.state == "Empty"
    assert world.now_ms == INITIAL_DELAY_MS
