"""Regular expressions of consumer groups: which topics they match, and when (KIP-848)."""

from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, settled, topics_with_ids
from tests.conformance.offsets_topic import OFFSETS_TOPIC
from tests.conformance.settings import CONSUMERS
from tests.conformance.stories.consumer_topics import create, delete
from tests.conformance.story import Story, story


def resolved(s: Story, group: str, epoch: int) -> None:
    """Wait until the group has this epoch, and a moment longer: expressions are looked up beside the requests."""
    admin = Watcher(s, "stagehand")
    stage = Stagehand(s)
    for _ in range(200):
        request = admin.describe_request(group)
        if stage.ask(request).groups[0].group_epoch >= epoch:
            break
        s.target.wait(25)
    s.target.wait(s.target.settle_ms)


@story(settings=CONSUMERS, sections=["848 8"])
def the_first_regular_expression_of_a_group(s: Story) -> None:
    """The first response has no partitions; when the topics have been resolved, the next one has them."""
    group, stage = s.group(), Stagehand(s)
    topics_with_ids(s, stage, orders=2, payments=1, other=1)
    expression = f"{s.name}-(orders|pay.*)"
    a, admin = Consumer(s, "a", group_id=group, regex=expression, assignor="range"), Watcher(s, "admin")
    a.joins()
    resolved(s, group, 2)
    admin.looks_at(group)
    a.heartbeats()
    admin.looks_at(group, version=0)
    a.owns()
    a.heartbeats(does="says the same expression", subscribed_topic_regex=expression)
    a.leaves()
    admin.looks_at(group)
    admin.deletes(group)


@story(settings=CONSUMERS, sections=["848 8"])
def regular_expressions_that_are_refused(s: Story) -> None:
    """Invalid ones at the first heartbeat and later; version 0 does not support any."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1)
    a = Consumer(s, "a", group_id=group, regex="x")
    for number, expression in enumerate(
        ("(", "[a", "a**", "(?=a)", "\\\\1", "(?<n>a", "a{2,1}", "\\", "*", "(?P<n>a)", "")
    ):
        a.epoch, a.group_id = 0, s.group(str(number))
        a.joins(does=f"joins with {expression!r}", subscribed_topic_regex=expression)
        s.target.wait(s.target.settle_ms)  # its topics are looked up beside the requests
    a.epoch, a.group_id = 0, group
    a.joins(does="joins in version 0", version=0)
    a.joins(does="joins with topics", subscribed_topic_names=tuple(topics), subscribed_topic_regex=None)
    a.heartbeats(does="says an invalid expression", subscribed_topic_regex="(")
    a.heartbeats(does="says an invalid expression and no topics", subscribed_topic_regex="[", subscribed_topic_names=())
    a.heartbeats()
    Watcher(s, "admin").looks_at(group)


@story(settings=CONSUMERS, sections=["848 8"])
def a_regular_expression_that_others_know(s: Story) -> None:
    """A second member with the same expression gets its topics at once; the expression is deleted with its last member."""
    group, stage = s.group(), Stagehand(s)
    topics_with_ids(s, stage, orders=4)
    expression = f"{s.name}-o.*"
    a, b = (Consumer(s, each, group_id=group, regex=expression) for each in "ab")
    admin = Watcher(s, "admin")
    a.joins()
    resolved(s, group, 2)
    a.heartbeats()
    b.joins()
    settled(a, b)
    admin.looks_at(group)
    a.heartbeats(does="takes its expression back", subscribed_topic_regex="")
    settled(a, b)
    admin.looks_at(group)
    b.leaves()
    admin.looks_at(group)
    a.heartbeats()
    a.leaves()


@story(settings=CONSUMERS, sections=["848 8"])
def topics_and_a_regular_expression(s: Story) -> None:
    """A member can have both: it gets the topics of either."""
    group, stage = s.group(), Stagehand(s)
    topics, _ = topics_with_ids(s, stage, orders=1, payments=1)
    a, admin = Consumer(s, "a", group_id=group, topics=topics[:1], regex=f"{s.name}-p.*"), Watcher(s, "admin")
    a.joins()
    resolved(s, group, 3)
    a.heartbeats()
    admin.looks_at(group)
    a.heartbeats(does="wants no topics by name", subscribed_topic_names=())
    a.owns()
    admin.looks_at(group)
    a.heartbeats(does="wants the topic by name too", subscribed_topic_names=tuple(topics[1:]))
    a.owns()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 8"], lasts_ms=14000)
def a_regular_expression_that_matches_later(s: Story) -> None:
    """Nothing matches at first; a created topic matches when the expression is resolved again, after ten seconds."""
    group, stage = s.group(), Stagehand(s)
    a, admin = Consumer(s, "a", group_id=group, regex=f"{s.name}-later"), Watcher(s, "admin")
    a.joins()
    resolved(s, group, 1)
    a.heartbeats()
    admin.looks_at(group)
    create(s, stage, "later", 2)
    a.heartbeats()
    s.wait(11_000, "expressions are looked up again after ten seconds at the earliest")
    a.heartbeats(does="heartbeats, which has the expression looked up")
    resolved(s, group, 2)
    a.heartbeats()
    admin.looks_at(group)
    a.owns()


@story(settings=CONSUMERS, sections=["848 8"])
def what_regular_expressions_match(s: Story) -> None:
    """The whole name, in RE2's syntax; internal topics too."""
    stage = Stagehand(s)
    s.names.learn_topic(stage.topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC)
    topics_with_ids(s, stage, a=1, ab=1, b1=1)
    admin = Watcher(s, "admin")
    expressions = (
        f"{s.name}-a",
        f"{s.name}-a.?",
        f"{s.name}",
        f".*{s.name}.*",
        f"^{s.name}-a$",
        f"(?i){s.name.upper()}-A",
        f"{s.name}-[a-z]+",
        f"{s.name}-\\w\\d",
        "__consumer.*",
        f"{s.name}-(?P<n>a|b1)",
        f"{s.name}-a|x",
        "zzz.*",
    )
    for number, expression in enumerate(expressions):
        group = s.group(str(number))
        c = Consumer(s, "c", group_id=group, regex=expression)
        c.joins(does=f"joins with expression {number}")
        resolved(s, group, 1 if number in NO_MATCH else 2)
        c.heartbeats()
        admin.looks_at(group)


