"""ConsumerGroupHeartbeat: requests that are refused before the group is checked, and the order of the checks (KIP-848)."""

import uuid
from typing import Any

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, owned_partitions, topics_with_ids
from tests.conformance.settings import CLASSIC_ONLY, CONSUMERS, UPGRADE_ONLY
from tests.conformance.story import Story, story


@story(settings=CONSUMERS, sections=["848 3.2"])
def what_a_joining_consumer_must_say(s: Story) -> None:
    """Each field of a first heartbeat missing, empty, blank or absurd, in both versions."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=1)
    a = Consumer(s, "a", group_id=group, topics=topics)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("no member id", {"member_id": ""}),
        ("a blank member id", {"member_id": "  "}),
        ("a member id of a tab", {"member_id": "\t\n"}),
        ("no group id", {"group_id": ""}),
        ("a blank group id", {"group_id": " "}),
        ("an empty instance id", {"instance_id": ""}),
        ("a blank instance id", {"instance_id": " "}),
        ("an empty rack id", {"rack_id": ""}),
        ("a blank rack id", {"rack_id": " "}),
        ("no rebalance timeout", {"rebalance_timeout_ms": -1}),
        ("a rebalance timeout of 0", {"rebalance_timeout_ms": 0}),
        ("a rebalance timeout of -2", {"rebalance_timeout_ms": -2}),
        ("no owned partitions", {"topic_partitions": None}),
        ("owned partitions", {"topic_partitions": owned_partitions({ids[topics[0]]: [0]})}),
        ("no topics", {"subscribed_topic_names": None}),
        ("a list of no topics", {"subscribed_topic_names": ()}),
        ("a topic without a name", {"subscribed_topic_names": ("",)}),
        ("a topic with a bad name", {"subscribed_topic_names": ("no good name",)}),
        ("a topic twice", {"subscribed_topic_names": (topics[0], topics[0])}),
        ("an unknown assignor", {"server_assignor": "cooperative-sticky"}),
        ("an assignor without a name", {"server_assignor": ""}),
        ("an assignor in upper case", {"server_assignor": "RANGE"}),
        ("epoch -2 without an instance id", {"member_epoch": -2}),
        ("epoch -3", {"member_epoch": -3}),
        ("the lowest epoch", {"member_epoch": -2147483648}),
        ("epoch 5", {"member_epoch": 5}),
        ("epoch -1", {"member_epoch": -1}),
    ]
    for version in (1, 0):
        for number, (what, changes) in enumerate(cases):
            said = {"group_id": s.group(f"{number}v{version}"), **changes}
            a.epoch, a.member_id = 0, "a"
            a.joins(does=f"joins with {what}", version=version, **said)


@story(settings=CONSUMERS, sections=["848 3.2"])
def which_refusal_comes_first(s: Story) -> None:
    """Several mistakes in one heartbeat: each time the one that the error names is corrected."""
    group = s.group()
    a = Consumer(s, "a", group_id=group)
    said: dict[str, Any] = {
        "member_id": "",
        "group_id": "",
        "instance_id": "",
        "rack_id": "",
        "rebalance_timeout_ms": -1,
        "topic_partitions": None,
        "subscribed_topic_names": None,
        "server_assignor": "nobody",
    }
    corrected: dict[str, Any] = {
        "member_id": "a",
        "group_id": group,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 1000,
        "topic_partitions": (),
        "subscribed_topic_names": ("nowhere",),
        "server_assignor": None,
    }
    a.joins(does="joins with everything wrong", **said)
    for name, value in corrected.items():
        said[name] = value
        a.joins(does=f"joins with another {name}", **said)


@story(settings=CONSUMERS, sections=["848 3.2"])
def what_a_consumer_may_say_later(s: Story) -> None:
    """The same fields in later heartbeats of a member."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2)
    a = Consumer(s, "a", group_id=group, topics=topics)
    a.joins()
    cases: list[tuple[str, dict[str, Any]]] = [
        ("no member id", {"member_id": ""}),
        ("no group id", {"group_id": ""}),
        ("an empty instance id", {"instance_id": ""}),
        ("an instance id", {"instance_id": "i"}),
        ("an empty rack id", {"rack_id": ""}),
        ("a rebalance timeout of 0", {"rebalance_timeout_ms": 0}),
        ("another rebalance timeout", {"rebalance_timeout_ms": 77}),
        ("an unknown assignor", {"server_assignor": "nobody"}),
        ("an assignor", {"server_assignor": "range"}),
        ("a rack", {"rack_id": "r1"}),
        ("an owned topic that is unknown", {"topic_partitions": owned_partitions({uuid.UUID(int=7): [0]})}),
        ("an owned partition that is not there", {"topic_partitions": owned_partitions({ids[topics[0]]: [0, 1, 9]})}),
        ("a topic without owned partitions", {"topic_partitions": owned_partitions({ids[topics[0]]: []})}),
        ("no owned partitions", {"topic_partitions": ()}),
        ("another member id", {"member_id": "b"}),
        ("another group id", {"group_id": s.group("other")}),
        ("epoch -2", {"member_epoch": -2}),
        ("epoch -3", {"member_epoch": -3}),
        ("the next epoch", {"member_epoch": 3}),
        ("the epoch before", {"member_epoch": 1}),
        ("the highest epoch", {"member_epoch": 2147483647}),
    ]
    for what, changes in cases:
        before = a.epoch
        a.heartbeats(does=f"heartbeats with {what}", **changes)
        a.epoch, a.member_id = before, "a"
    Watcher(s, "admin").looks_at(group)


