import asyncio

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetCommitRequest
from groupcoord.testing.faults import ActiveRule, FaultRulesFailed, Rulebook, when
from groupcoord.testing.faults.matching import RequestContext
from groupcoord.testing.faults.rulebook import MAX_NEAR_MISSES
from tests.testing.faults.support import (
    ApiVersions,
    Heartbeat,
    JoinGroup,
    OffsetCommit,
    Produce,
    World,
    heartbeat,
    join,
    produce,
)


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(World().heartbeat().call, heartbeat(), 0)


def test_the_first_that_matches_is_taken(context: RequestContext) -> None:
    book = Rulebook()
    other = book.add(when(JoinGroup).drop())
    first, second = (book.add(when(Heartbeat).drop()) for _ in range(2))
    assert (book.match(context), book.match(context), book.match(context)) == (first, second, None)
    assert other.matches == 0
    assert repr(book) == "<Rulebook 3 rules>"


def test_rules_are_counted_or_named() -> None:
    book = Rulebook()
    names = [book.add(when(Heartbeat).drop(), name).name for name in (None, "mine", None)]
    assert names == ["rule 1", "mine", "rule 3"]


def test_at_the_end_all_that_is_wrong_is_told(context: RequestContext) -> None:
    book = Rulebook()
    book.check()
    book.add(when(Heartbeat, group="x").drop(), "mine")
    book.add(when(JoinGroup).drop())
    book.add(when(JoinGroup).drop().optional())
    book.match(context)
    assert [text.splitlines()[0] for text in book.unused()] == [
        "mine never acted: when(Heartbeat, group='x').drop()",
        "rule 2 never acted: when(JoinGroup).drop()",
    ]
    with pytest.raises(FaultRulesFailed) as failed:
        book.check()
    assert str(failed.value) == "\n".join(["fault rules:", *book.unused()])
    assert failed.value.__cause__ is None


def test_what_a_function_raised_is_the_cause() -> None:
    book = Rulebook()
    error = ZeroDivisionError("a bug of the test")
    book.record_failure(book.add(when(Heartbeat).answer(max).optional()), error)
    with pytest.raises(
        FaultRulesFailed, match=r"rule 1: a function of .*answer\(max\).* raised ZeroDivisionError"
    ) as failed:
        book.check()
    assert failed.value.__cause__ is error


def test_a_rule_that_was_removed_need_not_have_acted() -> None:
    book = Rulebook()
    rule = book.add(when(Heartbeat).drop())
    rule.remove()
    book.check()
    assert (book.active, book.rules, rule.is_removed) == ((), (rule,), True)


def test_every_rule_says_what_it_would_do(context: RequestContext) -> None:
    book = Rulebook()
    assert book.explain(context) == f"{context}\n  there are no rules"
    used = book.add(when(Heartbeat).drop())
    assert book.match(context) is used
    used.record_use(context)
    book.add(when(Heartbeat).drop().optional()).remove()
    book.add(when(Heartbeat, group="x").drop(), "mine")
    book.add(when(Heartbeat, nth=2).refuse(ErrorCode.NOT_COORDINATOR))
    book.add(when(Heartbeat).drop())
    book.add(when().drop())
    assert book.explain(context).splitlines()[1:] == [
        "  rule 1, when(Heartbeat).drop(): no longer: it has acted 1 of 1 times",
        "  rule 2, when(Heartbeat).drop().optional(): no longer: it was removed",
        "  mine, when(Heartbeat, group='x').drop(): no: group is 'app', not 'x'",
        f"  rule 4, {when(Heartbeat, nth=2).refuse(16)}: no: it is number 1 of those that match otherwise, and nth is 2",
        "  rule 5, when(Heartbeat).drop(): yes",
        "  rule 6, when().drop(): no: rule 5 comes before",
    ]


LOST = ErrorCode.NOT_COORDINATOR


@pytest.fixture
def world() -> World:
    return World()


def beats(world: World, count: int) -> list[ErrorCode]:
    return [world.heartbeat().error for _ in range(count)]


NO = ErrorCode.UNKNOWN_MEMBER_ID  # what the node itself says


def test_once(world: World) -> None:
    rule = world.when(Heartbeat).refuse(LOST)
    assert beats(world, 3) == [LOST, NO, NO]
    assert (rule.uses, rule.matches, rule.is_used_up) == (1, 1, True)
    assert repr(rule) == "<rule 1: when(Heartbeat).refuse('NOT_COORDINATOR') used 1 times>"


def test_so_many_times(world: World) -> None:
    world.when(Heartbeat).refuse(LOST).times(2)
    assert beats(world, 3) == [LOST, LOST, NO]


