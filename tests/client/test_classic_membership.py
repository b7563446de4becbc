"""The face of a member: what it takes, what it shows, and what a commit means to it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupcoord.assignors import FunctionAssignor, RebalanceProtocol
from groupcoord.client.client_errors import BrokerError, ClientError, CommitFailedError, RebalanceInProgressError
from groupcoord.client.member import actions as a
from groupcoord.client.member.classic_membership import Membership
from groupcoord.client.member.context import NO_GENERATION, Generation, MemberState
from groupcoord.client.member.member_events import JoinSent, Synced
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.protocol.apis.find_coordinator import FindCoordinatorRequest
from groupcoord.protocol.apis.join_group import JoinGroupRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.talk import BROKER, COOPERATIVE, EAGER, ME, OTHER, Talk, partitions, settled
from tests.client.world import BOTH_ASSIGNORS, World

P = partitions
NOW = Generation(1, ME, "cooperative-sticky")


def test_what_it_shows() -> None:
    talk = settled(COOPERATIVE, *P(0))
    membership = talk.membership
    assert (membership.state, membership.generation, membership.coordinator) == (MemberState.STABLE, NOW, BROKER)
    assert (membership.owned, membership.watched_topics) == (frozenset(P(0)), frozenset({"t"}))
    assert (membership.is_stable, Talk().membership.is_stable) == (True, False)
    assert membership.settings.group_id == "g"
    assert repr(membership) == "<Membership g Stable me gen=1 owns 1>"
    assert repr(Talk().membership) == "<Membership g Unjoined nobody gen=-1 owns 0>"


def test_it_says_while_a_callback_runs() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync()
    assert talk.membership.in_callback
    talk.wishes.clear()


def test_a_group_without_topics_is_none() -> None:
    with pytest.raises(ValueError, match="one topic at least"):
        Talk(topics=()).subscribes()


def test_assignors_go_together() -> None:
    def make(*assignors: FunctionAssignor) -> Membership:
        return Membership(MemberSettings(group_id="g"), assignors, chance=lambda: 0.5)

    eager = FunctionAssignor("e", lambda _: {})
    cooperative = FunctionAssignor("c", lambda _: {}, [RebalanceProtocol.COOPERATIVE])
    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        make(eager, cooperative)
    with pytest.raises(ValueError, match="two assignors have the same name"):
        make(eager, eager)
    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        make()


def test_an_answer_nobody_waits_for_is_nothing() -> None:
    talk = settled(EAGER)
    talk.hears(talk.membership.complete(999, None, 0))
    talk.hears(talk.membership.fail(999, ValueError(), 0))
    assert talk.is_quiet()


def test_an_unreachable_coordinator_is_looked_for() -> None:
    talk = settled(EAGER)
    talk.hears(talk.membership.coordinator_unreachable(OTHER, "why should I care", 0))
    assert talk.is_quiet()
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "the connection was closed", 0))
    talk.wish(a.Disconnect)
    talk.sends(FindCoordinatorRequest)
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "again", 0))
    assert talk.is_quiet()


# As what commits go out.


def test_a_member_commits_in_its_generation() -> None:
    assert settled(COOPERATIVE).membership.commits_as() == NOW


def test_who_is_in_no_group_cannot_commit() -> None:
    with pytest.raises(CommitFailedError):
        Talk().membership.commits_as()


def test_who_is_between_generations_cannot_commit_yet() -> None:
    talk = Talk()
    talk.find()
    with pytest.raises(RebalanceInProgressError):
        talk.membership.commits_as()
    talk.join()
    with pytest.raises(RebalanceInProgressError):
        talk.membership.commits_as()


# What a commit is answered.


def commit_is_answered(talk: Talk, code: E, sent: Generation = NOW) -> ClientError:
    error = talk.membership.commit_error(code, sent)
    talk.hears(talk.membership.commit_answered(code, sent, talk.now_ms))
    return error


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.REQUEST_TIMED_OUT])
def test_a_commit_tells_that_the_coordinator_is_elsewhere(code: E) -> None:
    talk = settled(COOPERATIVE, *P(0))
    commit_is_answered(talk, code)
    talk.wish(a.Disconnect)
    talk.sends(FindCoordinatorRequest)
    assert talk.is_quiet()


def test_a_commit_tells_that_the_group_rebalances() -> None:
    talk = settled(COOPERATIVE, *P(0))
    assert isinstance(commit_is_answered(talk, E.REBALANCE_IN_PROGRESS), RebalanceInProgressError)
    _, request = talk.sends(JoinGroupRequest)
    assert request.reason == "offset commit failed since group is already rebalancing"


@pytest.mark.parametrize(
    ("code", "comes_back_as"), [(E.ILLEGAL_GENERATION, ME), (E.UNKNOWN_MEMBER_ID, ""), (E.GROUP_ID_NOT_FOUND, "")]
)
def test_a_commit_tells_that_the_member_is_out(code: E, comes_back_as: str) -> None:
    talk = settled(COOPERATIVE, *P(0))
    error = commit_is_answered(talk, code)
    assert isinstance(error, CommitFailedError)
    assert str(error) == f"{code.name}: others may own the partitions by now"
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.join().member_id == comes_back_as


def test_a_commit_tells_that_the_member_was_fenced() -> None:
    talk = settled(COOPERATIVE, instance_id="i")
    error = commit_is_answered(talk, E.FENCED_INSTANCE_ID)
    assert isinstance(error, BrokerError)
    assert talk.wish(a.RaiseError).final


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_commit_for_an_earlier_generation_fails_alone(code: E) -> None:
    talk = settled(COOPERATIVE, *P(0))
    error = commit_is_answered(talk, code, NO_GENERATION)
    assert isinstance(error, CommitFailedError)
    assert talk.is_quiet()
    assert talk.membership.state is MemberState.STABLE


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_commit_for_an_earlier_generation_may_come_again_after_the_rebalance(code: E) -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.hears(talk.membership.rejoin("why not", 0))
    error = commit_is_answered(talk, code, NO_GENERATION)
    assert isinstance(error, RebalanceInProgressError)


@pytest.mark.parametrize(
    "code", [E.OFFSET_METADATA_TOO_LARGE, E.TOPIC_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED]
)
def test_other_errors_are_the_users(code: E) -> None:
    talk = settled(COOPERATIVE, *P(0))
    error = commit_is_answered(talk, code)
    assert isinstance(error, BrokerError)
    assert error.code == code
    assert talk.is_quiet()


seeds = st.integers(0, 2**32)


@pytest.mark.parametrize("assignors", [BOTH_ASSIGNORS, COOPERATIVE])
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


@pytest.mark.slow
def test_a_group_upgrades_from_eager_to_cooperative_one_by_one() -> None:
    """The second of the two documented steps: all know cooperative-sticky, and one after the other forgets range."""
    world = World(random.Random(0), partitions=6)
    for _ in range(3):
        world.joins(BOTH_ASSIGNORS)
    world.settles()
    for old in tuple(world.members):
        old.hears(old.membership.leave("an upgrade", world.now_ms))
        world.passes(100)
        world.joins(COOPERATIVE)
        world.settles()


@pytest.mark.slow
@pytest.mark.untraced  # the tests of each step reach every line
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
            world.joins(chance.choice([BOTH_ASSIGNORS, COOPERATIVE]), auto_commit=chance.random() < 0.5, **static)
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


def test_a_pattern_that_the_coordinator_resolves_is_of_the_consumer_protocol() -> None:
    talk = Talk(EAGER, topics=())
    with pytest.raises(ValueError, match="needs group_protocol=consumer"):
        talk.membership.subscribe_pattern("t.*", 0)
    assert talk.is_quiet()
