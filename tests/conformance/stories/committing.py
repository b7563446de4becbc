"""OffsetCommit: by members and non-members, in every state and version, with every kind of error."""

import uuid
from typing import Any

from groupcoord.protocol.messages import OffsetCommitRequest
from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin, until_forgotten
from tests.conformance.members import Member, commit_topics, share_out, stable
from tests.conformance.settings import SLOW_START
from tests.conformance.stories.syncing import completing
from tests.conformance.story import Story, story


@story(sections=["9.1", "9.3"])
def every_version_of_commit_and_fetch(s: Story) -> None:
    """Each version of OffsetCommit, read with each version of OffsetFetch: named topics and all topics."""
    stage = Stagehand(s)
    topic = stage.topic("orders", partitions=3)
    admin = Admin(s, "admin", ids={topic: stage.topic_id(topic)})
    for version in range(2, 11):
        group = s.group(f"c{version}")
        admin.commits(group, {(topic, 0): (version, f"v{version}", 7), (topic, 1): (version, None)}, version)
        admin.fetches(group, {topic: [0, 1, 2]})
    group = s.group("f")
    admin.commits(group, {(topic, 0): (5, "five", 3), (topic, 2): (6, None)})
    for version in range(1, 11):
        admin.fetches(group, {topic: [2, 0, 1]}, version)
        if version >= 2:
            admin.fetches(group, None, version)
        admin.fetches(group, {}, version)
        admin.fetches(s.group("unknown"), {topic: [0]}, version)


@story(sections=["9.1", "11.2"])
def retention_times_in_old_versions(s: Story) -> None:
    """A retention time in versions 2 to 4 becomes an expire timestamp in the record; -1 means none; 0 and negative
    ones."""
    topic = Stagehand(s).topic("orders", partitions=6)
    group, admin = s.group(), Admin(s, "admin")
    for version in (2, 3, 4):
        admin.commits(group, {(topic, 0): 1}, version, retention_time_ms=-1)
        admin.commits(group, {(topic, version): 1}, version, retention_time_ms=3_600_000)
    admin.commits(group, {(topic, 5): 1}, 4, retention_time_ms=86_400_000_000)
    admin.fetches(group, None)


@story(gotchas=[33], sections=["9.1"])
def absurd_offsets(s: Story) -> None:
    """Offsets and leader epochs are stored as given, negative and huge ones too."""
    topic = Stagehand(s).topic("orders", partitions=1)
    group, admin = s.group(), Admin(s, "admin")
    for offset in (0, -1, -2, -9223372036854775808, 9223372036854775807):
        admin.commits(group, {(topic, 0): (offset, "x")})
        admin.fetches(group, {topic: [0]})
    for epoch in (0, -1, -2, 2147483647):
        admin.commits(group, {(topic, 0): (1, "x", epoch)})
        admin.fetches(group, {topic: [0]})


@story(gotchas=[34], sections=["9.1"])
def metadata_of_every_length(s: Story) -> None:
    """4096 UTF-16 units are allowed; with one more only that partition is refused. Bytes do not count."""
    topic = Stagehand(s).topic("orders", partitions=5)
    group, admin = s.group(), Admin(s, "admin")
    admin.commits(
        group,
        {
            (topic, 0): (1, "x" * 4096),
            (topic, 1): (2, "x" * 4097),
            (topic, 2): (3, "ü" * 4096),
            (topic, 3): (4, "🙂" * 2048),
            (topic, 4): (5, "🙂" * 2049),
        },
    )
    admin.fetches(group, {topic: [0, 1, 4]})
    admin.commits(group, {(topic, 0): (9, "")})
    admin.fetches(group, {topic: [0]})