NO_MATCH = (2, 11)
"""Expressions of the story above that match nothing."""


@story(settings=CONSUMERS, sections=["848 8"])
def topics_of_a_regular_expression_that_was_replaced(s: Story) -> None:
    """While the new expression is not resolved, other topics change nothing, nor do those of the old one: only its own do."""
    group, stage, admin = s.group(), Stagehand(s), Watcher(s, "admin")
    topics_with_ids(s, stage, orders=1, payments=2)
    a = Consumer(s, "a", group_id=group, topics=[s.topic_name("orders")])
    b = Consumer(s, "b", group_id=group, regex=f"{s.name}-pay.*")
    a.joins()
    b.joins()
    resolved(s, group, 4)
    settled(a, b)
    b.heartbeats(does="says another expression", subscribed_topic_regex=f"{s.name}-c.*")
    a.heartbeats()
    topics_with_ids(s, stage, other=1)
    a.heartbeats(does="heartbeats after another topic was created")
    delete(s, stage, s.topic_name("payments"))
    a.heartbeats(does="heartbeats after a topic of the old expression was deleted")
    admin.looks_at(group)
    delete(s, stage, s.topic_name("orders"))
    a.heartbeats(does="heartbeats after its own topic was deleted")
    a.owns()
    admin.looks_at(group)


@story(settings=CONSUMERS, sections=["848 8"])
def an_expression_that_is_not_resolved_yet_and_names(s: Story) -> None:
    """Kafka still takes the subscriptions for equal, and assigns to all what the newcomer subscribes to so far: nothing. Topics
    that change meanwhile, to which no member subscribes, do not matter."""
    group, stage, admin = s.group(), Stagehand(s), Watcher(s, "admin")
    topics, _ = topics_with_ids(s, stage, orders=2, payments=3)
    a = Consumer(s, "a", group_id=group, topics=topics)
    b = Consumer(s, "b", group_id=group, topics=topics[1:])
    b.joins()
    a.joins()
    a.owns()
    a.leaves()
    delete(s, stage, topics[0])
    a.topics, a.regex = None, "nothing.*"
    a.joins(does="joins with an expression")
    resolved(s, group, 4)
    admin.looks_at(group)
    b.heartbeats()
    b.owns({})
    admin.looks_at(group)
    b.heartbeats()


@story(settings=CONSUMERS, sections=["848 8"])
def an_expression_that_is_not_resolved_yet_after_one_that_was(s: Story) -> None:
    """A resolved expression went with the member before, so that Kafka takes subscriptions for different: all keep theirs."""
    group, stage, admin = s.group(), Stagehand(s), Watcher(s, "admin")
    topics, _ = topics_with_ids(s, stage, orders=2, payments=3)
    a = Consumer(s, "a", group_id=group, regex=f"{s.name}-ord.*")
    b = Consumer(s, "b", group_id=group, topics=topics[1:])
    a.joins()
    resolved(s, group, 2)
    b.joins()
    a.owns()
    a.leaves()
    a.regex = "nothing.*"
    a.joins(does="joins with another expression")
    resolved(s, group, 4)
    admin.looks_at(group)
    b.heartbeats()
    b.owns()
    admin.looks_at(group)
