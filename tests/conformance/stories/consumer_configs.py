"""Configurations of groups: session timeouts and intervals of one consumer group (KIP-848)."""

from groupcoord.protocol.messages import ListConfigResourcesRequest
from tests.conformance.actors import Client, Stagehand
from tests.conformance.consumers import Consumer, topics_with_ids
from tests.conformance.settings import CONSUMERS
from tests.conformance.stories.configs import APPEND, DELETE, GROUP, SET, SPREAD_MS, alter, describe, until_shown
from tests.conformance.story import Story, story

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL, OFFLOAD = "consumer.assignment.interval.ms", "consumer.assignor.offload.enable"


@story(settings=CONSUMERS, sections=["848 2"])
def configs_of_a_consumer_group(s: Story) -> None:
    """Described before and after they are set and deleted; a group need not exist."""
    group, admin, stage = s.group(), Client(s, "admin"), Stagehand(s)
    for version in range(1, 5):
        admin.asks(describe(GROUP, group, None), version, does="describes a group without configs")
    admin.asks(describe(GROUP, group, None, synonyms=True), 4, does="describes it with synonyms")
    admin.asks(describe(GROUP, group, None, synonyms=True, text=True), 4, does="describes it with documentation")
    for key in (SESSION, HEARTBEAT, INTERVAL, OFFLOAD, "share.session.timeout.ms", "no.such.config"):
        admin.asks(describe(GROUP, group, [key]), 4, does=f"describes {key}")
    admin.asks(alter(GROUP, group, (SESSION, SET, "1000"), (HEARTBEAT, SET, "200")), does="sets two configs")
    until_shown(s, stage, (GROUP, group), {SESSION: "1000", HEARTBEAT: "200"})
    admin.asks(describe(GROUP, group, [SESSION, HEARTBEAT], synonyms=True), 4, does="describes them")
    admin.asks(describe(GROUP, group, None), 4, does="describes everything")
    for version in (0, 1):
        admin.asks(ListConfigResourcesRequest(resource_types=(GROUP,) if version else ()), version, does="lists groups")
    admin.asks(alter(GROUP, group, (SESSION, DELETE, None)), does="deletes one")
    until_shown(s, stage, (GROUP, group), {SESSION: "45000", HEARTBEAT: "200"})
    admin.asks(describe(GROUP, group, [SESSION, HEARTBEAT], synonyms=True), 4, does="describes them")
    admin.asks(alter(GROUP, group, (HEARTBEAT, DELETE, None)), does="deletes the other")
    admin.asks(alter(GROUP, group, (HEARTBEAT, DELETE, None)), does="deletes it again")
    until_shown(s, stage, (GROUP, group), {SESSION: "45000", HEARTBEAT: "5000"})
    admin.asks(describe(GROUP, group, [SESSION, HEARTBEAT], synonyms=True), 4, does="describes them")


@story(settings=CONSUMERS, sections=["848 2"])
def configs_of_groups_that_are_refused(s: Story) -> None:
    """Values out of bounds and not numbers, unknown names, a group without a name, in every version."""
    group, admin = s.group(), Client(s, "admin")
    cases: list[tuple[str, str, str | None]] = [
        ("a session below the minimum", SESSION, "99"),
        ("the shortest session", SESSION, "5001"),
        ("a session above the maximum", SESSION, "600001"),
        ("a negative session", SESSION, "-1"),
        ("a session of 0", SESSION, "0"),
        ("a session that is no number", SESSION, "soon"),
        ("a session without a value", SESSION, None),
        ("an empty session", SESSION, ""),
        ("an interval below the minimum", HEARTBEAT, "9"),
        ("an interval above the maximum", HEARTBEAT, "60001"),
        ("an interval of 0", HEARTBEAT, "0"),
        ("an interval as long as the session", HEARTBEAT, "45000"),
        ("a negative interval between assignments", INTERVAL, "-1"),
        ("no interval between assignments", INTERVAL, "0"),
        ("the longest interval between assignments", INTERVAL, "15000"),
        ("too long an interval between assignments", INTERVAL, "15001"),
        ("an offload that is no truth", OFFLOAD, "maybe"),
        ("an unknown name", "no.such.config", "1"),
        ("a broker's name", "group.consumer.session.timeout.ms", "50000"),
        ("an isolation level for share groups", "share.isolation.level", "read_sometimes"),
    ]
    for version in (0, 1):
        for what, key, value in cases:
            admin.asks(alter(GROUP, group, (key, SET, value)), version, does=f"sets {what}")
            admin.asks(alter(GROUP, group, (key, SET, value), validate_only=True), version, does=f"only tries {what}")
            admin.asks(alter(GROUP, group, (key, DELETE, None)), version, does=f"takes back {what}")
    admin.asks(alter(GROUP, group, (SESSION, APPEND, "1")), does="appends to a number")
    admin.asks(alter(GROUP, "", (SESSION, SET, "50000")), does="sets one of a group without a name")
    admin.asks(alter(GROUP, " ", (SESSION, SET, "50000")), does="sets one of a group with a blank name")
    admin.asks(alter(GROUP, " ", (SESSION, DELETE, None)), does="takes it back")
    admin.asks(alter(GROUP, group, (SESSION, SET, "1000"), (HEARTBEAT, SET, "1000")), does="sets both alike")
    admin.asks(alter(GROUP, group, (SESSION, SET, "1000"), (SESSION, SET, "1001")), does="sets one twice")
    s.target.wait(SPREAD_MS)
    admin.asks(describe(GROUP, "", None), 4, does="describes a group without a name")
    admin.asks(describe(GROUP, group, None), 4, does="describes what is left")


