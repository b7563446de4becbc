"""UpdateFeatures, and the responses to clients while a feature has another level (KIP-584, KIP-890, KIP-1071)."""

from typing import Any

from groupcoord.protocol.apis.update_features import FeatureUpdateKey
from groupcoord.protocol.messages import ApiVersionsRequest, UpdateFeaturesRequest
from tests.conformance.actors import Stagehand
from tests.conformance.consumers import Consumer, Watcher, until_coordinated
from tests.conformance.producers import Producer, TransactionsWatcher, until_complete
from tests.conformance.settings import FEATURES
from tests.conformance.story import Story, story
from tests.conformance.transaction_log import show_what_is_logged

UPGRADE, SAFE, UNSAFE = 1, 2, 3


class FeatureAdmin(Watcher):
    """An admin client that changes features."""

    def updates(
        self,
        *updates: tuple[str, int, int],
        version: int = 2,
        does: str = "updates features",
        validate_only: bool = False,
    ) -> Any:
        """UpdateFeatures: names with levels and kinds of upgrade."""
        keys = tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates
        )
        return self.asks(UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only), version, does=does)

    def looks_at_features(self) -> Any:
        """ApiVersions, which says what is finalized."""
        request = ApiVersionsRequest(client_software_name="stories", client_software_version="1.0")
        return self.asks(request, does="looks at the features")

    def changes(self, name: str, level: int, kind: int) -> None:
        """Change one, and wait until the broker, not only the controller, knows it."""
        self.updates((name, level, kind), does=f"sets {name} to {level}")
        until_level(self.story, name, level)


def until_level(s: Story, name: str, level: int) -> None:
    """Wait until the broker says that the feature has that level. Raises StoryBroken."""
    stage = Stagehand(s)
    asking = ApiVersionsRequest(client_software_name="s", client_software_version="1")

    def levels() -> dict[str, int]:
        return {each.name: each.max_version_level for each in stage.ask(asking).finalized_features}

    s.until(lambda: levels().get(name, 0) == level, f"{name} is {level}")


@story(sections=["features"], settings=FEATURES)
def updating_features(s: Story) -> None:
    """Refused and accepted updates, and their results; at the end all levels are as before."""
    admin = FeatureAdmin(s, "admin")
    admin.looks_at_features()
    for version in range(3):
        admin.updates(("transaction.version", 1, UPGRADE), version=version, does="lowers a level, and does not say so")
        admin.updates(("transaction.version", 2, UPGRADE), version=version, does="sets the level that it has")
        admin.updates(version=version, does="updates nothing")
        admin.updates(("no.such.feature", 1, UPGRADE), version=version, does="raises an unknown feature")
    admin.updates(("no.such.feature", 0, UPGRADE), does="sets an unknown feature to 0")
    admin.updates(("no.such.feature", 0, SAFE), does="lowers an unknown feature to 0")
    admin.updates(("", 1, UPGRADE), does="updates a feature without a name")
    for name in ("transaction.version", "group.version", "metadata.version", "kraft.version", "share.version"):
        for level in (-1, 31):
            for kind in (UPGRADE, SAFE, UNSAFE, 0, 4):
                admin.updates((name, level, kind), does=f"sets {name} to {level}")
    for kind in (SAFE, UNSAFE):
        admin.updates(("transaction.version", 2, kind), does="lowers to the level that it has")
        admin.updates(("metadata.version", 29, kind), does="lowers metadata.version")
        admin.updates(("metadata.version", 7, kind), does="lowers metadata.version to the lowest")
        admin.updates(("metadata.version", 6, kind), does="lowers metadata.version too far")
        admin.updates(("kraft.version", 1, kind), does="lowers kraft.version to more")
        admin.updates(("kraft.version", 0, kind), does="lowers kraft.version to what it has")
    admin.updates(("metadata.version", 30, UPGRADE), does="sets metadata.version to what it has")
    admin.updates(("metadata.version", 29, UPGRADE), does="raises metadata.version to less")
    admin.updates(("kraft.version", 0, UPGRADE), does="sets kraft.version to what it has")
    admin.updates(("kraft.version", 1, UPGRADE), does="would raise kraft.version", validate_only=True)
    admin.updates(("transaction.version", 0, SAFE), does="would lower a level", validate_only=True)
    admin.updates(("transaction.version", 0, SAFE), ("group.version", 7, UPGRADE), does="one of two is refused")
    admin.updates(
        ("transaction.version", 9, UPGRADE),
        ("group.version", 7, UPGRADE),
        ("share.version", 5, UPGRADE),
        ("streams.version", 5, UPGRADE),
        does="everything is refused, and one of it is named",
    )
    admin.looks_at_features()
    admin.updates(
        ("transaction.version", 9, UPGRADE), ("transaction.version", 1, SAFE), does="names one twice", version=1
    )
    until_level(s, "transaction.version", 1)
    admin.looks_at_features()
    admin.updates(
        ("transaction.version", 0, UNSAFE),
        ("group.version", 0, SAFE),
        ("streams.version", 0, SAFE),
        ("share.version", 0, SAFE),
        ("eligible.leader.replicas.version", 0, SAFE),
        does="lowers all",
        version=1,
    )
    until_level(s, "transaction.version", 0)
    admin.looks_at_features()
    admin.updates(("transaction.version", 1, SAFE), does="lowers to more")
    admin.updates(
        ("transaction.version", 2, UPGRADE),
        ("group.version", 1, UPGRADE),
        ("streams.version", 1, UPGRADE),
        ("share.version", 1, UPGRADE),
        ("eligible.leader.replicas.version", 1, UPGRADE),
        does="raises all",
        version=1,
    )
    until_level(s, "transaction.version", 2)
    admin.looks_at_features()


