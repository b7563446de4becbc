from typing import Any

import pytest

from groupcoord.core.effects import Call
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import Api, ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.messages import HeartbeatRequest, HeartbeatResponse
from groupcoord.testing.faults import RequestMatcher, RuleProblems, TopicResolver
from groupcoord.testing.faults.matching import (
    NO_TOPICS_KNOWN,
    NumberRange,
    ProblemCollector,
    RequestContext,
    RuleProblem,
    find_api,
    suggestion,
)
from groupcoord.testing.topic_settings import is_number
from tests.protocol.error_samples import ORDERS
from tests.testing.faults.support import (
    ApiVersions,
    Fetch,
    FindCoordinator,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    Metadata,
    OffsetCommit,
    Produce,
    World,
    commit,
    heartbeat,
    join,
    leave,
    produce,
)

NOTHING: list[str] = []


def context(
    api: Api,
    request: object,
    *,
    client_id: str | None = "c",
    version: int | None = None,
    topics: TopicResolver = NO_TOPICS_KNOWN,
) -> RequestContext:
    call = Call(1, 2, api, api.max_version if version is None else version, client_id, "/127.0.0.1")
    return RequestContext(call, request, 1_000, broker=3, topics=topics)


def test_a_heartbeat_against() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, NOTHING),
        ({"api": JoinGroup}, ["it is not JoinGroup"]),
        ({"api": JoinGroup, "group": "other"}, ["it is not JoinGroup"]),
        ({"api": "Heartbeat"}, NOTHING),
        ({"api": "any"}, NOTHING),
        ({"group": "app"}, NOTHING),
        ({"group": "other"}, ["group is 'app', not 'other'"]),
        ({"member": "m-1"}, NOTHING),
        ({"member": "m-2"}, ["member is 'm-1', not 'm-2'"]),
        ({"topic": "orders"}, ["it names no topic, and not 'orders'"]),
        ({"client_id": "c"}, NOTHING),
        ({"client_id": "d"}, ["client_id is 'c', not 'd'"]),
        ({"version": "3-"}, NOTHING),
        ({"version": range(2, 4)}, ["version is 4, not 2-3"]),
        ({"broker": 3}, NOTHING),
        ({"broker": 1}, ["broker is 3, not 1"]),
        ({"nth": 7, "where": lambda _: False}, NOTHING),
        ({"group": "x", "member": "y", "broker": 3}, ["group is 'app', not 'x'", "member is 'm-1', not 'y'"]),
    ]
    for fields, reasons in cases:
        assert RequestMatcher.of(**fields).mismatches(context(Heartbeat, heartbeat())) == reasons


def test_one_of_several_values_is_enough() -> None:
    leaving = context(LeaveGroup, leave("a", "b", instance="i"))
    for member in ("a", "b", "i"):
        assert RequestMatcher.of(LeaveGroup, member=member).mismatches(leaving) == []
    assert RequestMatcher.of(LeaveGroup, member="c").mismatches(leaving) == ["member is 'a', 'b', 'i', not 'c'"]


def test_a_newcomer_has_an_empty_member_id() -> None:
    assert RequestMatcher.of(JoinGroup, member="").mismatches(context(JoinGroup, join())) == []
    assert RequestMatcher.of(JoinGroup, member="").mismatches(context(JoinGroup, join("m-1"))) == [
        "member is 'm-1', not ''"
    ]


def test_an_instance_id_is_a_member_too() -> None:
    assert RequestMatcher.of(JoinGroup, member="one").mismatches(context(JoinGroup, join(instance="one"))) == []


def test_all_topics_are_also_this_one() -> None:
    assert (
        RequestMatcher.of(Metadata, topic="orders").mismatches(context(Metadata, m.MetadataRequest(topics=None))) == []
    )
    one = m.MetadataRequest(topics=(MetadataRequestTopic(name="others"),))
    assert RequestMatcher.of(Metadata, topic="orders").mismatches(context(Metadata, one)) == [
        "topic is 'others', not 'orders'"
    ]


def test_a_client_without_id() -> None:
    anonymous = context(Heartbeat, heartbeat(), client_id=None)
    assert RequestMatcher.of(client_id="").mismatches(anonymous) == []
    assert RequestMatcher.of(client_id="c").mismatches(anonymous) == ["it names no client_id, and not 'c'"]


