"""Sessions and rebalance timeouts of consumer groups (KIP-848). Real time, short timeouts."""

from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import DeleteGroupsRequest, IncrementalAlterConfigsRequest
from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.members import Member
from tests.conformance.settings import CONSUMERS
from tests.conformance.stories.configs import GROUP, SET
from tests.conformance.stories.consumer_classic_members import offers
from tests.conformance.story import Story, story


def short_session(s: Story, group: str, session_ms: int = 2500) -> None:
    """A session of ``session_ms`` for the group, known to its coordinator: one who joins another group is told so."""
    stage, probe = Stagehand(s), Consumer(s, "probe", group_id=f"{s.name}-probe", topics=[])
    configs = (
        AlterableConfig(name="consumer.session.timeout.ms", config_operation=SET, value=str(session_ms)),
        AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=SET, value="500"),
    )
    resources = tuple(
        AlterConfigsResource(resource_type=GROUP, resource_name=name, configs=configs)
        for name in (group, probe.group_id)
    )
    stage.ask(IncrementalAlterConfigsRequest(resources=resources, validate_only=False))
    while stage.ask(probe.join_request()).heartbeat_interval_ms != 500:
        s.target.wait(25)
    stage.ask(probe.request(member_epoch=-1))
    stage.ask(DeleteGroupsRequest(groups_names=(probe.group_id,)))
    s.target.wait(s.target.settle_ms)


@story(settings=CONSUMERS, sections=["848 9"], lasts_ms=8000)
def a_silent_consumer_is_removed(s: Story) -> None:
    """Its partitions go to the others; its next heartbeat is refused, and it can join again."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=4)
    short_session(s, group)
    a, b = (Consumer(s, each, group_id=group, topics=topics) for each in "ab")
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    settled(a, b)
    for _ in range(3):
        s.wait(1000, "less than the session")
        a.heartbeats()
    admin.looks_at(group)
    a.heartbeats()
    b.heartbeats()
    b.joins(does="joins again")
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 9"], lasts_ms=8000)
def the_last_silent_consumer_is_removed(s: Story) -> None:
    """The group becomes empty; commits and refused heartbeats did not extend any session."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    short_session(s, group)
    a, admin = Consumer(s, "a", group_id=group, topics=topics), Watcher(s, "admin")
    a.joins()
    for _ in range(3):
        s.wait(1000, "half of the session")
        a.commits({(topics[0], 0): 1})
        a.heartbeats(does="heartbeats with too great an epoch", member_epoch=99)
    admin.looks_at(group)
    a.heartbeats()
    a.joins()


@story(settings=CONSUMERS, sections=["848 7", "848 9"], lasts_ms=8000)
def a_static_consumer_that_is_away_too_long(s: Story) -> None:
    """Its session times out while it is away."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    short_session(s, group)
    a, admin = Consumer(s, "a", group_id=group, topics=topics, instance="i"), Watcher(s, "admin")
    a.joins()
    s.wait(1000, "half of the session")
    a.leaves(-2)
    admin.looks_at(group)
    s.wait(2300, "the session that began with the join is over")
    admin.looks_at(group)
    a.joins()


@story(settings=CONSUMERS, sections=["848 9"], lasts_ms=8000)
def a_consumer_that_does_not_give_back_in_time(s: Story) -> None:
    """It is removed although it sends heartbeats."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=2)
    a = Consumer(s, "a", group_id=group, topics=topics, rebalance_ms=2000)
    b = Consumer(s, "b", group_id=group, topics=topics)
    admin = Watcher(s, "admin")
    a.joins()
    b.joins()
    a.heartbeats()
    for _ in range(3):
        s.wait(900, "it must give back soon")
        a.heartbeats()
    admin.looks_at(group)
    b.heartbeats()
    a.joins(does="joins again")
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 9"], lasts_ms=8000)
def a_consumer_that_gives_back_in_time(s: Story) -> None:
    """Then its rebalance timeout has no effect, and neither has that of a member that only waits."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=3)
    a = Consumer(s, "a", group_id=group, topics=topics, rebalance_ms=1500)
    b = Consumer(s, "b", group_id=group, topics=topics, rebalance_ms=1500)
    c = Consumer(s, "c", group_id=group, topics=topics, rebalance_ms=20_000)
    c.joins()
    a.joins()
    b.joins()
    c.heartbeats()
    s.wait(2500, "those who wait are not hurried")
    a.heartbeats()
    b.heartbeats()
    c.owns()
    settled(a, b, c)
    a.leaves()
    b.heartbeats()
    c.heartbeats()
    s.wait(2500, "nobody has to give anything back")
    settled(b, c)
    Watcher(s, "admin").looks_at(group)


@story(settings=CONSUMERS, sections=["848 9", "848 12.1"], lasts_ms=4000)
def classic_members_are_late_in_a_group_that_changes_its_type_twice(s: Story) -> None:
    """One owes a SyncGroup and one a JoinGroup. The group becomes a classic one and a consumer group again meanwhile; both
    are removed when their rebalance timeout is over."""
    group, topics = s.group(), [s.topic_name("nowhere")]
    a, b = (Consumer(s, each, group_id=group, topics=topics, assignor="range") for each in "ab")
    admin = Watcher(s, "admin")
    m, n, o = (
        Member(s, each, group_id=group, member_id=each, offers=offers(*topics), rebalance_ms=1500) for each in "mno"
    )
    n.rebalance_ms = 60_000
    a.joins()
    for member in (m, n):
        member.joins()
        member.asks(member.sync_request(), 5, does="syncs")
    o.joins()
    m.heartbeats()
    a.leaves()
    admin.describes(group)
    b.joins()
    admin.looks_at(group)
    s.wait(2000, "longer than the rebalance timeout")
    admin.looks_at(group)
    for member in (m, n, o):
        member.heartbeats()


@story(settings=CONSUMERS, sections=["848 12"], lasts_ms=6000)
def the_join_phase_of_a_classic_group_ends_after_two_changes_of_its_type(s: Story) -> None:
    """A consumer upgrades a group in its join phase, and the group is a classic one again when that phase times out: with
    members, of which the dynamic ones are removed, or without, and then a generation is passed over."""
    topics, admin = [s.topic_name("nowhere")], Watcher(s, "admin")
    for suffix in ("replaced", "emptied"):
        group = s.group(suffix)
        m, n = (Member(s, each, group_id=group, offers=offers(*topics), rebalance_ms=1500) for each in "mn")
        m.enters()
        m.syncs({})
        n.enters_parked()
        a = Consumer(s, "a", group_id=group, topics=topics, assignor="range", instance="i")
        a.joins()
        n.is_answered()
        n.leaves()
        a.heartbeats()
        b = Member(s, "b", group_id=group, offers=offers(*topics), rebalance_ms=1500)
        if suffix == "replaced":
            b.instance = "i"
            b.joins(does="joins in the place of the consumer")
        else:
            m.leaves()
            a.leaves()
            b.asks_for_an_id()
        admin.describes(group)
        s.wait(2000, "longer than the rebalance timeout")
        admin.describes(group)
        m.heartbeats()
        b.heartbeats()
        b.joins()
        b.syncs({})
        admin.describes(group)