@story(settings=CONSUMERS, sections=["848 3.1"])
def member_ids_that_the_coordinator_makes(s: Story) -> None:
    """In version 0 the coordinator can generate the member id; any other text is accepted unchanged."""
    stage = Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    a = Consumer(s, "a", member_id="", group_id=s.group(), topics=topics, version=0)
    a.joins()
    a.heartbeats()
    a.owns()
    a.joins(does="joins again")
    a.leaves()
    a.heartbeats(member_epoch=3)
    a.joins(does="joins after it left")
    for number, member_id in enumerate(("x" * 300, "ü", "a b", "-", "00000000-0000-0000-0000-000000000000")):
        group = s.group(f"given{number}")
        b = Consumer(s, "b", member_id=member_id, group_id=group, topics=topics)
        b.joins()
        b.heartbeats()
        b.leaves()


@story(settings=CLASSIC_ONLY, sections=["848 2"])
def a_broker_without_consumer_groups(s: Story) -> None:
    """The protocol is not enabled."""
    group, stage = s.group(), Stagehand(s)
    topics = [stage.topic("orders", partitions=1)]
    a, admin = Consumer(s, "a", group_id=group, topics=topics), Watcher(s, "admin")
    for version in (0, 1):
        a.joins(version=version)
        a.heartbeats(version=version, member_epoch=1)
        a.leaves(version=version)
        a.joins(does="joins with nothing right", version=version, member_id="", group_id="")
        admin.looks_at(group, "other", "", version=version)
        admin.looks_at(version=version)
    admin.lists(types=["consumer"])
    admin.describes(group)
    admin.deletes(group)


@story(settings=UPGRADE_ONLY, sections=["848 3.3"])
def consumer_groups_that_are_full(s: Story) -> None:
    """Three members at most: a fourth is refused, of either protocol; a member may join again."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=6)
    a, b, c, d = (Consumer(s, name, group_id=group, topics=topics) for name in "abcd")
    a.joins()
    b.joins()
    static = Consumer(s, "c1", group_id=group, topics=topics, instance="i")
    static.joins()
    c.joins()
    d.joins(member_id="", version=0)
    d.joins(does="joins with the instance that is in", instance_id="i")
    b.joins(does="joins again")
    static.leaves(-2)
    again = Consumer(s, "c2", group_id=group, topics=topics, instance="i")
    again.joins(does="joins in place of the one that left for now")
    d.joins()
    b.leaves()
    d.joins()
    Watcher(s, "admin").looks_at(group)
    for member in (a, again, d):
        member.leaves()