def test_what_no_request_can_be_like() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"api": "Hartbeat"}, ["when: there is no API 'Hartbeat'; did you mean Heartbeat?"]),
        ({"transactional_id": 1}, ["transactional_id: 1 is not text: put what is meant in quotes"]),
        (
            {"api": Heartbeat, "transactional_id": "x"},
            ["transactional_id: a request of Heartbeat names no transactional_id"],
        ),
        ({"group": 1}, ["group: 1 is not text: put what is meant in quotes"]),
        ({"broker": "1"}, ["broker: '1' is not the number of a broker"]),
        ({"broker": True}, ["broker: True is not the number of a broker"]),
        ({"where": 5}, ["where: 5 is not a function of a request"]),
        ({"gruop": "a"}, ["gruop: there is no such field; did you mean group?"]),
        ({"nth": 0}, ["nth: the first request is number 1"]),
        ({"version": "x"}, ["version: 'x' is neither a number nor a span of numbers such as '2-4' or '3-'"]),
        ({"api": Heartbeat, "version": 5}, ["version: 5 is not served; Heartbeat is at 0-4"]),
        ({"api": Heartbeat, "topic": "orders"}, ["topic: a request of Heartbeat names no topic"]),
        (
            {"api": ListGroups, "group": "a", "member": "b", "nth": "-"},
            [
                "nth: '-' is neither a number nor a span of numbers such as '2-4' or '3-'",
                "group: a request of ListGroups names no group",
                "member: a request of ListGroups names no member",
            ],
        ),
    ]
    for fields, problems in cases:
        with pytest.raises(RuleProblems) as found:
            RequestMatcher.of(**fields)
        assert list(map(str, found.value.problems)) == problems


def test_api_versions_may_come_at_a_version_of_the_future() -> None:
    assert RequestMatcher.of(ApiVersions, version=99).mismatches(context(ApiVersions, None, version=99)) == []


def test_it_is_a_value_that_says_what_makes_it() -> None:
    match = RequestMatcher.of(Heartbeat, group="app", nth=range(2, 5), version="3-", broker=1)
    assert repr(match) == "when(Heartbeat, group='app', version='3-', nth='2-4', broker=1)"
    assert (
        match
        == RequestMatcher.of("Heartbeat", group="app", nth="2-4", version="3-", broker=1)
        != RequestMatcher.of(Heartbeat)
    )
    assert repr(RequestMatcher.of()) == "when()"


def test_a_commit_names_all_three() -> None:
    committing = context(Heartbeat, heartbeat())
    assert RequestMatcher.of(group="app", member="m-1").mismatches(committing) == []
    assert (
        RequestMatcher.of(group="app", topic="orders", member="").mismatches(context(OffsetCommit, commit(), version=9))
        == []
    )


def test_what_a_request_is_about() -> None:
    beat = context(Heartbeat, heartbeat())
    assert (beat.groups, beat.members, beat.topics) == (("app",), ("m-1",), ())
    assert context(LeaveGroup, leave("a", "b", instance="i")).members == ("a", "b", "i")


def test_keys_of_transactions_are_no_groups() -> None:
    assert context(FindCoordinator, m.FindCoordinatorRequest(key_type=1, coordinator_keys=("t",))).groups == ()


def test_a_transactional_id() -> None:
    asking = context(FindCoordinator, m.FindCoordinatorRequest(key_type=1, coordinator_keys=("t",)))
    assert RequestMatcher.of(transactional_id="t").mismatches(asking) == []
    assert RequestMatcher.of(FindCoordinator, transactional_id="u").mismatches(asking) == [
        "transactional_id is 't', not 'u'"
    ]
    assert RequestMatcher.of(transactional_id="t").mismatches(context(Heartbeat, heartbeat())) == [
        "it names no transactional_id, and not 't'"
    ]


def test_all_topics() -> None:
    assert context(Metadata, m.MetadataRequest(topics=None)).topics is None


def test_a_topic_by_its_id() -> None:
    request = m.FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic_id=ORDERS),))
    assert context(Fetch, request).topics == (f"id {ORDERS}",)
    topics = TopicResolver(name_of=lambda topic_id: "orders" if topic_id == ORDERS else None)
    assert context(Fetch, request, topics=topics).topics == ("orders",)


def test_the_topics_of_a_fetch_session_are_known_to_its_node() -> None:
    world = World()
    topic_id = world.node.broker.topics.topic_id("orders")
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    opening = m.FetchRequest(
        max_wait_ms=0, min_bytes=0, session_epoch=0, topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),)
    )
    session_id = world.ask(Fetch, opening).answer.session_id
    assert session_id
    going_on = m.FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=1)
    topics = TopicResolver.of(world.node)
    assert context(Fetch, going_on, topics=topics).topics == ("orders",)
    for unknown in (session_id + 1, -(1 << 31)):
        assert (
            context(Fetch, m.FetchRequest(max_wait_ms=0, min_bytes=0, session_id=unknown), topics=topics).topics == ()
        )


