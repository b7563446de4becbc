"""Histories of one group, played with assignors: what each row says."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.assignors import (
    Assignment,
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    Registry,
    Subscription,
    TopicPartition,
)
from groupcoord.assignors.group_simulator import GroupSimulator
from groupcoord.pipeline.assignor_replay.assignor_choice import RECORDED_HISTORY
from tests.pipeline.what_if import columns, person, play, record, topic

COSTS = ("generation", "partitions_total", "moved", "kept", "moved_needlessly", "imbalance", "pauses", "rebalances")
T4 = topic("t", 4)

JOIN_AND_LEAVE = (
    T4,
    record(1, 1, person("a", {"t": [0, 1, 2, 3]})),
    record(2, 2, person("a", {"t": [0, 1]}), person("b", {"t": [2, 3]})),
    record(3, 3, person("b", {"t": [0, 1, 2, 3]})),
)


def test_a_row_says_where_it_is_from() -> None:
    [row] = play("range", T4, record(7, 3, person("a", {"t": [0, 1, 2, 3]})))
    assert row == {
        "log_partition": 0,
        "log_offset": 7,
        "group": "g",
        "generation": 3,
        "at": 7,
        "assignor": "range",
        "members": 1,
        "partitions_total": 4,
        "moved": 0,
        "kept": 0,
        "moved_needlessly": 0,
        "imbalance": 0,
        "pauses": 0,
        "rebalances": 1,
        "paused_partition_seconds": 0.0,
        "agrees": True,
        "problem": None,
    }


@pytest.mark.parametrize("assignor", [RECORDED_HISTORY, "range", "sticky"])
def test_eager_members_stop_reading_everything(assignor: str) -> None:
    found = play(assignor, *JOIN_AND_LEAVE)
    assert columns(found, *COSTS) == [(1, 4, 0, 0, 0, 0, 0, 1), (2, 4, 2, 2, 0, 0, 4, 1), (3, 4, 2, 2, 0, 0, 4, 1)]
    assert columns(found, "paused_partition_seconds") == [(0.0,), (0.4,), (0.4,)]


def test_cooperative_members_stop_reading_what_moves_and_need_two_steps_for_what_is_somebodys() -> None:
    found = play("cooperative-sticky", *JOIN_AND_LEAVE)
    assert columns(found, *COSTS) == [(1, 4, 0, 0, 0, 0, 0, 1), (2, 4, 2, 2, 0, 0, 2, 2), (3, 4, 2, 2, 0, 0, 2, 1)]
    assert columns(found, "paused_partition_seconds", "agrees") == [(0.0, None), (0.2, None), (0.2, None)]


def test_roundrobin_moves_what_need_not_move() -> None:
    """As in the docs of assignors: four topics of two partitions, and the second of three members leaves."""
    topics = ["t0", "t1", "t2", "t3"]
    everybody = [person(name, topics=topics) for name in ("C0", "C1", "C2")]
    history = [*(topic(name, 2) for name in topics), record(1, 1, *everybody), record(2, 2, everybody[0], everybody[2])]
    assert columns(play("roundrobin", *history), *COSTS)[1] == (2, 8, 5, 3, 2, 0, 8, 1)
    assert columns(play("sticky", *history), *COSTS)[1] == (2, 8, 3, 5, 0, 0, 8, 1)
    assert columns(play("cooperative-sticky", *history), *COSTS)[1] == (2, 8, 3, 5, 0, 0, 3, 1)


TWO_STEPS = (
    T4,
    record(1, 1, person("a", {"t": [0, 1, 2, 3]}), protocol="cooperative-sticky"),
    record(
        2,
        2,
        person("a", {"t": [0, 1]}, owned={"t": [0, 1, 2, 3]}),
        person("b", {}),
        protocol="cooperative-sticky",
        goes_on=False,
    ),
    record(
        3,
        3,
        person("a", {"t": [0, 1]}, owned={"t": [0, 1]}),
        person("b", {"t": [2, 3]}),
        protocol="cooperative-sticky",
        follows=True,
    ),
    record(4, 4, person("a", {"t": [0, 1, 2, 3]}, owned={"t": [0, 1]}), protocol="cooperative-sticky"),
)


@pytest.mark.parametrize("assignor", [RECORDED_HISTORY, "cooperative-sticky"])
def test_two_steps_of_a_cooperative_rebalance_are_one_row(assignor: str) -> None:
    assert columns(play(assignor, *TWO_STEPS), *COSTS) == [
        (1, 4, 0, 0, 0, 0, 0, 1),
        (2, 4, 2, 2, 0, 0, 2, 2),
        (4, 4, 2, 2, 0, 0, 2, 1),
    ]


def test_what_only_a_cooperative_group_needs_an_eager_one_does_not_do() -> None:
    assert columns(play("range", *TWO_STEPS), *COSTS) == [
        (1, 4, 0, 0, 0, 0, 0, 1),
        (2, 4, 2, 2, 0, 0, 4, 1),
        (4, 4, 2, 2, 0, 0, 4, 1),
    ]


def test_the_assignor_that_was_used_agrees_with_what_was() -> None:
    assert columns(play("cooperative-sticky", *TWO_STEPS), "agrees") == [(True,), (True,), (True,)]
    assert columns(play("range", *TWO_STEPS), "agrees") == [(None,), (None,), (None,)]
    other = [T4, record(1, 1, person("a", {"t": [2, 3]}), person("b", {"t": [0, 1]}))]
    assert columns(play("range", *other), "agrees") == [(False,)]


def test_a_second_step_that_others_joined_is_left_to_the_next_row() -> None:
    """c comes before a and b have joined again: the real group never had the second step alone, and neither has this one."""
    history = (
        topic("t", 6),
        record(1, 1, person("a", {"t": [0, 1, 2, 3, 4, 5]}), protocol="cooperative-sticky"),
        record(
            2,
            2,
            person("a", {"t": [0, 1, 2]}, owned={"t": [0, 1, 2, 3, 4, 5]}),
            person("b", {}),
            protocol="cooperative-sticky",
            goes_on=True,
        ),
        record(
            3,
            3,
            person("a", {"t": [0, 1]}, owned={"t": [0, 1, 2]}),
            person("b", {"t": [3, 5]}),
            person("c", {"t": [4]}),
            protocol="cooperative-sticky",
        ),
    )
    found = play("cooperative-sticky", *history)
    assert columns(found, *COSTS)[1] == (2, 3, 0, 3, 0, 3, 3, 1)
    assert columns(found, "generation", "partitions_total", "pauses", "rebalances")[2] == (3, 6, 1, 2)
    real = play(RECORDED_HISTORY, *history)
    assert columns(real, *COSTS)[1:] == [(2, 3, 0, 3, 0, 3, 3, 1), (3, 5, 3, 2, 0, 1, 1, 1)]


def test_members_of_kip_848_keep_what_they_are_not_told_to_give_up() -> None:
    modern: dict[str, Any] = {"modern": True, "protocol": "uniform", "took": None}
    found = play(
        RECORDED_HISTORY,
        T4,
        record(1, 2, person("a", {"t": [0, 1, 2, 3]}), **modern),
        record(2, 3, person("a", {"t": [0, 1]}), person("b", {"t": [2, 3]}), **modern),
        record(3, None),
        record(4, 2, person("b", {"t": [0, 1, 2, 3]}), **modern),
    )
    assert columns(found, *COSTS) == [(2, 4, 0, 0, 0, 0, 0, 1), (3, 4, 2, 2, 0, 0, 2, 1), (2, 4, 2, 2, 0, 0, 0, 1)]
    assert columns(found, "paused_partition_seconds") == [(None,), (None,), (None,)]


def test_when_everybody_has_left_nothing_stops_but_what_comes_after_has_moved() -> None:
    history = (
        T4,
        record(1, 1, person("a", {"t": [0, 1, 2, 3]})),
        record(2, 2),
        record(3, None),
        record(4, 1, person("b", {"t": [0, 1, 2, 3]})),
    )
    for assignor in (RECORDED_HISTORY, "sticky", "cooperative-sticky"):
        assert columns(play(assignor, *history), *COSTS) == [(1, 4, 0, 0, 0, 0, 0, 1), (1, 4, 4, 0, 0, 0, 0, 1)]


def test_topics_have_the_partitions_that_they_had_then() -> None:
    history = (
        topic("t", 2, since=2),
        topic("t", 5, since=4),
        topic("u", 1, since=3),
        *(record(offset, offset, person("a", topics=["t", "u", "v"])) for offset in (1, 2, 3, 4)),
    )
    assert columns(play("range", *history), "partitions_total") == [(0,), (2,), (3,), (6,)]
    timeless = record(1, 1, person("a", topics=["t", "u", "v"])) | {"at": None}
    assert columns(play("range", *history[:3], timeless), "partitions_total") == [(6,)]


def test_what_nobody_wants_any_more_does_not_pause() -> None:
    history = (
        T4,
        topic("u", 2),
        record(1, 1, person("a", {"t": [0, 1, 2, 3], "u": [0, 1]}, topics=["t", "u"])),
        record(2, 2, person("a", {"u": [0, 1]}, topics=["u"])),
    )
    for assignor in (RECORDED_HISTORY, "range"):
        assert columns(play(assignor, *history), *COSTS)[1] == (2, 2, 0, 2, 0, 0, 2, 1)
    assert columns(play("cooperative-sticky", *history), *COSTS)[1] == (2, 2, 0, 2, 0, 0, 0, 1)


class Spy(Assignor):
    """Gives everything to who comes first, fails when told, and remembers what members say; cooperative."""

    name = "spy"
    protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    seen: list[dict[str, Subscription]]

    def assign(self, group: GroupSubscription) -> Assignment:
        type(self).seen.append(dict(group.subscriptions))
        if "bad" in group.subscriptions:
            raise ValueError("user data of bad: 3 bytes are not a capacity")
        first = next(iter(group.subscriptions))
        owners = {
            partition: member_id for member_id, one in group.subscriptions.items() for partition in one.owned_partitions
        }
        answer: Assignment = {member_id: [] for member_id in group.subscriptions}
        for name, count in group.partitions.items():
            for number in range(count):
                answer[owners.get((name, number), first)].append((name, number))
        return answer


class EagerSpy(Spy):
    name = "eager-spy"
    protocols = (RebalanceProtocol.EAGER,)


def spies() -> Registry:
    Spy.seen, EagerSpy.seen = [], []
    found = Registry(list)
    found.register("spy", Spy)
    found.register("eager-spy", EagerSpy)
    return found


ALL: list[TopicPartition] = [("t", 0), ("t", 1), ("t", 2), ("t", 3)]


def owned(seen: list[dict[str, Subscription]]) -> list[dict[str, tuple[Any, Any]]]:
    return [
        {member_id: (list(one.owned_partitions), one.generation_id) for member_id, one in asked.items()}
        for asked in seen
    ]


def test_a_static_member_that_comes_back_without_a_rebalance_has_what_it_had() -> None:
    play(
        "spy",
        T4,
        record(1, 1, person("a-1", instance="A", rack="r1"), person("b")),
        record(2, 1, person("a-2", instance="A"), person("b"), begins=False),
        record(3, 2, person("a-2", instance="A"), person("b")),
        record(4, 3, person("a-3", instance="A"), person("b")),
        registry=spies(),
    )
    assert owned(Spy.seen) == [
        {"a-1": ([], None), "b": ([], None)},
        {"a-2": (ALL, 1), "b": ([], 1)},
        {"a-3": ([], None), "b": ([], 2)},
    ]
    assert [(one.instance_id, one.rack_id) for one in Spy.seen[0].values()] == [("A", "r1"), (None, None)]


def test_who_restarts_and_joins_a_new_generation_had_stopped_what_it_had() -> None:
    after = person("a-2", instance="A")
    begun = (T4, record(1, 1, person("a-1", instance="A"), person("b")))
    rebalanced = record(3, 2, after, person("b"), person("c"), person("d"))
    returned = (*begun, record(2, 1, after, person("b"), begins=False), rebalanced)
    restarted = (*begun, rebalanced)
    assert columns(play("cooperative-sticky", *returned), *COSTS)[1] == (2, 4, 2, 2, 0, 0, 2, 2)
    assert columns(play("cooperative-sticky", *restarted), *COSTS)[1] == (2, 4, 2, 2, 0, 0, 3, 2)
    assert columns(play("sticky", *returned), *COSTS)[1] == (2, 4, 2, 2, 0, 0, 4, 1)


def test_an_assignor_that_fails_is_a_problem_and_the_history_goes_on() -> None:
    history = (
        T4,
        record(1, 1, person("a")),
        record(2, 2, person("a"), person("bad")),
        record(3, 3, person("a"), person("b")),
    )
    problem = "assignor eager-spy: raised ValueError: user data of bad: 3 bytes are not a capacity"
    found = play("eager-spy", *history, registry=spies())
    assert columns(found, *COSTS, "members", "problem") == [
        (1, 4, 0, 0, 0, 0, 0, 1, 1, None),
        (2, None, None, None, None, None, None, None, 2, problem),
        (3, 4, 0, 4, 0, 4, 0, 1, 2, None),  # eager members had given up everything before it failed
    ]
    cooperative = play("spy", *history, registry=spies())
    assert columns(cooperative, "pauses", "kept") == [(0, 0), (None, None), (0, 4)]


def test_an_answer_that_no_group_can_live_with_is_a_problem() -> None:
    registry = Registry(list)
    registry.register("careless", lambda group: {member_id: [("t", 9)] for member_id in group.subscriptions})
    [row] = play("careless", T4, record(1, 1, person("a"), person("b")), registry=registry)
    assert row["problem"].startswith("assignor careless: gives a t-9, which does not exist; ")
    long = Registry(list)
    long.register("long", lambda group: {"x" * 5000: []})
    [row] = play("long", T4, record(1, 1, person("a")), registry=long)
    assert len(row["problem"]) <= 1000


def test_a_client_that_cannot_even_join_is_a_problem() -> None:
    registry = Registry(list)

    class Fails(EagerSpy):
        name = "fails"

        def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
            raise OSError("no capacity today")

    registry.register("fails", Fails)
    [row] = play("fails", T4, record(1, 1, person("a")), registry=registry)
    assert row["problem"] == "assignor fails: raised OSError: no capacity today"


def test_members_whose_wishes_are_not_known_cannot_be_played() -> None:
    unread = record(1, 1, person("a", topics=None), problem="subscription of a: 3 bytes")
    assert columns(play("range", T4, unread), "problem", "members") == [("subscription of a: 3 bytes", 1)]
    silent = record(1, 1, person("a", topics=None))
    assert columns(play(RECORDED_HISTORY, T4, silent), "problem") == [("what a wants is not known",)]


def test_what_was_given_and_cannot_be_read_concerns_only_the_real_history() -> None:
    history = (
        T4,
        record(1, 1, person("a", {"t": [0, 1, 2, 3]})),
        record(2, 2, person("a", None), problem="assignment of a: odd"),
        record(3, 3, person("a", None)),
        record(4, 4, person("a", {"t": [0, 1, 2, 3]})),
    )
    assert columns(play(RECORDED_HISTORY, *history), "problem", "kept", "pauses") == [
        (None, 0, 0),
        ("assignment of a: odd", None, None),
        ("what a was given is not known", None, None),
        (None, 4, 0),
    ]
    assert columns(play("range", *history), "problem", "agrees", "kept") == [
        (None, True, 0),
        (None, None, 4),
        (None, None, 4),
        (None, True, 4),
    ]


def test_a_second_step_that_cannot_be_read_is_a_problem_of_the_row() -> None:
    history = (*TWO_STEPS[:3], record(3, 3, person("a", None), person("b", {}), follows=True), TWO_STEPS[4])
    found = play(RECORDED_HISTORY, *history)
    assert columns(found, "generation", "problem", "partitions_total") == [
        (1, None, 4),
        (2, "what a was given is not known", None),
        (4, None, 4),
    ]
    assert columns(play("range", *history), "problem") == [(None,), (None,), (None,)]


def test_a_step_behind_a_rebalance_without_an_answer_changes_nothing() -> None:
    odd = record(2, 2, person("a", None), person("b", {}), protocol="cooperative-sticky")
    found = play(RECORDED_HISTORY, *TWO_STEPS[:2], odd, *TWO_STEPS[3:])
    assert columns(found, "generation", "problem") == [(1, None), (2, "what a was given is not known"), (4, None)]


def test_a_log_that_begins_with_a_second_step_or_a_return_is_played_from_there() -> None:
    second = TWO_STEPS[3]
    assert columns(play(RECORDED_HISTORY, T4, second), *COSTS) == [(3, 4, 0, 0, 0, 0, 0, 1)]
    returned = record(1, 5, person("a", {"t": [0, 1, 2, 3]}, instance="A"), begins=False)
    assert play("range", T4, returned) == []
    assert play(RECORDED_HISTORY, T4, returned) == []


def test_more_partitions_than_a_cluster_has_are_a_problem() -> None:
    [row] = play("range", T4, topic("u", 1_000_000), record(1, 1, person("a", topics=["t", "u"])))
    assert row["problem"] == "u would have 1,000,000 partitions, which cannot be"


def test_a_leader_that_is_not_there_is_the_first_member() -> None:
    nobody = record(1, 1, person("a")) | {"leader": None}
    assert columns(play("sticky", T4, nobody), "partitions_total") == [(4,)]


def test_who_gives_a_topic_up_does_not_own_it_when_it_joins() -> None:
    play(
        "spy",
        T4,
        topic("u", 1),
        record(1, 1, person("a", topics=["u", "t"])),
        record(2, 2, person("a", topics=["t"])),
        registry=spies(),
    )
    assert owned(Spy.seen)[1] == {"a": (ALL, 1)}


def test_assignors_of_members_hear_what_they_got() -> None:
    heard: list[Any] = []

    class Listening(EagerSpy):
        name = "listening"

        def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:
            heard.append((list(partitions), generation_id))

    registry = spies()
    registry.register("listening", Listening)
    play("listening", T4, record(5, 7, person("a")), record(6, 8, person("a")), registry=registry)
    assert heard == [(ALL, 1), (ALL, 2)]


MEMBERS = ("a", "b", "c", "d")
STEPS = st.lists(st.sets(st.sampled_from(MEMBERS), min_size=1), min_size=1, max_size=8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "assignor", ["range", "roundrobin", "sticky:strict=no", "cooperative-sticky", "weighted", "rendezvous"]
)
@given(steps=STEPS, counts=st.tuples(st.integers(0, 6), st.integers(1, 6)))
def test_it_is_what_a_rehearsal_of_the_group_gives(
    assignor: str, steps: list[set[str]], counts: tuple[int, int]
) -> None:
    """The same members through ``groupcoord assign``'s rehearsal, which knows nothing of logs."""
    topics = dict(zip(("t", "u"), counts, strict=True))
    rehearsal = GroupSimulator(assignor.partition(":")[0], topics)
    present: list[str] = []
    history: list[dict[str, Any]] = [topic(name, count) for name, count in topics.items()]
    expected = []
    for number, members in enumerate(steps, 1):
        for gone in [name for name in present if name not in members]:
            rehearsal.leave(gone)
        new = sorted(members.difference(present))
        for name in new:
            rehearsal.join(name)
        present = [name for name in present if name in members] + new
        outcome = rehearsal.rebalance()
        history.append(record(number, number, *(person(name, topics=["t", "u"]) for name in present)))
        expected.append((outcome.moved, outcome.spread, len(outcome.rounds), sum(topics.values())))
    found = play(assignor, *history)
    assert columns(found, "moved", "imbalance", "rebalances", "partitions_total") == expected
