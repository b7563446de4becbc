"""Sequence diagrams. The golden one was drawn by Mermaid itself when it was written, and looked at."""

import re
from pathlib import Path

import pytest

from groupcoord.client.member.member_events import RejoinWanted
from groupcoord.coordinator.events import StateChanged
from groupcoord.core.events import AdminAction, Answered
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.messages import LeaveGroupRequest, MetadataRequest
from groupcoord.testing import Cluster
from groupcoord.testing.trace import ConnectionClosed, ConnectionOpened, RequestUnanswered, Trace
from groupcoord.testing.trace.golden import assert_golden
from groupcoord.testing.trace.mermaid import escape
from tests.coordinator.world import assignment
from tests.testing.trace.stage import GROUP, Stage
from tests.testing.trace.test_events import SPOKEN

GOLDEN = Path(__file__).parent / "golden"
TEST = AdminAction("the test")


def lines(diagram: str) -> list[str]:
    return [line.strip() for line in diagram.splitlines()]


def test_a_lost_member() -> None:
    stage = Stage()
    a, b = stage.member("a"), stage.member("b")
    stage.joined(a, b)
    a.sync({a: assignment("t", 0, 1), b: assignment("t", 2)})
    b.sync()
    for _ in range(3):
        stage.advance(3_000)
        a.heartbeat()
        b.heartbeat()
    for _ in range(4):
        stage.advance(3_000)
        a.heartbeat()
    a.join()
    a.sync({a: assignment("t", 0, 1, 2)})
    stage.operate(
        "a drill ends", lambda ctx: ctx.emit(StateChanged, group="g", origin="Stable", target="Stable", generation=2)
    )
    assert_golden(stage.trace.mermaid(), GOLDEN / "lost_member.mmd")


STEP = re.compile(
    r"sequenceDiagram|participant \w+ as .+|note (over \w+(,\w+)?|right of \w+): .+|\w+(->>|-->>|--x)\w+: .+", re.ASCII
)


def test_every_line_is_of_a_known_form() -> None:
    stage = Stage()
    a, _ = stage.stable("a", "b")
    a.join(reason='x;y #1 <b> %%{init}%% "q" `c` end\nnote over')
    stage.member("we;ird: #end").join()
    for line in lines(stage.trace.mermaid()):
        assert STEP.fullmatch(line), line
        said = line.partition(": ")[2] or line.partition(" as ")[2]
        assert not set(re.sub(r"#\d+;|<br/>", "", said)) & set('#;<>%{}"\\$&`')


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a: b", "a: b"),
        ("a;b#c", "a#59;b#35;c"),
        ("<b>%{}", "#60;b#62;#37;#123;#125;"),
        ("two\nlines", "two lines"),
        ("wrap: x", "#119;rap: x"),
        ("nowrap:x", "#110;owrap:x"),
        ("", "\N{NO-BREAK SPACE}"),
    ],
)
def test_what_mermaid_would_obey_is_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_a_diagram_of_nothing() -> None:
    assert Trace().mermaid() == "sequenceDiagram\n    participant K as coordinator\n"


def test_a_part_of_a_long_one() -> None:
    stage = Stage()
    _, b = stage.stable("a", "b")
    b.leave()
    whole = lines(stage.trace.mermaid())
    since = lines(stage.trace.mermaid(since=6.0, limit=3))
    assert since[:4] == [
        "sequenceDiagram",
        "participant c1 as b",
        "participant K as coordinator",
        "note over c1,K: 13 steps before",
    ]
    assert [line.replace("c1", "c2") for line in since[-3:]] == whole[-3:]


def test_one_group_of_several() -> None:
    stage = Stage()
    stage.member("a").join()
    stage.member("b", group="h").join()
    both = stage.trace.mermaid()
    assert "note right of K: g: new group g" in both
    assert "note right of K: h: new group h" in both
    one = lines(stage.trace.mermaid(group="h"))
    assert "note right of K: new group h" in one
    assert "participant c1 as b" in one
    assert "participant c2 as a" not in one


def test_clients_of_one_name_are_told_apart_by_their_members() -> None:
    stage = Stage("group.initial.rebalance.delay.ms=0")
    first, second = stage.member("x"), stage.member("x")
    first.enter()
    stage._connections.clear()
    stage._connections["y"] = 1
    second.enter()
    stage.ask(ApiKey.METADATA, MetadataRequest(), client_id="x")
    drawn = lines(stage.trace.mermaid())
    assert drawn[1:3] == ["participant c1 as x-00000003", "participant c2 as x-00000004"]


