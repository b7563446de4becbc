"""TxnOffsetCommit on behalf of members of groups (KIP-447): in every state of a classic group, and of consumer groups."""

from typing import Any

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, share_out, stable
from tests.conformance.producers import Producer
from tests.conformance.settings import CONSUMERS, SHORT_MEMORY
from tests.conformance.stories.consumer_classic_members import offers
from tests.conformance.stories.syncing import completing
from tests.conformance.stories.transactional_offsets import shows_batches
from tests.conformance.story import Story, story


@story(sections=["transactions"])
def transactional_commits_in_every_state(s: Story) -> None:
    """Every combination of generation, member id and state of a classic group. Unlike plain commits, they are accepted
    while it rebalances, and without a member id."""
    topic = Stagehand(s).topic()
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, instance="instance-b")
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()

    def all_commits(state: str) -> None:
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
                p.commits_offsets(
                    group,
                    {(topic, 0): 1},
                    does=f"commits offsets as {who} in generation {generation}, {state}",
                    member_id=member_id,
                    group_instance_id=instance,
                    generation_id=generation,
                )
        for version in (0, 2, 3, 4):
            p.commits_offsets(group, {(topic, 0): 1}, version, does=f"commits offsets as nobody, {state}")

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
    p.commits()
    admin.fetches(group, None, stable=True)


@story(sections=["transactions"])
def refused_members_and_their_transactions(s: Story) -> None:
    """The transaction is checked before the member: a refused member has added the offsets nevertheless."""
    topic = Stagehand(s).topic()
    p, admin = Producer(s, "p"), Admin(s, "admin")
    p.init()
    for version in (3, 4, 5):
        group = s.group(f"v{version}")
        a = Member(s, "a", group_id=group)
        stable(a)
        commit = {(topic, 0): version}
        p.commits_offsets(group, commit, version, does="commits offsets of a wrong generation", generation_id=9)
        p.commits_offsets(
            group, commit, version, does="commits offsets of a wrong generation in a wrong epoch",
            generation_id=9, producer_epoch=9,
        )  # fmt: skip
        p.adds_offsets(group)
        as_a: dict[str, Any] = {"member_id": a.member_id, "generation_id": a.generation}
        p.commits_offsets(group, commit, version, does="commits offsets of a stranger", **{**as_a, "member_id": "x"})
        p.commits_offsets(
            group, commit, version, does="commits offsets of a wrong generation", **{**as_a, "generation_id": 9}
        )
        p.commits_offsets(group, commit, version, does="commits offsets as the member", **as_a)
        p.commits_offsets(
            group, {("nowhere", 0): 1, (topic, 0): 2}, version, does="commits offsets of a stranger, and of nothing",
            **{**as_a, "member_id": "x"},
        )  # fmt: skip
        admin.fetches(group, {topic: [0]}, stable=True)
        a.commits({(topic, 0): 100}, does="commits beside it")
        p.ends(committed=version != 4)
        admin.fetches(group, {topic: [0]}, stable=True)
        a.heartbeats()
        shows_batches(s, group, p)
    refused = s.group("refused")
    p.commits_offsets(refused, {(topic, 0): 1}, does="commits offsets of a generation of no group", generation_id=1)
    admin.describes(refused)
    p.commits()
    admin.describes(refused)
    shows_batches(s, refused, p)


@story(sections=["transactions"])
def members_and_pending_offsets(s: Story) -> None:
    """Groups with members: OffsetDelete of a subscribed topic, DeleteGroups, and pending offsets after all have left."""
    stage = Stagehand(s)
    topic, other = stage.topic("orders"), stage.topic("payments")
    group = s.group()
    p, admin = Producer(s, "p"), Admin(s, "admin")
    a = Member(s, "a", group_id=group, offers={"range": subscription(topic)})
    p.init()
    stable(a)
    as_a: dict[str, Any] = {"member_id": a.member_id, "generation_id": a.generation}
    p.commits_offsets(group, {(topic, 0): 1, (other, 0): 2}, does="commits offsets as the member", **as_a)
    admin.describes(group)
    admin.deletes_offsets(group, {topic: [0], other: [0]})
    admin.deletes(group)
    admin.fetches(group, {topic: [0], other: [0]}, stable=True)
    a.leaves()
    p.commits_offsets(group, {(topic, 0): 3}, does="commits offsets as the member that left", **as_a)
    p.commits_offsets(group, {(topic, 0): 4}, does="commits offsets as nobody")
    admin.describes(group)
    p.commits()
    admin.fetches(group, None, stable=True)
    admin.describes(group)