@story(gotchas=[34], sections=["9.1", "2.2"], settings=SLOW_START)
def a_small_limit_for_metadata(s: Story) -> None:
    """The configured limit offset.metadata.max.bytes applies: sixteen units."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group, admin = s.group(), Admin(s, "admin")
    admin.commits(group, {(topic, 0): (1, "x" * 16), (topic, 1): (2, "x" * 17)})
    admin.commits(group, {(topic, 1): (2, "x" * 17)})
    admin.fetches(group, None)


@story(gotchas=[35, 36], sections=["9.1"])
def topics_that_are_not_there(s: Story) -> None:
    """Unknown topics and partitions are refused before the group is checked, and come first in the response."""
    topic = Stagehand(s).topic("orders", partitions=2)
    group, admin = s.group(), Admin(s, "admin")
    unknown = s.topic_name("unknown")
    admin.commits(
        group, {(topic, 0): 1, (unknown, 0): 2, (topic, 7): 3, (topic, 1): 4, (unknown, 1): 5, (topic, -1): 6}
    )
    admin.fetches(group, None)
    for version in (8, 9):
        admin.commits(
            s.group("missing"), {(unknown, 0): 2}, version, generation_id_or_member_epoch=5, member_id="stranger"
        )
        admin.commits(
            s.group("missing"), {(topic, 9): 2}, version, generation_id_or_member_epoch=5, member_id="stranger"
        )
    admin.commits("", {(unknown, 0): 2})
    admin.commits(group, {("", 0): 1, ("no such/topic", 0): 2})
    admin.commits(group, {})
    a = Member(s, "a", group_id=group)
    stable(a)
    a.commits({(unknown, 0): 1}, does="commits as a stranger", member_id="stranger")
    a.commits({(topic, 0): 1, (unknown, 0): 1}, does="commits as a stranger", member_id="stranger")


@story(sections=["9.1", "14"])
def commits_and_fetches_by_topic_id(s: Story) -> None:
    """Version 10 has topic ids: unknown ids, a name in addition, the zero id, the id of a topic created again."""
    stage = Stagehand(s)
    topic, other = stage.topic("orders", partitions=2), stage.topic("other")
    admin = Admin(s, "admin", ids={topic: stage.topic_id(topic), other: stage.topic_id(other)})
    group, unknown = s.group(), s.topic_name("unknown")
    admin.ids[unknown] = uuid.UUID(int=7)
    admin.commits(group, {(topic, 0): (1, "one"), (unknown, 0): 2, (other, 0): (3, "three"), (topic, 9): 4}, 10)
    admin.fetches(group, {topic: [0, 1], unknown: [0], other: [0, 5]}, 10)
    admin.fetches(group, None, 10)
    admin.fetches(group, None, 9)
    admin.ids[unknown] = None
    admin.commits(group, {(unknown, 0): 2}, 10)
    admin.fetches(group, {unknown: [0]}, 10)
    admin.commits(group, {(topic, 1): (5, "by name")}, 9)
    admin.fetches(group, {topic: [0, 1]}, 10)
    old_id = admin.ids[topic]
    stage.deletes(topic)
    s.wait(300, "the coordinator hears of it")
    until_forgotten(s, stage, group, topic)
    admin.fetches(group, {topic: [0, 1]}, 10)
    admin.fetches(group, None, 10)
    admin.fetches(group, {topic: [0, 1]}, 9)
    stage.topic("orders", partitions=2)
    admin.ids[topic] = stage.topic_id(topic)
    admin.fetches(group, {topic: [0, 1]}, 10)
    admin.commits(group, {(topic, 0): (8, "anew")}, 10)
    admin.fetches(group, {topic: [0, 1]}, 10)
    admin.ids[topic] = old_id
    admin.commits(group, {(topic, 0): (9, "to the old id")}, 10)
    admin.fetches(group, {topic: [0, 1]}, 10)


@story(gotchas=[31, 39], sections=["9.1"])
def commits_without_a_group(s: Story) -> None:
    """A commit without a generation creates a missing group as a simple one; with a generation it is refused, by
    version."""
    topic = Stagehand(s).topic("orders")
    admin = Admin(s, "admin")
    commit = {(topic, 0): 1}
    for version in (2, 7, 8, 9):
        group = s.group(f"missing-{version}")
        admin.commits(group, commit, version, generation_id_or_member_epoch=0)
        admin.commits(group, commit, version, generation_id_or_member_epoch=0, member_id="stranger")
        admin.describes(group)
    accepted: dict[str, dict[str, Any]] = {
        "anonymous": {},
        "with-a-member-id": {"member_id": "somebody"},
        "with-an-instance-id": {"group_instance_id": "instance"},
        "generation-minus-five": {"generation_id_or_member_epoch": -5},
    }
    for suffix, changes in accepted.items():
        group = s.group(suffix)
        admin.commits(group, commit, **changes)
        admin.describes(group)
        admin.fetches(group, None)
    admin.commits("", {(topic, 0): 77})
    admin.fetches("", None)
    admin.describes("")
    admin.lists()
    admin.deletes("")


@story(gotchas=[30, 32], sections=["9.1"])
def commits_in_every_state(s: Story) -> None:
    """Every combination of generation, member id and state of a classic group: accepted, unknown, illegal,
    rebalancing."""
    topic = Stagehand(s).topic("orders")
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, instance="instance-b")

    def all_commits(state: str) -> None:
        commit = {(topic, 0): 1}
        for generation in (-1, a.generation, 99):
            for who, member_id, instance in (
                ("nobody", "", None),
                ("a", a.member_id or "none", None),
                ("b", b.member_id or "none", "instance-b"),
                ("b without its instance id", b.member_id or "none", None),
                ("a stranger", "stranger", None),
                ("a stranger as b", "stranger", "instance-b"),
                ("an unknown instance", a.member_id, "nobody"),
                ("nobody as b", "", "instance-b"),
            ):
                a.commits(
                    commit,
                    does=f"commits as {who} in generation {generation}, {state}",
                    member_id=member_id,
                    group_instance_id=instance,
                    generation_id_or_member_epoch=generation,
                )

    a.asks_for_an_id()
    all_commits("pending in an empty group")
    a.leaves()
    completing(a, b)
    all_commits("completing")
    share_out(a, b)
    all_commits("stable")
    a.joins_parked(does="rejoins and waits")
    all_commits("rebalancing")
    b.joins(does="rejoins")
    a.is_answered()
    share_out(a, b)
    b.leaves()
    a.leaves()
    all_commits("empty again")


@story(gotchas=[6], sections=["9.1"])
def commits_with_a_pending_id(s: Story) -> None:
    """A pending id is not a member: its commit is UNKNOWN_MEMBER_ID if the group has members, and accepted if it is
    empty."""
    topic = Stagehand(s).topic("orders")
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    b.asks_for_an_id()
    b.commits({(topic, 0): 1})
    b.commits({(topic, 0): 1}, does="commits in generation 0", generation_id_or_member_epoch=0)
    stable(a)
    b.commits({(topic, 0): 1}, does="commits in generation 1", generation_id_or_member_epoch=1)
    b.commits({(topic, 0): 1}, does="commits in no generation")


@story(sections=["9.1", "11.3"])
def many_commits_of_one_partition(s: Story) -> None:
    """A partition named twice in one commit, topics twice, partitions in any order: records keep the order, the last one
    counts."""
    topic = Stagehand(s).topic("orders", partitions=3)
    group, admin = s.group(), Admin(s, "admin")
    once = commit_topics({(topic, 2): 1, (topic, 0): (2, "first")})
    again = commit_topics({(topic, 0): (3, "second")})
    admin.asks(
        OffsetCommitRequest(group_id=group, member_id="", topics=once + again), 9, does="commits twice in one request"
    )
    admin.fetches(group, {topic: [0, 0, 2]})
    admin.fetches(group, None)
