"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs: configurations of topics, brokers and groups."""

from collections.abc import Mapping, Sequence

from groupcoord.protocol.apis import alter_configs
from groupcoord.protocol.apis.describe_configs import DescribeConfigsResource
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from tests.conformance.actors import Client, Stagehand
from tests.conformance.batches import batch
from tests.conformance.data import DataClient
from tests.conformance.story import Story, story

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


SPREAD_MS = 400
"""How long a change takes at most, from the controller to what the broker answers, where nothing says that it is there."""


def until_shown(s: Story, stage: Stagehand, resource: tuple[int, str], values: Mapping[str, str | None]) -> None:
    """Wait until the broker, not only the controller, has these values. Raises StoryBroken when it never does."""
    kind, name = resource

    def found() -> dict[str, str | None]:
        return {each.name: each.value for each in stage.ask(describe(kind, name, list(values)), 4).results[0].configs}

    s.until(lambda: found() == dict(values), f"the configs of {name} are {values}")


def describe(
    kind: int, name: str, keys: Sequence[str] | None, *, synonyms: bool = False, text: bool = False
) -> DescribeConfigsRequest:
    """A DescribeConfigs of one resource; ``None`` asks for all keys."""
    wanted = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else tuple(keys)
    )
    return DescribeConfigsRequest(resources=(wanted,), include_synonyms=synonyms, include_documentation=text)