@story(sections=["transactions"], lasts_ms=6000)
def transactional_commits_keep_no_session(s: Story) -> None:
    """A TxnOffsetCommit of a member does not extend its session, which times out."""
    topic = Stagehand(s).topic()
    group = s.group()
    p = Producer(s, "p")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2400)
    p.init()
    stable(a, b)
    as_b: dict[str, Any] = {"member_id": b.member_id, "generation_id": b.generation}
    s.wait(1400, "more than half of the session")
    p.commits_offsets(group, {(topic, 0): 1}, does="commits offsets as b", **as_b)
    s.wait(2000, "the session, counted from its start, is over")
    p.commits_offsets(group, {(topic, 0): 2}, does="commits offsets as b, too late", **as_b)
    b.heartbeats(does="heartbeats too late")
    p.commits()


@story(settings=CONSUMERS, sections=["transactions", "848 11"])
def transactional_commits_by_consumers(s: Story) -> None:
    """Members of consumer groups: the epoch is the generation; a stale one is ILLEGAL_GENERATION; no member id is allowed,
    too."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=4, payments=1)
    topic, other = topics
    a, b = (Consumer(s, name, group_id=group, topics=[topic], ids=ids) for name in "ab")
    p, admin = Producer(s, "p"), Watcher(s, "admin", ids=dict(ids))
    p.init()

    def all_commits(state: str) -> None:
        for version in (3, 5):
            for epoch in (-2, -1, 0, *range(1, a.epoch + 2)):
                for who, member_id, instance in (("a", "a", None), ("nobody", "", None), ("a stranger", "z", None)):
                    p.commits_offsets(
                        group,
                        {(topic, 0): 1},
                        version,
                        does=f"commits offsets as {who} in epoch {epoch}, {state}",
                        member_id=member_id,
                        group_instance_id=instance,
                        generation_id=epoch,
                    )
            p.commits_offsets(
                group,
                {(topic, 0): 1},
                version,
                does=f"commits offsets as an instance, {state}",
                member_id="a",
                group_instance_id="i",
                generation_id=a.epoch,
            )
        for version in (0, 2, 4):
            p.commits_offsets(group, {(topic, 0): 1}, version, does=f"commits offsets as nobody, {state}")

    p.adds_offsets(group)
    all_commits("no group")
    a.joins()
    all_commits("alone")
    admin.looks_at(group)
    b.joins()
    settled(a, b)
    all_commits("two members")
    for epoch in (2, 3):
        for partition in range(4):
            for member in ("a", "b"):
                p.commits_offsets(
                    group,
                    {(topic, partition): 10 + epoch},
                    does=f"commits offsets of partition {partition} as {member} in epoch {epoch}",
                    member_id=member,
                    generation_id=epoch,
                )
    as_a: dict[str, Any] = {"member_id": "a", "generation_id": 2}
    p.commits_offsets(group, {(other, 0): 1}, does="commits offsets of a topic it has not", **as_a)
    p.commits_offsets(group, {("nowhere", 0): 1}, does="commits offsets of no topic", **as_a)
    p.commits_offsets(group, {(topic, 0): (1, "x" * 4097), (other, 0): 1}, does="commits much metadata", **as_a)
    p.commits()
    admin.fetches(group, None, stable=True)
    a.leaves()
    b.leaves()
    all_commits("empty")
    p.aborts()
    admin.fetches(group, None, stable=True)
    shows_batches(s, group, p)


@story(settings=CONSUMERS, sections=["transactions", "848 11"])
def stable_fetches_by_consumers(s: Story) -> None:
    """A member that requests stable offsets is checked as usual, then gets an error for unstable offsets."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=2)
    topic = topics[0]
    a, p, admin = Consumer(s, "a", group_id=group, topics=topics, ids=ids), Producer(s, "p"), Watcher(s, "admin")
    p.init()
    a.joins()
    a.commits({(topic, 0): 1})
    p.commits_offsets(
        group, {(topic, 0): 10, (topic, 1): 20}, does="commits offsets as a", member_id="a", generation_id=a.epoch
    )
    for version in (8, 9, 10):
        for stable_ones in (False, True):
            a.fetches_offsets({topic: [0, 1]}, version, stable=stable_ones)
            a.fetches_offsets(None, version, stable=stable_ones)
            a.fetches_offsets({topic: [0]}, version, stable=stable_ones, member_epoch=9)
    admin.deletes_offsets(group, {topic: [0]})
    admin.deletes(group)
    a.leaves()
    a.fetches_offsets({topic: [0, 1]}, 9, stable=True, member_id=None, member_epoch=-1)
    p.commits()
    a.fetches_offsets({topic: [0, 1]}, 9, stable=True, member_id=None, member_epoch=-1)