def test_several_members_of_one_connection() -> None:
    stage = Stage("group.initial.rebalance.delay.ms=0")
    first, second = stage.member("x"), stage.member("x")
    first.enter()
    second.enter()
    drawn = lines(stage.trace.mermaid())
    assert "participant c1 as x" in drawn
    assert "c1->>K: JoinGroup v9 of x-00000004" in drawn


def test_somebody_without_a_client_id() -> None:
    stage = Stage()
    stage.ask(ApiKey.METADATA, MetadataRequest(), client_id=None)
    assert lines(stage.trace.mermaid())[1] == "participant c1 as connection 1"


def test_an_administrator_is_nobody_s_member() -> None:
    stage = Stage()
    _, b = stage.stable("a", "b")
    request = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=b.member_id),))
    stage.ask(ApiKey.LEAVE_GROUP, request, client_id="admin")
    assert "participant c3 as admin" in lines(stage.trace.mermaid())
    assert "c3->>K: LeaveGroup v5 of b" in lines(stage.trace.mermaid())


def test_a_request_without_an_answer_and_connections() -> None:
    trace = Trace()
    trace(ConnectionOpened(at_ms=0, cause=TEST, connection_id=3, client_host="/h"))
    trace(RequestUnanswered(at_ms=0, cause=TEST, **SPOKEN, reason="so"))
    trace(ConnectionClosed(at_ms=0, cause=TEST, connection_id=3, client_host="/h", reason=""))
    assert lines(trace.mermaid())[-1] == "K--xc1: JoinGroup: so"


def test_what_a_client_says_of_itself_stands_over_it() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    for member in (a.member_id, "stranger"):
        stage.trace(
            RejoinWanted(
                at_ms=stage.now_ms, cause=Answered("SyncGroup", "NONE"), group=GROUP, member=member, reason="so"
            )
        )
    assert lines(stage.trace.mermaid())[-1] == "note over c1: has to join again: so"


def test_heartbeats_of_one_moment_are_one() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.heartbeat()
    assert lines(stage.trace.mermaid())[-1] == "c1->>K: Heartbeat of a, fine"
    a.heartbeat()
    assert lines(stage.trace.mermaid())[-1] == "c1->>K: 2 times Heartbeat of a, all fine"


def test_a_refusal_is_told_by_its_answer() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.heartbeat(generation=7)
    assert lines(stage.trace.mermaid())[-2:] == ["c1->>K: Heartbeat v4 gen=7", "K-->>c1: Heartbeat ILLEGAL_GENERATION"]


def test_a_heartbeat_without_its_request() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.heartbeat()
    *_, answer = stage.trace
    assert lines(stage.trace.mermaid(since=answer))[-1] == "K-->>c1: Heartbeat"


@pytest.mark.asyncio
async def test_heartbeats_of_a_consumer_group() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders", client_id="a", instance_id="a")
        await a.join()
        drawn = lines(kafka.trace.mermaid())
        assert (drawn[4], drawn[-1]) == (
            "c1->>K: ConsumerGroupHeartbeat v1 to join",
            "K-->>c1: ConsumerGroupHeartbeat epoch=2: orders-0",
        )
        assert "note right of K: epoch 2: a joined" in drawn
        start = kafka.trace.entries()[-1]
        await a.heartbeat()
        await a.heartbeat()
        assert lines(kafka.trace.mermaid(since=start))[-1] == "c1->>K: 2 times ConsumerGroupHeartbeat of a, all fine"
        await a.acknowledge()
        assert lines(kafka.trace.mermaid())[-2:] == [
            "c1->>K: ConsumerGroupHeartbeat v1 epoch=2",
            "K-->>c1: ConsumerGroupHeartbeat epoch=2",
        ]
        await a.heartbeat(epoch=7)
        assert lines(kafka.trace.mermaid())[-1] == "K-->>c1: ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH"
        await a.leave_for_now()
        told = lines(kafka.trace.mermaid())[-3:]
        assert (told[0], told[-1]) == (
            "c1->>K: ConsumerGroupHeartbeat v1 to leave for now",
            "K-->>c1: ConsumerGroupHeartbeat",
        )