def alter(
    kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    """An IncrementalAlterConfigs of one resource."""
    configs = tuple(
        AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


@story(sections=["configs"])
def every_version_of_describing_configs(s: Story) -> None:
    """Some keys and all keys of a topic, with and without synonyms and documentation, by version."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic = stage.topic("orders", retention_ms="1000", cleanup_policy="compact,delete")
    for version in range(1, 5):
        admin.asks(describe(TOPIC, topic, ["retention.ms", "segment.bytes"]), version, does="describes two configs")
        admin.asks(
            describe(TOPIC, topic, ["retention.ms", "segment.bytes"], synonyms=True),
            version,
            does="describes with synonyms",
        )
    admin.asks(describe(TOPIC, topic, None), 4, does="describes everything")
    admin.asks(describe(TOPIC, topic, None, synonyms=True), 4, does="describes everything with synonyms")
    admin.asks(describe(TOPIC, topic, ["retention.ms"], text=True), 4, does="describes with documentation")
    admin.asks(describe(TOPIC, topic, []), 4, does="asks for no keys")
    admin.asks(describe(TOPIC, topic, ["no.such.config", "retention.ms"]), 4, does="asks for an unknown key")


@story(sections=["configs"])
def configs_of_odd_resources(s: Story) -> None:
    """Unknown topics, bad names, the broker by its id and by an empty name, unknown brokers and resource types."""
    admin = Client(s, "admin")
    keys = [
        "group.initial.rebalance.delay.ms",
        "group.min.session.timeout.ms",
        "offsets.retention.minutes",
        "num.partitions",
    ]
    for kind, name in (
        (TOPIC, s.topic_name("unknown")),
        (TOPIC, ""),
        (TOPIC, "bad name"),
        (BROKER, "1"),
        (BROKER, "9"),
        (BROKER, "one"),
        (BROKER, ""),
        (0, "x"),
        (99, "x"),
    ):
        admin.asks(describe(kind, name, keys), 4, does=f"describes resource {name!r} of kind {kind}")
    admin.asks(describe(BROKER, "1", keys, synonyms=True), 4, does="describes the broker with synonyms")
    admin.asks(
        describe(TOPIC, "__consumer_offsets", ["cleanup.policy", "segment.bytes", "compression.type"]),
        4,
        does="describes the offsets topic",
    )
    admin.asks(DescribeConfigsRequest(resources=()), 4, does="describes nothing")


@story(sections=["configs"])
def configs_of_a_topic_change(s: Story) -> None:
    """Set, delete, append and subtract; valid and invalid values, a key listed twice, validate-only."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic = stage.topic("orders")

    def change(*changes: tuple[str, int, str | None], does: str, version: int = 1, validate_only: bool = False) -> None:
        admin.asks(alter(TOPIC, topic, *changes, validate_only=validate_only), version, does=does)
        s.target.wait(SPREAD_MS)
        admin.asks(describe(TOPIC, topic, ["retention.ms", "cleanup.policy", "max.message.bytes"]), 4, does="looks")

    change(("retention.ms", SET, "1000"), ("max.message.bytes", SET, "5000"), does="sets two")
    change(("retention.ms", DELETE, None), does="deletes one", version=0)
    change(("cleanup.policy", APPEND, "compact"), does="appends to a list")
    change(("cleanup.policy", APPEND, "compact"), does="appends again")
    change(("cleanup.policy", SUBTRACT, "delete"), does="subtracts from a list")
    change(("cleanup.policy", SUBTRACT, "nothing"), does="subtracts what is not there")
    change(("retention.ms", SET, "7"), does="only validates", validate_only=True)
    change(("retention.ms", SET, "soon"), ("max.message.bytes", SET, "1"), does="sets one bad and one good")
    change(("retention.ms", APPEND, "5"), does="appends to a number")
    change(("no.such.config", SET, "5"), does="sets an unknown config")
    change(("no.such.config", DELETE, None), does="deletes an unknown config")
    change(("retention.ms", SET, None), does="sets null")
    change(("retention.ms", SET, "5"), ("retention.ms", SET, "6"), does="sets one twice")
    change(("retention.ms", 9, "5"), does="does something unknown")
    change(does="changes nothing")
    change(("max.message.bytes", DELETE, "ignored"), does="deletes with a value")


@story(sections=["configs"])
def configs_of_others_change(s: Story) -> None:
    """Unknown topics, a resource listed twice, unknown types, and a limit that takes effect."""
    stage = Stagehand(s)
    topic = stage.topic("orders")
    admin = DataClient(s, "admin")
    one = alter(TOPIC, topic, ("max.message.bytes", SET, "100")).resources[0]
    unknown = alter(TOPIC, s.topic_name("unknown"), ("retention.ms", SET, "1")).resources[0]
    admin.asks(
        IncrementalAlterConfigsRequest(resources=(unknown, one), validate_only=False),
        does="changes an unknown topic and a known one",
    )
    s.target.wait(SPREAD_MS)
    admin.produces({(topic, 0): batch([b"x" * 100])})
    admin.asks(IncrementalAlterConfigsRequest(resources=(one, one), validate_only=False), does="says a topic twice")
    for kind, name in ((0, "x"), (99, "x"), (TOPIC, ""), (BROKER, "9"), (BROKER, "one")):
        admin.asks(alter(kind, name, ("retention.ms", SET, "1")), does=f"changes resource {name!r} of kind {kind}")
    admin.asks(IncrementalAlterConfigsRequest(resources=(), validate_only=False), does="changes nothing")


def replace(
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]], validate_only: bool = False
) -> AlterConfigsRequest:
    """An AlterConfigs: all configurations of each resource."""
    return AlterConfigsRequest(
        resources=tuple(
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(alter_configs.AlterableConfig(name=key, value=value) for key, value in configs),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


@story(sections=["configs"])
def configs_of_a_topic_are_replaced(s: Story) -> None:
    """AlterConfigs, by version: configs that are not named are deleted; bad values, nulls, names twice, validate-only."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic = stage.topic("orders", retention_ms="1000", cleanup_policy="compact")

    def change(*configs: tuple[str, str | None], does: str, version: int = 2, validate_only: bool = False) -> None:
        admin.asks(replace((TOPIC, topic, configs), validate_only=validate_only), version, does=does)
        s.target.wait(SPREAD_MS)
        admin.asks(describe(TOPIC, topic, ["retention.ms", "cleanup.policy", "max.message.bytes"]), 4, does="looks")

    change(("retention.ms", "2000"), does="keeps one", version=0)
    change(("max.message.bytes", "5000"), ("cleanup.policy", "compact,delete"), does="sets two others", version=1)
    change(("retention.ms", "7"), does="only validates", validate_only=True)
    change(("retention.ms", "soon"), ("max.message.bytes", "1"), does="sets one bad and one good")
    change(("no.such.config", "5"), does="sets an unknown config")
    change(("retention.ms", None), ("cleanup.policy", None), does="sets nulls")
    change(("retention.ms", "5"), ("retention.ms", "6"), does="sets one twice")
    change(("retention.ms", "5"), ("retention.ms", None), does="sets one twice, once to null")
    change(does="keeps nothing")


@story(sections=["configs"])
def configs_of_others_are_replaced(s: Story) -> None:
    """AlterConfigs of brokers, groups, client metrics and invalid resources, and of a resource listed twice."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic, other, group = stage.topic("orders"), stage.topic("pays"), s.topic_name("app")
    subscription = s.topic_name("metrics")
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    attempts: tuple[tuple[int, str, tuple[tuple[str, str | None], ...]], ...] = (
        (TOPIC, s.topic_name("nope"), (("retention.ms", "5"),)),
        (TOPIC, s.topic_name("nope"), (("no.such.config", "5"),)),
        (TOPIC, "bad name", (("retention.ms", "5"),)),
        (TOPIC, "", (("retention.ms", "5"),)),
        (BROKER, "9", (("num.io.threads", "9"),)),
        (BROKER, "one", (("num.io.threads", "9"),)),
        (BROKER, "", (("num.io.threads", "9"),)),
        (BROKER, "1", (("min.insync.replicas", "2"),)),
        (BROKER, "1", (("node.id", "3"), ("process.roles", "broker"))),
        (BROKER, "1", (("num.io.threads", "x"),)),
        (BROKER, "", (("listeners", "PLAINTEXT://:1"),)),
        (LOGGER, "1", (("kafka.server", "DEBUG"),)),
        (LOGGER, "1", (("kafka.server", "DEBUG"), ("kafka.server", "INFO"))),
        (LOGGER, "one", ()),
        (0, "x", (("a", "1"),)),
        (99, "x", (("a", None),)),
        (GROUP, "", ((session, "46000"),)),
        (GROUP, group, (("nope", "6000"),)),
        (GROUP, group, ((session, "1"),)),
        (METRICS, "", (("interval.ms", "1000"),)),
        (METRICS, subscription, (("interval.ms", "1"),)),
        (METRICS, subscription, (("interval.ms", "x"),)),
        (METRICS, subscription, (("nope", "1"),)),
    )
    for kind, name, configs in attempts:
        admin.asks(replace((kind, name, configs)), does=f"replaces the configs of resource {name!r} of kind {kind}")
    for configs in (((session, "46000"),), ((heartbeat, "6000"),), ()):
        admin.asks(replace((GROUP, group, configs)), does="replaces a group's configs")
        until_shown(s, stage, (GROUP, group), {session: "45000", heartbeat: "5000", **dict(configs)})
        admin.asks(describe(GROUP, group, [session, heartbeat]), 4, does="looks")
    for setting in (("log.cleaner.threads", "2"), ("num.network.threads", "4")):
        admin.asks(replace((BROKER, "1", [setting])), does="replaces the broker's configs")
        until_shown(
            s, stage, (BROKER, "1"), {"log.cleaner.threads": "1", "num.network.threads": "3", **dict([setting])}
        )
        admin.asks(describe(BROKER, "1", ["log.cleaner.threads", "num.network.threads"]), 4, does="looks")
    admin.asks(replace((BROKER, "1", [])), does="removes the broker's configs")
    several: tuple[tuple[int, str, list[tuple[str, str | None]]], ...] = (
        (TOPIC, topic, [("retention.ms", "7")]),
        (TOPIC, s.topic_name("nope"), []),
        (77, "x", []),
    )
    admin.asks(replace(*several), does="replaces several")
    until_shown(s, stage, (TOPIC, topic), {"retention.ms": "7"})
    admin.asks(replace(), does="replaces nothing")
    twice: tuple[tuple[int, str, list[tuple[str, str | None]]], ...] = (
        (TOPIC, topic, [("retention.ms", "1")]),
        (TOPIC, topic, []),
        (TOPIC, other, [("retention.ms", "8")]),
    )
    Client(s, "hasty").parks(replace(*twice), does="names a resource twice")
    Client(s, "hastier").parks(replace((0, "x", []), (99, "x", [])), does="names two of unknown types alike")
    for name in (topic, other):
        admin.asks(describe(TOPIC, name, ["retention.ms"]), 4, does="looks at what became of it")


@story(sections=["configs"])
def resources_with_configs_are_listed(s: Story) -> None:
    """ListConfigResources, by version and type: topics, groups, client metrics, the broker; unknown types."""
    stage, admin = Stagehand(s), Client(s, "admin")
    for suffix in ("b", "a", "c"):
        stage.topic(suffix)
    admin.asks(ListConfigResourcesRequest(resource_types=(GROUP,)), 1, does="lists groups before there are any")
    for suffix in ("two", "one"):
        admin.asks(alter(GROUP, s.topic_name(suffix), ("consumer.session.timeout.ms", SET, "46000")), does="a group")
        admin.asks(alter(METRICS, s.topic_name(suffix), ("interval.ms", SET, "1000")), does="a subscription")
    s.target.wait(SPREAD_MS)
    admin.asks(ListConfigResourcesRequest(), 0, does="lists client metrics")
    admin.asks(ListConfigResourcesRequest(), 1, does="lists everything")
    for types in ((TOPIC,), (BROKER,), (LOGGER,), (METRICS,), (GROUP,), (GROUP, BROKER, LOGGER), (TOPIC, TOPIC)):
        admin.asks(ListConfigResourcesRequest(resource_types=types), 1, does=f"lists the types {types}")
    for types in ((TOPIC, 99), (0,), (-1,)):
        admin.asks(ListConfigResourcesRequest(resource_types=types), 1, does=f"lists the types {types}")
    for suffix in ("two", "one"):
        admin.asks(replace((GROUP, s.topic_name(suffix), [])), does="nothing is configured any more")
        admin.asks(replace((METRICS, s.topic_name(suffix), [])), does="nor here")
    s.target.wait(SPREAD_MS)
    admin.asks(ListConfigResourcesRequest(resource_types=(METRICS, GROUP)), 1, does="lists what is left")


@story(sections=["configs"])
def resources_beside_one_that_is_wrong(s: Story) -> None:
    """An unknown type fails the whole DescribeConfigs, an unknown operation every change that the controller is asked for."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic = stage.topic("orders")
    for kind in (0, 64, -1):
        described = describe(TOPIC, topic, ["retention.ms"]), describe(kind, "x", None), describe(GROUP, "", None)
        asked = tuple(resource for each in described for resource in each.resources)
        admin.asks(DescribeConfigsRequest(resources=asked), 4, does=f"describes a topic and a resource of kind {kind}")
    good = alter(TOPIC, topic, ("retention.ms", SET, "1000"))
    wrongs = [
        alter(TOPIC, topic + "-unknown", ("retention.ms", 4, "1")),
        alter(METRICS, "", ("interval.ms", -1, "1")),
        alter(GROUP, s.group(), ("consumer.session.timeout.ms", 9, "1")),
        alter(BROKER, "1", ("log.cleaner.threads", 4, "1")),
        alter(LOGGER, "1", ("root", 4, "INFO")),
    ]
    others = [
        alter(TOPIC, "", ("retention.ms", SET, "1")),
        alter(GROUP, s.group(), ("consumer.session.timeout.ms", APPEND, "1")),
        alter(TOPIC, s.topic_name("twice"), ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        alter(TOPIC, s.topic_name("null"), ("retention.ms", SET, None)),
        alter(BROKER, "9", ("log.cleaner.threads", SET, "1")),
        alter(99, "x", ("retention.ms", SET, "1")),
    ]
    for wrong in wrongs:
        for validate_only in (True, False):
            resources = tuple(resource for each in [good, wrong, *others] for resource in each.resources)
            request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
            admin.asks(request, 1, does=f"changes with an unknown operation, and {len(others) + 1} others")
        s.target.wait(SPREAD_MS)
        admin.asks(describe(TOPIC, topic, ["retention.ms"]), 4, does="describes the topic")
        stage.ask(alter(TOPIC, topic, ("retention.ms", DELETE, None)))
        s.target.wait(SPREAD_MS)


@story(sections=["configs"])
def values_that_are_refused(s: Story) -> None:
    """Of brokers and topics: numbers with spaces, great doubles, values that contradict others or change too much."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic = stage.topic("orders")
    of_brokers = (
        ("max.connections", ("0", "1")),
        ("max.connection.creation.rate", ("0",)),
        ("log.cleaner.threads", ("0", "2", "3", "2147483647")),
        ("log.cleaner.dedupe.buffer.size", ("1048576", "1048577", "-1", " x ")),
        ("log.cleaner.min.cleanable.ratio", ("2147483647", "-1e-5", " ")),
        ("remote.log.manager.copier.thread.pool.size", ("4", "5", "21")),
        ("remote.log.manager.expiration.thread.pool.size", ("4", "20", "21")),
        ("remote.log.manager.follower.thread.pool.size", ("0", "5")),
        ("metric.reporters", ("", "org.apache.kafka.common.metrics.JmxReporter", "some.Reporter")),
        ("config.providers", ("a,,b", ",")),
        ("log.retention.bytes", ("-9223372036854775808", "5")),
        ("log.local.retention.ms", ("604800000", "604800001", "-1")),
        ("principal.builder.class", (" ", " some.Builder ")),
        ("cordoned.log.dirs", ("*", "", "a,b")),
    )
    for name in ("1", ""):
        for key, values in of_brokers:
            for value in values:
                request = alter(BROKER, name, (key, SET, value), validate_only=True)
                admin.asks(request, does=f"tries {value!r} for {key} of broker {name!r}")
    for key, value in (("retention.ms", " "), ("min.cleanable.dirty.ratio", "1e7"), ("segment.bytes", " 1x")):
        request = alter(TOPIC, topic, (key, SET, value), validate_only=True)
        admin.asks(request, does=f"tries {value!r} for {key} of a topic")
    for threads in ("2", "4"):
        admin.asks(alter(BROKER, "1", ("log.cleaner.threads", SET, threads)), does="sets twice as many cleaners")
        until_shown(s, stage, (BROKER, "1"), {"log.cleaner.threads": threads})
    for threads in ("1", "2", "8", "9", "0"):
        admin.asks(
            alter(BROKER, "1", ("log.cleaner.threads", SET, threads), validate_only=True), does=f"tries {threads}"
        )
    for threads in ("2", "1"):
        admin.asks(alter(BROKER, "1", ("log.cleaner.threads", SET, threads)), does="takes half of them back")
        until_shown(s, stage, (BROKER, "1"), {"log.cleaner.threads": threads})
    admin.asks(alter(BROKER, "1", ("log.cleaner.threads", DELETE, None)), does="sets no number any more")
