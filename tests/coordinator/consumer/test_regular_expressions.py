"""Subscriptions by RE2 expression: when they are resolved, what they match, what Kafka says of those that are none."""

import pytest
import re2

from groupcoord.coordinator.consumer.regular_expressions import MIN_INTERVAL_MS, matching, require_valid
from groupcoord.coordinator.events import GroupEpochBumped, RegexResolved, SubscriptionChanged
from groupcoord.core import re2_expressions
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import Consumer, ConsumerWorld, settle

REFRESH_MS = 600_000


@pytest.mark.parametrize(
    ("regex", "says"),
    [
        ("(", "missing closing )"),
        ("[a", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("*", "missing argument to repetition operator"),
        ("(?P<a", "invalid named capture"),
        ("(?<=a)", "invalid named capture"),
        ("(?!a)", "invalid or unsupported Perl syntax"),
        (")", "regexp/syntax: internal error"),
        ("\\", "trailing backslash at end of expression"),
        ("[b-a]", "invalid character class range"),
    ],
)
def test_expressions_that_are_none(regex: str, says: str) -> None:
    with pytest.raises(ApiError) as caught:
        require_valid(regex)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert caught.value.message == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {says}."
    assert matching(regex, ["a"]) == frozenset()


def test_a_topic_matches_as_a_whole() -> None:
    names = ["orders", "orders-eu", "my-orders"]
    assert matching("orders", names) == {"orders"}
    assert matching("orders.*", names) == {"orders", "orders-eu"}
    assert matching("nothing", names) == frozenset()


def test_what_the_library_says_as_text_or_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, said in enumerate((b"missing ): (", "missing ): (")):

        def refuse(*_: object, said: object = said) -> None:
            raise re2.error(said)

        monkeypatch.setattr(re2, "compile", refuse)
        regex = f"({number}"
        with pytest.raises(ApiError, match="missing closing"):
            require_valid(regex)
    re2_expressions.compiled.cache_clear()


def test_joining_by_an_expression() -> None:
    """The answer comes first, without anything; the expression is resolved after it, and the next heartbeat brings all."""
    w = ConsumerWorld(topics={"t-1": 1, "t-2": 1, "u": 1})
    a = w.consumer(regex="t-.*")
    a.join()
    assert (a.epoch, a.assigned) == (1, {})
    assert w.last() == "member:a current:a"
    w.advance(0)
    assert w.last() == "regex group"
    (resolved,) = w.seen(RegexResolved)
    assert (resolved.regex, resolved.topics) == ("t-.*", ("t-1", "t-2"))
    assert w.seen(GroupEpochBumped)[-1].reason == "regular expressions match other topics than before"
    a.heartbeat()
    assert (a.epoch, a.assigned) == (2, {"t-1": [0], "t-2": [0]})
    assert w.described().members[0].subscribed_topic_regex == "t-.*"
    assert w.consumers.is_subscribed_to("t-1")
    assert not w.consumers.is_subscribed_to("u")


def test_names_and_an_expression_at_once() -> None:
    w = ConsumerWorld(topics={"t-1": 1, "u": 1})
    a = w.consumer("a", "u", regex="t-.*")
    a.join()
    w.advance(0)
    settle([a])
    assert a.assigned == {"t-1": [0], "u": [0]}


def one_consumer() -> tuple[ConsumerWorld, Consumer]:
    """It has resolved its expression."""
    w = ConsumerWorld(topics={"t-1": 2, "u": 1})
    a = w.consumer("a", regex="t-.*")
    a.join()
    w.advance(0)
    settle([a])
    return w, a


def test_an_expression_that_others_have_is_resolved_already() -> None:
    w, _ = one_consumer()
    b = w.consumer("b", regex="t-.*")
    before = len(w.batches)
    b.join()
    assert w.written(before) == ["member:b group target:a target:b assigned current:b"]
    w.advance(0)
    assert len(w.batches) == before + 1
    assert len(w.described().members) == 2


def test_the_last_one_takes_the_expression_away() -> None:
    """Whether it leaves or asks for something else."""
    w, a = one_consumer()
    b = w.consumer("b", regex="t-.*")
    b.join()
    b.leave()
    assert "-regex" not in w.last()
    a.leave()
    assert w.last() == "-current:a -target:a -member:a -regex group"
    assert w.consumers.epochs.metadata_hash == 0


def test_leaving_before_the_expression_was_resolved() -> None:
    w = ConsumerWorld()
    a = w.consumer(regex="t")
    a.join()
    a.leave()
    assert w.last() == "-current:a -target:a -member:a -regex group"
    w.advance(0)
    assert w.last() == "-current:a -target:a -member:a -regex group"


@pytest.mark.parametrize("resolved", [True, False])
def test_another_expression(resolved: bool) -> None:
    w = ConsumerWorld()
    a = w.consumer(regex="t")
    a.join()
    if resolved:
        w.advance(0)
        settle([a])
    w.advance(MIN_INTERVAL_MS + 1)
    before = len(w.batches)
    a.heartbeat(subscribed_topic_regex="u")
    assert w.written(before)[0].startswith("member:a -regex")
    assert w.seen(SubscriptionChanged)[-1].regex == "u"
    w.advance(0)
    assert w.last() == "regex group"
    settle([a])
    assert a.assigned == {"u": [0, 1, 2]}


def test_no_expression_any_more() -> None:
    w = ConsumerWorld()
    a, b = w.consumer("a", regex="t"), w.consumer("b", "u")
    a.join()
    b.join()
    w.advance(0)
    settle([a, b])
    a.heartbeat(subscribed_topic_regex="", subscribed_topic_names=("u",))
    assert w.batches[-1][1].value is None
    settle([a, b])
    assert a.assigned.keys() == b.assigned.keys() == {"u"}
    assert not w.consumers.regexes


def test_an_expression_that_others_have_and_nobody_has_resolved_yet() -> None:
    w = ConsumerWorld()
    a, b = w.consumer("a", regex="t"), w.consumer("b", regex="t")
    a.join()
    b.join()
    assert (b.epoch, w.last()) == (1, "member:b current:b")
    w.advance(0)
    settle([a, b])
    assert sorted([*a.assigned["t"], *b.assigned["t"]]) == [0, 1, 2]


def test_other_topics_and_another_expression_before_the_old_one_was_resolved() -> None:
    w = ConsumerWorld()
    a = w.consumer(regex="t")
    a.join()
    a.heartbeat(subscribed_topic_regex="u", subscribed_topic_names=("t",))
    assert w.last().startswith("member:a -regex group")
    w.advance(0)
    settle([a])
    assert a.assigned == {"t": [0, 1, 2]}
    w.advance(MIN_INTERVAL_MS + 1)
    a.heartbeat()
    w.advance(0)
    settle([a])
    assert a.assigned == {"t": [0, 1, 2], "u": [0, 1, 2]}


def test_an_expression_that_two_have_and_one_gives_up() -> None:
    w, _ = one_consumer()
    b = w.consumer("b", regex="t-.*")
    b.join()
    b.heartbeat(subscribed_topic_regex="")
    assert "-regex" not in w.last()
    assert w.last().startswith("member:b group")


def test_a_new_topic_is_found_when_ten_seconds_are_over() -> None:
    w, a = one_consumer()
    w.topics.create("t-2", 1)
    before = len(w.batches)
    w.advance(MIN_INTERVAL_MS)
    a.heartbeat()
    w.advance(0)
    assert len(w.batches) == before
    w.advance(1)
    a.heartbeat()
    w.advance(0)
    assert w.written(before) == ["regex group"]
    settle([a])
    assert a.assigned == {"t-1": [0, 1], "t-2": [0]}


def test_a_new_topic_that_nobody_wants() -> None:
    """The expression is written down again; the epoch stays."""
    w, a = one_consumer()
    w.topics.create("v", 1)
    w.advance(MIN_INTERVAL_MS + 1)
    a.heartbeat()
    w.advance(0)
    assert w.last() == "regex"


def test_expressions_are_resolved_again_after_ten_minutes() -> None:
    w = ConsumerWorld(topics={"t-1": 1}, group_consumer_session_timeout_ms=2_000_000)
    a = w.consumer(regex="t-.*")
    a.join()
    w.advance(0)
    settle([a])
    before = len(w.batches)
    w.advance(REFRESH_MS)
    a.heartbeat()
    w.advance(0)
    assert len(w.batches) == before
    w.advance(1)
    a.heartbeat()
    w.advance(0)
    assert w.written(before) == ["regex"]


def test_two_newcomers_in_one_moment_are_resolved_at_once() -> None:
    w = ConsumerWorld(topics={"t": 1, "u": 1})
    a, b = w.consumer("a", regex="t"), w.consumer("b", regex="u")
    a.join()
    b.join()
    w.advance(0)
    assert w.last() == "regex group"  # Kafka, too, resolves what there was when it began
    w.advance(MIN_INTERVAL_MS + 1)
    a.heartbeat()
    w.advance(0)
    settle([a, b])
    assert (a.assigned, b.assigned) == ({"t": [0]}, {"u": [0]})


def test_a_group_that_is_gone_when_its_expression_is_resolved() -> None:
    w = ConsumerWorld()
    a = w.consumer(regex="t")
    a.join()
    a.leave()
    w.delete_groups()
    before = len(w.batches)
    w.advance(0)
    assert len(w.batches) == before


def test_a_topic_of_an_expression_that_grows() -> None:
    w, a = one_consumer()
    w.topics.grow("t-1", 3)
    settle([a])
    assert a.assigned == {"t-1": [0, 1, 2]}


def test_topics_of_an_expression_that_was_replaced_and_those_of_others_change_nothing() -> None:
    """Until the new expression is resolved, the group has the epoch and the hash that it had with the old one."""
    w = ConsumerWorld(topics={"t-1": 2, "u": 1})
    a, b = w.consumer("a", "u"), w.consumer("b", regex="t-.*")
    a.join()
    b.join()
    w.advance(0)
    settle([a, b])
    b.heartbeat(subscribed_topic_regex="v.*")
    epoch = w.described().group_epoch
    w.topics.create("other", 1)
    a.heartbeat()
    assert w.described().group_epoch == epoch
    w.topics.delete("t-1")
    a.heartbeat()
    a.heartbeat()
    assert w.described().group_epoch == epoch
    w.topics.delete("u")
    a.heartbeat()
    assert w.described().group_epoch == epoch + 1


def test_a_newcomer_with_an_unresolved_expression_leaves_nothing_to_others() -> None:
    """As in Kafka, which still takes the subscriptions of all for equal; topics without subscribers do not change that."""
    w = ConsumerWorld(topics={"t": 2, "u": 1})
    a, b = w.consumer("a", "u"), w.consumer("b", "t")
    b.join()
    a.join()
    a.leave()
    w.topics.delete("u")
    w.consumer("a", regex="v.*").join()
    members = {each.member_id: each for each in w.described().members}
    assert members["b"].target_assignment.topic_partitions == ()


def test_after_a_resolved_expression_a_newcomer_leaves_others_what_they_have() -> None:
    """Kafka looks again whether all subscriptions are equal when a member changes, not when its expression goes."""
    w = ConsumerWorld(topics={"t": 2, "u": 1})
    a, b = w.consumer("a", regex="u.*"), w.consumer("b", "t")
    a.join()
    w.advance(0)
    b.join()
    a.heartbeat()
    a.leave()
    w.consumer("a", regex="v.*").join()
    members = {each.member_id: each for each in w.described().members}
    assert w.named(members["b"].target_assignment.topic_partitions) == {"t": [0, 1]}
