from typing import Any

import pytest

from groupcoord.core.effects import Call
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import Api
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.testing.faults import (
    ApiVersions,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    Match,
    Metadata,
    OffsetCommit,
    RuleProblems,
)
from groupcoord.testing.faults.asked import Asked
from tests.testing.faults.support import commit, heartbeat, join, leave

NOTHING: list[str] = []


def asked(api: Api, request: object, *, client_id: str | None = "c", version: int | None = None) -> Asked:
    number = api.max_version if version is None else version
    return Asked(Call(1, 2, api, number, client_id, "/127.0.0.1"), request, 1_000, broker=3)


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
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
    ],
)
def test_a_heartbeat_against(fields: dict[str, Any], reasons: list[str]) -> None:
    assert Match.of(**fields).differences(asked(Heartbeat, heartbeat())) == reasons


def test_one_of_several_values_is_enough() -> None:
    leaving = asked(LeaveGroup, leave("a", "b", instance="i"))
    for member in ("a", "b", "i"):
        assert Match.of(LeaveGroup, member=member).differences(leaving) == []
    assert Match.of(LeaveGroup, member="c").differences(leaving) == ["member is 'a', 'b', 'i', not 'c'"]


def test_a_newcomer_has_an_empty_member_id() -> None:
    assert Match.of(JoinGroup, member="").differences(asked(JoinGroup, join())) == []
    assert Match.of(JoinGroup, member="").differences(asked(JoinGroup, join("m-1"))) == ["member is 'm-1', not ''"]


def test_an_instance_id_is_a_member_too() -> None:
    assert Match.of(JoinGroup, member="one").differences(asked(JoinGroup, join(instance="one"))) == []


def test_all_topics_are_also_this_one() -> None:
    assert Match.of(Metadata, topic="orders").differences(asked(Metadata, m.MetadataRequest(topics=None))) == []
    one = m.MetadataRequest(topics=(MetadataRequestTopic(name="others"),))
    assert Match.of(Metadata, topic="orders").differences(asked(Metadata, one)) == ["topic is 'others', not 'orders'"]


def test_a_client_without_id() -> None:
    nobody = asked(Heartbeat, heartbeat(), client_id=None)
    assert Match.of(client_id="").differences(nobody) == []
    assert Match.of(client_id="c").differences(nobody) == ["it names no client_id, and not 'c'"]


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ({"api": "Hartbeat"}, ["when: there is no API 'Hartbeat'; do you mean Heartbeat?"]),
        ({"group": 1}, ["group: 1 is not text: put what is meant in quotes"]),
        ({"broker": "1"}, ["broker: '1' is not the number of a broker"]),
        ({"broker": True}, ["broker: True is not the number of a broker"]),
        ({"where": 5}, ["where: 5 is not a function of a request"]),
        ({"gruop": "a"}, ["gruop: there is no such field; do you mean group?"]),
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
    ],
)
def test_what_no_request_can_be_like(fields: dict[str, Any], problems: list[str]) -> None:
    with pytest.raises(RuleProblems) as found:
        Match.of(**fields)
    assert list(map(str, found.value.problems)) == problems


def test_api_versions_may_come_at_a_version_of_the_future() -> None:
    assert Match.of(ApiVersions, version=99).differences(asked(ApiVersions, None, version=99)) == []


def test_it_is_a_value_that_says_what_makes_it() -> None:
    match = Match.of(Heartbeat, group="app", nth=range(2, 5), version="3-", broker=1)
    assert repr(match) == "when(Heartbeat, group='app', version='3-', nth='2-4', broker=1)"
    assert match == Match.of("Heartbeat", group="app", nth="2-4", version="3-", broker=1) != Match.of(Heartbeat)
    assert repr(Match.of()) == "when()"


def test_a_commit_names_all_three() -> None:
    committing = asked(Heartbeat, heartbeat())
    assert Match.of(group="app", member="m-1").differences(committing) == []
    assert Match.of(group="app", topic="orders", member="").differences(asked(OffsetCommit, commit(), version=9)) == []
