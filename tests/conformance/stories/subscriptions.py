"""The topics that the coordinator reads from a consumer's metadata for OffsetDelete, and its reaction to invalid bytes."""

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.embedded import subscription
from tests.conformance.members import Member, stable
from tests.conformance.story import Story, story


@story(gotchas=[50], sections=["9.4", "12.1"])
def every_version_of_a_subscription(s: Story) -> None:
    """Versions 0 to 3 and later are supported: their topics count as subscribed."""
    topic = Stagehand(s).topic("orders", partitions=2)
    admin = Admin(s, "admin")
    for version in (0, 1, 2, 3, 4, 99):
        group = s.group(f"v{version}")
        data = subscription(topic, version=version, owned={topic: [0, 1]}, generation=7, rack="r", user_data=b"mine")
        a = Member(s, "a", group_id=group, offers={"range": data})
        stable(a)
        a.commits({(topic, 0): 5})
        admin.deletes_offsets(group, {topic: [0, 1]})


@story(sections=["9.4", "12.1"])
def metadata_that_is_no_subscription(s: Story) -> None:
    """A consumer group's metadata that is unreadable: the effect on the rebalance and on OffsetDelete."""
    topic = Stagehand(s).topic("orders")
    admin = Admin(s, "admin")
    good = subscription(topic)
    for name, data in {
        "empty": b"",
        "one-byte": b"\x00",
        "version-only": b"\x00\x00",
        "negative-version": b"\xff\xff" + good[2:],
        "cut-in-the-name": good[:10],
        "no-user-data": good[:-4],
        "trailing": good + b"trailing",
        "null-topics": b"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff",
        "words": b"these are words and no subscription",
        "null-topic-name": b"\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff",
    }.items():
        group = s.group(name)
        a = Member(s, "a", group_id=group, offers={"range": data})
        a.enters_parked(patience_ms=1_000)
        if a.generation > 0:
            a.syncs({a: b"share"})
            a.commits({(topic, 0): 5})
        admin.describes(group)
        admin.deletes_offsets(group, {topic: [0]})