def test_always(world: World) -> None:
    world.when(Heartbeat).refuse(LOST).always()
    assert beats(world, 3) == [LOST] * 3


@pytest.mark.parametrize(
    ("nth", "expected"),
    [
        (2, [NO, LOST, NO, NO]),
        ("2-3", [NO, LOST, LOST, NO]),
        ("3-", [NO, NO, LOST, LOST]),
        (range(1, 2), [LOST, NO, NO, NO]),
    ],
)
def test_the_nth(world: World, nth: int | str | range, expected: list[ErrorCode]) -> None:
    world.when(Heartbeat, nth=nth).refuse(LOST)
    assert beats(world, 4) == expected


def test_the_nth_counts_what_matches_otherwise(world: World) -> None:
    rule = world.when(Heartbeat, member="m-1", nth=2).refuse(LOST)
    assert world.heartbeat("m-2").error == NO
    assert beats(world, 2) == [NO, LOST]
    assert rule.seen == 2


def test_the_nth_counts_what_another_rule_takes(world: World) -> None:
    world.when(Heartbeat).refuse("NOT_CONTROLLER")
    world.when(Heartbeat, nth=2).refuse(LOST)
    assert beats(world, 3) == [ErrorCode.NOT_CONTROLLER, LOST, NO]


def test_the_first_that_was_installed_acts(world: World) -> None:
    world.when(Heartbeat).refuse(LOST)
    world.when(Heartbeat).refuse("NOT_CONTROLLER")
    assert beats(world, 3) == [LOST, ErrorCode.NOT_CONTROLLER, NO]


def test_a_removed_one_acts_no_more(world: World) -> None:
    world.when(Heartbeat).refuse(LOST).always().remove()
    assert beats(world, 1) == [NO]


class TestBlock:
    def test_it_acts_until_its_end(self, world: World) -> None:
        with world.when(Heartbeat).refuse(LOST) as rule:
            assert beats(world, 2) == [LOST, LOST]
        assert beats(world, 1) == [NO]
        assert rule.uses == 2

    def test_so_often_as_was_said(self, world: World) -> None:
        with world.when(Heartbeat).refuse(LOST).times(1):
            assert beats(world, 2) == [LOST, NO]

    def test_the_nth_alone(self, world: World) -> None:
        with world.when(Heartbeat, nth=2).refuse(LOST):
            assert beats(world, 3) == [NO, LOST, NO]

    def test_it_must_have_acted(self, world: World) -> None:
        with (
            pytest.raises(FaultRulesFailed, match=r"in its block, rule 1 never acted: when\(Heartbeat\)"),
            world.when(Heartbeat).refuse(LOST),
        ):
            pass
        world.faults.check()  # it has told

    def test_unless_it_is_optional(self, world: World) -> None:
        with world.when(Heartbeat).refuse(LOST).optional():
            pass

    def test_another_failure_is_not_covered_up(self, world: World) -> None:
        with pytest.raises(ZeroDivisionError), world.when(Heartbeat).refuse(LOST):
            raise ZeroDivisionError
        world.faults.check()

    def test_of_async_kind(self, world: World) -> None:
        async def story() -> None:
            async with world.when(Heartbeat).refuse(LOST) as rule:
                assert isinstance(rule, ActiveRule)
                assert beats(world, 1) == [LOST]
            with pytest.raises(FaultRulesFailed):
                async with world.when(Heartbeat).refuse(LOST):
                    pass

        asyncio.run(story())