@story(settings=CONSUMERS, sections=["transactions", "848 12.3"])
def transactional_commits_by_classic_members_of_consumer_groups(s: Story) -> None:
    """A classic member in a consumer group: its generation is the epoch, wrong ones are ILLEGAL_GENERATION."""
    group, stage = s.group(), Stagehand(s)
    topics, ids = topics_with_ids(s, stage, orders=4)
    topic = topics[0]
    a, p = Consumer(s, "a", group_id=group, topics=topics, ids=ids), Producer(s, "p")
    m = Member(s, "m", group_id=group, offers=offers(*topics))
    p.init()
    a.joins()
    m.asks(m.join_request(member_id=""), 9, does="asks for a member id")
    m.asks(m.join_request(), 9, does="joins")
    m.asks(m.sync_request(), 5, does="syncs")
    a.owns()
    a.owns()
    m.asks(m.join_request(), 9, does="rejoins")
    m.asks(m.sync_request(), 5, does="syncs")
    for generation in (-1, 0, 1, 2, 3, 4, 9):
        for partition in (0, 3):
            p.commits_offsets(
                group,
                {(topic, partition): generation},
                does=f"commits offsets of partition {partition} as m in generation {generation}",
                member_id=m.member_id,
                generation_id=generation,
            )
    p.commits()
    a.fetches_offsets(None, stable=True)


@story(settings=SHORT_MEMORY, sections=["transactions"], lasts_ms=70_000)
def pending_offsets_are_not_forgotten(s: Story) -> None:
    """A minute after its commit an offset expires, unless one is pending for its partition; groups with pending ones
    stay."""
    topic = Stagehand(s).topic("orders", partitions=2)
    some, only, none = (s.group(name) for name in ("some", "only", "none"))
    p, admin = Producer(s, "p", timeout_ms=600_000), Admin(s, "admin")
    p.init()
    mark = s.mark()
    admin.commits(some, {(topic, 0): 1, (topic, 1): 2})
    admin.commits(none, {(topic, 0): 3})
    p.commits_offsets(some, {(topic, 0): 10})
    p.commits_offsets(only, {(topic, 0): 20})
    s.wait_until(mark, 63_000, "a minute and more than a look")
    for group in (some, only, none):
        admin.describes(group)
        admin.fetches(group, {topic: [0, 1]})
        admin.fetches(group, {topic: [0, 1]}, stable=True)
    p.aborts()
    s.wait(1_500, "the coordinator looks through its groups")
    for group in (some, only, none):
        admin.describes(group)
        admin.fetches(group, {topic: [0, 1]})