def test_who_waits_for_an_answer() -> None:
    assert [context(Produce, produce(acks)).expects_answer for acks in (-1, 1, 0)] == [True, True, False]
    assert context(ApiVersions, None).expects_answer


def test_in_words() -> None:
    assert str(context(Heartbeat, heartbeat())) == (
        "Heartbeat v4 from 'c' at 1000 ms, broker 3: HeartbeatRequest(group_id='app', generation_id=1, member_id='m-1')"
    )
    assert str(context(Heartbeat, heartbeat("m" * 400), client_id=None)).startswith(
        "Heartbeat v4 from a client without id at 1000 ms, broker 3: HeartbeatRequest("
    )
    assert str(context(Heartbeat, heartbeat("m" * 400))).endswith("m…")


def test_numbers_in_a_row() -> None:
    cases: list[tuple[object, str, list[int], list[object], object, int | None]] = [
        (3, "3", [3], [2, 4], 3, 1),
        ("3", "3", [3], [2, 4], 3, 1),
        (range(2, 5), "2-4", [2, 3, 4], [1, 5], "2-4", 3),
        ("2-4", "2-4", [2, 4], [1, 5], "2-4", 3),
        ("3-", "3-", [3, 1_000], [2, "3"], "3-", None),
        (NumberRange(1, 2), "1-2", [1, 2], [3], "1-2", 2),
        (0, "0", [0], [1], 0, 1),
    ]
    for value, text, inside, outside, plain, size in cases:
        span = NumberRange.of(value)
        assert (str(span), span.plain, span.size) == (text, plain, size)
        assert all(number in span for number in inside)
        assert not any(number in span for number in outside)
        assert NumberRange.of(span.plain) == span


def test_what_is_no_number_or_span() -> None:
    cases: list[object] = [-1, True, range(-1, 4), range(5, 2), range(1, 9, 2), "4-2", "", "a", "-4", 1.5, None]
    for value in cases:
        with pytest.raises(ValueError, match="neither a number nor a span of numbers such as '2-4' or '3-'"):
            NumberRange.of(value)


def fail(text: str) -> int:
    raise ValueError(text)


def several() -> int:
    raise RuleProblems([RuleProblem("a", "is wrong"), RuleProblem("b", "too")])


def test_all_that_is_wrong_is_told_at_once() -> None:
    findings = ProblemCollector()
    assert findings.read("x", lambda: 3) == 3
    findings.raise_if_any()
    assert findings.read("x", lambda: fail("it is no y")) is None
    assert findings.read("x", several) is None
    with pytest.raises(RuleProblems) as found:
        findings.raise_if_any()
    assert str(found.value) == "x: it is no y; a: is wrong; b: too"
    assert [problem.field for problem in found.value.problems] == ["x", "a", "b"]


def test_one_thing_is_wrong() -> None:
    assert RuleProblems.one("a", "is wrong").problems == (RuleProblem("a", "is wrong"),)


def test_yes_and_no_are_no_numbers() -> None:
    assert [is_number(value) for value in (0, -3, True, 1.0, "1", None)] == [True, True, False, False, False, False]


def test_an_api_has_four_names() -> None:
    cases: list[object] = [Heartbeat, HeartbeatRequest, ApiKey.HEARTBEAT, "Heartbeat"]
    for what in cases:
        assert find_api(what) is Heartbeat  # type: ignore[arg-type]


def test_what_is_no_api_is_refused_with_the_nearest_that_is() -> None:
    cases: list[tuple[object, str]] = [
        ("heart_beat", "there is no API 'heart_beat'; did you mean Heartbeat?"),
        ("Xyzzy", "there is no API 'Xyzzy'"),
        (HeartbeatResponse, "HeartbeatResponse is not the class of a request; did you mean HeartbeatRequest?"),
        (99, "99 is no API"),
        (True, "True is no API"),
        (["Fetch"], "['Fetch'] is no API"),
    ]
    for what, complaint in cases:
        with pytest.raises(ValueError) as problem:  # noqa: PT011 - the text is looked at
            find_api(what)  # type: ignore[arg-type]
        assert str(problem.value).startswith(complaint)


def test_of_many_names_none_is_listed() -> None:
    assert suggestion("xyzzy", [f"name {number}" for number in range(31)]) == ""