class TestWhyUnused:
    def test_nothing_came(self, world: World) -> None:
        rule = world.when(Heartbeat).refuse(LOST)
        assert rule.why_unused() == (
            "rule 1 never acted: when(Heartbeat).refuse('NOT_COORDINATOR')\n  no Heartbeat came; what came: nothing"
        )

    def test_other_things_came(self, world: World) -> None:
        rule = world.when(JoinGroup).refuse(LOST)
        beats(world, 2)
        world.commit()
        assert str(rule.why_unused()).endswith("\n  no JoinGroup came; what came: Heartbeat (2), OffsetCommit (1)")

    def test_a_rule_about_everything(self, world: World) -> None:
        rule = world.when(nth=2).refuse(LOST)
        assert str(rule.why_unused()).endswith("\n  no request came; what came: nothing")

    def test_the_nearest_are_shown_with_what_is_different(self, world: World) -> None:
        rule = world.when(Heartbeat, group="app", member="m-9").refuse(LOST)
        world.heartbeat(group="other")
        world.heartbeat()
        world.commit()
        why = str(rule.why_unused())
        assert why == (
            "rule 1 never acted: when(Heartbeat, group='app', member='m-9').refuse('NOT_COORDINATOR')\n"
            "  the nearest of 2 requests:\n"
            "    Heartbeat v4 from 'c' at 0 ms, broker 1: "
            "HeartbeatRequest(group_id='app', generation_id=1, member_id='m-1')\n"
            "      member is 'm-1', not 'm-9'\n"
            "    Heartbeat v4 from 'c' at 0 ms, broker 1: "
            "HeartbeatRequest(group_id='other', generation_id=1, member_id='m-1')\n"
            "      group is 'other', not 'app'\n"
            "      member is 'm-1', not 'm-9'"
        )

    def test_only_a_few_are_shown(self, world: World) -> None:
        rule = world.when(Heartbeat, group="x", member="y").refuse(LOST)
        beats(world, MAX_NEAR_MISSES + 2)
        assert f"the nearest of {MAX_NEAR_MISSES + 2} requests" in str(rule.why_unused())
        assert str(rule.why_unused()).count("HeartbeatRequest") == MAX_NEAR_MISSES
        world.heartbeat("y")
        assert "\n      group is 'app', not 'x'\n    Heartbeat" in str(rule.why_unused())
        assert str(rule.why_unused()).count("HeartbeatRequest") == MAX_NEAR_MISSES

    def test_the_nth_did_not_come(self, world: World) -> None:
        rule = world.when(Heartbeat, nth=3).refuse(LOST)
        beats(world, 1)
        assert str(rule.why_unused()).endswith(
            "\n  the nearest request:\n"
            "    Heartbeat v4 from 'c' at 0 ms, broker 1: "
            "HeartbeatRequest(group_id='app', generation_id=1, member_id='m-1')\n"
            "      it is number 1 of those that match otherwise, and nth is 3"
        )

    def test_another_rule_took_it(self, world: World) -> None:
        world.when(Heartbeat).refuse(LOST)
        rule = world.when(Heartbeat).refuse(LOST)
        beats(world, 1)
        assert str(rule.why_unused()).endswith("      rule 1, installed before, took it")

    def test_where_says_no(self, world: World) -> None:
        rule = world.when(Heartbeat, where=lambda request: request.generation_id == 9).refuse(LOST)
        beats(world, 1)
        assert str(rule.why_unused()).endswith("      where says no")
        assert world.heartbeat(generation=9).error == LOST
        assert rule.why_unused() is None

    def test_where_cannot_be_asked_of_what_was_not_understood(self, world: World) -> None:
        rule = world.when(ApiVersions, where=lambda request: bool(request.client_software_name)).drop()
        world.ask(ApiVersions, None, version=4)
        assert str(rule.why_unused()).endswith("      it was not understood, so where cannot be asked")
        assert world.faults.book.failures == []

    def test_where_fails(self, world: World) -> None:
        rule = world.when(Heartbeat, where=lambda request: 1 / 0).refuse(LOST)
        assert beats(world, 1) == [NO]
        assert str(rule.why_unused()).endswith("      where raises ZeroDivisionError('division by zero')")
        with pytest.raises(FaultRulesFailed, match=r"a function of .* raised ZeroDivisionError"):
            world.faults.check()

    def test_the_answer_has_not_come(self, world: World) -> None:
        rule = world.when(JoinGroup, member="").drop_answer()
        world.ask(JoinGroup, join(instance="one"))
        assert str(rule.why_unused()).startswith("rule 1 never acted: when(JoinGroup, member='').drop_answer()\n")
        assert "\n  it waits for the answer to\n    JoinGroup v9 from 'c' at 0 ms" in str(rule.why_unused())
        world.advance(5_000)
        assert rule.why_unused() is None

    def test_a_produce_that_wants_no_answer(self, world: World) -> None:
        rule = world.when(Produce).drop_answer()
        world.ask(Produce, produce(0))
        assert str(rule.why_unused()).endswith("      a Produce with acks=0 gets no answer")

    def test_there_is_no_place_for_an_error(self, world: World) -> None:
        rule = world.when(OffsetCommit).refuse(LOST)
        world.ask(OffsetCommit, OffsetCommitRequest(group_id="app", member_id=""), version=9)
        assert str(rule.why_unused()).endswith("      its answer has no place for an error at version 9")

    def test_an_optional_rule_need_not_act(self, world: World) -> None:
        assert world.when(Heartbeat).refuse(LOST).optional().why_unused() is None


def test_what_it_took_can_be_given_back() -> None:
    rule = Rulebook().add(when(Heartbeat).drop())
    context = RequestContext(World().heartbeat().call, heartbeat(), 0)
    rule.record_match(context)
    before = rule.is_used_up
    rule.unmatch(context, "there was nothing to do")
    assert (before, rule.is_used_up) == (True, False)
    assert str(rule.why_unused()).endswith("      there was nothing to do")