@story(settings=CONSUMERS, sections=["848 2"])
def the_heartbeat_interval_of_one_group(s: Story) -> None:
    """Each response contains the current interval of its group."""
    group, stage, admin = s.group(), Stagehand(s), Client(s, "admin")
    topics, _ = topics_with_ids(s, stage, orders=1)
    a = Consumer(s, "a", group_id=group, topics=topics)
    b = Consumer(s, "b", group_id=s.group("other"), topics=topics)
    a.joins()
    admin.asks(alter(GROUP, group, (HEARTBEAT, SET, "1234")), does="sets the interval")
    _until_it_says(s, a, 1234)
    a.heartbeats()
    b.joins()
    a.heartbeats(does="heartbeats with too great an epoch", member_epoch=9)
    admin.asks(alter(GROUP, group, (HEARTBEAT, DELETE, None)), does="takes it back")
    _until_it_says(s, a, 5000)
    a.heartbeats()
    a.leaves()


def _until_it_says(s: Story, member: Consumer, interval_ms: int) -> None:
    """The broker learns of a config a moment after the controller: ask quietly until it has."""
    stage = Stagehand(s, member.client_id or "")
    for _ in range(100):
        if stage.ask(member.request()).heartbeat_interval_ms == interval_ms:
            return
        s.target.wait(25)


@story(settings=CONSUMERS, sections=["848 2"])
def a_group_with_its_own_assignment_interval(s: Story) -> None:
    """Assignments are computed at most once per interval: until then members keep the old target, and the group is
    Assigning."""
    group, stage, admin = s.group(), Stagehand(s), Client(s, "admin")
    topics, _ = topics_with_ids(s, stage, orders=4)
    a, b, c = (Consumer(s, each, group_id=group, topics=topics) for each in "abc")
    admin.asks(alter(GROUP, group, (INTERVAL, SET, "15000"), (HEARTBEAT, SET, "1234")), does="sets the interval")
    probe = Consumer(s, "a", group_id=group, topics=topics)
    _until_it_says(s, _joined(s, probe), 1234)
    a.epoch = 2
    a.heartbeats()
    b.joins()
    a.heartbeats()
    b.heartbeats()
    c.joins()
    a.owns({})
    b.leaves()
    a.heartbeats()
    c.heartbeats()
    c.heartbeats(does="wants another topic too", subscribed_topic_names=(*topics, "nowhere"))
    a.joins(does="joins again")


def _joined(s: Story, member: Consumer) -> Consumer:
    answer = Stagehand(s, member.client_id or "").ask(member.join_request())
    member.epoch = answer.member_epoch
    return member


@story(settings=CONSUMERS, sections=["848 2"])
def unknown_configs_of_a_group(s: Story) -> None:
    """Of several unknown names, the error has the first one in the order of a hash map that holds all defaults, too."""
    group, admin = s.group(), Client(s, "admin")
    names = ("interval.ms", "compression.type", "match", "preallocate", "ssl.trustmanager.algorithm", "no.such.config")
    for number, one in enumerate(names):
        other = names[number - 1]
        admin.asks(alter(GROUP, group, (one, SET, "1"), (other, SET, "1")), does=f"sets {one} and {other}")
    admin.asks(alter(GROUP, group, *((name, SET, "1") for name in names)), does="sets all")