@story(sections=["features"], settings=FEATURES)
def updating_several_features_in_vain(s: Story) -> None:
    """Of several updates that are wrong, the error is that of the first one in the order of a hash map."""
    admin = FeatureAdmin(s, "admin")
    wrong = [("share.version", 30, 1), ("metadata.version", 99, 1), ("group.version", 29, 5), ("", 99, 0)]
    for one in wrong:
        for other in wrong:
            if one != other:
                admin.updates(one, other, does=f"updates {one[0]!r} and {other[0]!r}")
    admin.updates(*wrong, does="updates all")
    admin.updates(*wrong[::-1], does="updates all, the last one first")


@story(sections=["features"], settings=FEATURES)
def no_consumer_groups_of_group_version_0(s: Story) -> None:
    """Members are refused while the feature is off; the group is unchanged when it is on again."""
    admin = FeatureAdmin(s, "admin")
    topic = Stagehand(s).topic("orders", 2)
    until_coordinated(s, Stagehand(s), s.group(), topic, 2)
    member = Consumer(s, "member", group_id=s.group(), topics=[topic])
    member.joins()
    admin.changes("group.version", 0, SAFE)
    member.heartbeats()
    Consumer(s, "other", group_id=s.group("other"), topics=[topic]).joins()
    admin.looks_at(s.group())
    admin.lists()
    admin.changes("group.version", 1, UPGRADE)
    member.heartbeats()
    admin.looks_at(s.group())


def _transactions(s: Story, level: int) -> None:
    admin = FeatureAdmin(s, "admin")
    stage = Stagehand(s)
    topic, watcher = stage.topic("orders", 2), TransactionsWatcher(s, "watcher")
    began, ended, old, new, implicit = (Producer(s, name) for name in ("began", "ended", "old", "new", "implicit"))
    for each in (began, ended):
        each.init()
        each.produces({(topic, 0): [b"begun at level 2"]})
    ended.commits()
    admin.changes("transaction.version", level, SAFE)
    began.commits(does="commits what it began at level 2")
    began.produces({(topic, 0): [b"goes on"]})
    ended.init(does="starts again, after it ended something at level 2")
    ended.init(does="starts once more")
    old.init()
    old.adds_partitions({topic: [0]})
    old.produces({(topic, 0): [b"committed"]}, 11)
    old.adds_offsets(s.group())
    old.commits_offsets(s.group(), {(topic, 1): 3}, 4)
    old.commits(4)
    watcher.describes_transactions(f"{s.name}-old")
    old.adds_partitions({topic: [0, 1]})
    old.produces({(topic, 1): [b"aborted"]}, 11)
    old.aborts(4)
    old.aborts(4, does="aborts again")
    old.adds_partitions({topic: [1]})
    old.produces({(topic, 1): [b"not ended"]}, 11)
    old.init(does="starts again, with a transaction open")
    old.init(does="starts once more")
    old.commits(4, does="commits nothing")
    new.init()
    new.adds_partitions({topic: [0]})
    new.produces({(topic, 0): [b"by a client that did not look"]}, 11)
    new.commits()
    new.aborts(4)
    new.init()
    implicit.init()
    implicit.produces({(topic, 0): [b"adds its partition"]})
    implicit.commits_offsets(s.group(), {(topic, 1): 4})
    implicit.commits(4)
    for name in ("new", "implicit"):
        watcher.describes_transactions(f"{s.name}-{name}")
    slow = Producer(s, "slow", timeout_ms=200)
    slow.init()
    slow.adds_partitions({topic: [1]})
    slow.produces({(topic, 1): [b"times out"]}, 11)
    until_complete(s, stage, f"{s.name}-slow", state="CompleteAbort")
    watcher.describes_transactions(f"{s.name}-slow")
    slow.commits(4)
    slow.goes_on()
    slow.init()
    admin.changes("transaction.version", 2, UPGRADE)
    old.adds_partitions({topic: [1]})
    old.commits(does="commits with a version of its own again")
    watcher.describes_transactions(f"{s.name}-old", f"{s.name}-new", f"{s.name}-implicit", f"{s.name}-began")
    watcher.describes_producers({topic: [0, 1]})
    for name in ("began", "ended", "old", "new", "implicit", "slow"):
        show_what_is_logged(s, f"{s.name}-{name}")


@story(sections=["features", "transactions"], settings=FEATURES)
def transactions_of_version_0(s: Story) -> None:
    """Log values cannot say that a client uses version 2: such a state change fails, and stays pending for ever."""
    _transactions(s, 0)


@story(sections=["features", "transactions"], settings=FEATURES)
def transactions_of_version_1(s: Story) -> None:
    """The log has flexible record values; epochs work as in version 0."""
    _transactions(s, 1)
