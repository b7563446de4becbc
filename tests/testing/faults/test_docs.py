"""docs/faults.md: its programs run, its rules act, its complaints are what is said."""

import re
from pathlib import Path

import pytest

from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FetchRequest, FindCoordinatorRequest, ProduceRequest
from groupcoord.testing.faults import RuleFileError
from groupcoord.testing.faults.rule import MATCH_FIELDS
from groupcoord.testing.faults.rule_file import parse_rules
from tests.broker.data_plane import batch
from tests.testing.faults.support import Fetch, FindCoordinator, Heartbeat, Produce, World

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (0, "6 partitions of a\n"),
        (1, "used: [0, 2]\n"),
        (2, "held: app-2\n"),
        (3, "espresso [2, 2, 3, 1]\n"),
        (4, "no response\n2 espressos\n"),
    ],
    ids=["first-example", "used", "hold", "races", "brokers"],
)
def test_its_programs_run(number: int, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("python")[number], "docs/faults.md", "exec"), {})
    assert re.sub(r"app-2-.*", "app-2", capsys.readouterr().out) == printed


def test_there_are_no_other_programs() -> None:
    assert len(blocks("python")) == 5


def test_its_first_file_is_a_rule() -> None:
    assert len(parse_rules(blocks("yaml")[0], "faults.yaml")) == 1


def test_every_rule_of_its_file_does_what_is_said_there() -> None:
    world = World()
    for name, rule in parse_rules(blocks("yaml")[1], "faults.yaml"):
        world.faults.add(rule, name)
    again = ErrorCode.REBALANCE_IN_PROGRESS
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [world.heartbeat().error for _ in range(3)] == [again, again, unknown]

    found = FindCoordinatorRequest(coordinator_keys=("app",))
    errors = [world.ask(FindCoordinator, found).answer.coordinators[0].error_code for _ in range(4)]
    assert errors == [*[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3, ErrorCode.NONE]

    first, second = world.commit(1), world.commit(2)
    assert (first.is_open, second.is_open) == (False, True)
    world.advance(500)
    assert not second.is_open

    joined = world.join(instance="instance-1")
    world.advance(10)
    assert joined.is_open
    group = world.node.coordinator.shard_of("app").machine.classic_group("app")
    assert group is not None
    assert group.static_members

    topic_id = world.node.broker.topics.topic_id("orders")
    records = PartitionProduceData(index=0, records=batch(b"espresso", at_ms=world.now))
    data = TopicProduceData(topic_id=topic_id, partition_data=(records,))
    world.ask(Produce, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(data,)))
    wanted = FetchTopic(
        topic_id=topic_id, partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000),)
    )
    fetched = [world.ask(Fetch, FetchRequest(max_wait_ms=0, min_bytes=0, topics=(wanted,))).answer for _ in range(2)]
    broken, whole = (bytes(answer.responses[0].partitions[0].records) for answer in fetched)
    assert broken != whole
    world.faults.check()


def test_its_file_about_brokers_is_read() -> None:
    dies, cut = (str(rule) for _, rule in parse_rules(blocks("yaml")[2], "faults.yaml", range(1, 4)))
    assert dies == "when(Produce, topic='orders', nth=3).kill_broker(moment='answered')"
    assert cut == "when(OffsetCommit, group='app').cut_off_broker('controller', broker_id=2)"


def test_its_complaint_about_an_unused_rule_is_what_is_said() -> None:
    world = World()
    rule = world.when(Heartbeat, group="app", member="m-9").drop()
    world.heartbeat()
    assert blocks("text")[0] == f"{rule.why_unused()}\n"


def test_its_complaint_about_a_file_is_what_is_said() -> None:
    text = "- when: Heartbeat\n  do: drop\n\n\n\n\n- when: Heartbeat\n  gruop: app\n  do: refuse\n  code: NOT_COORDINATER\n"
    with pytest.raises(RuleFileError) as failed:
        parse_rules(text, "faults.yaml")
    assert blocks("text")[1] == f"{failed.value}\n"


def test_every_field_is_explained() -> None:
    assert all(f"`{name}`" in TEXT for name in (*MATCH_FIELDS, "where"))
