"""DescribeConfigs and IncrementalAlterConfigs: of topics and of the broker."""

from collections.abc import Sequence

from groupcoord.protocol.apis.describe_configs import DescribeConfigsResource
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from tests.conformance.actors import Client, Stagehand
from tests.conformance.batches import batch
from tests.conformance.data import DataClient
from tests.conformance.story import Story, story

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


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
    """Unknown topics, bad names, the broker by its number and by none, unknown brokers and kinds."""
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
    """Set, delete, append and subtract, good and bad values, twice the same key, only validated."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic = stage.topic("orders")

    def change(*changes: tuple[str, int, str | None], does: str, version: int = 1, validate_only: bool = False) -> None:
        admin.asks(alter(TOPIC, topic, *changes, validate_only=validate_only), version, does=does)
        s.target.wait(s.target.settle_ms)
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
    """Unknown topics, the same resource twice, unknown kinds, and a limit that takes effect."""
    stage = Stagehand(s)
    topic = stage.topic("orders")
    admin = DataClient(s, "admin")
    one = alter(TOPIC, topic, ("max.message.bytes", SET, "100")).resources[0]
    unknown = alter(TOPIC, s.topic_name("unknown"), ("retention.ms", SET, "1")).resources[0]
    admin.asks(
        IncrementalAlterConfigsRequest(resources=(unknown, one), validate_only=False),
        does="changes an unknown topic and a known one",
    )
    s.target.wait(s.target.settle_ms)
    admin.produces({(topic, 0): batch([b"x" * 100])})
    admin.asks(IncrementalAlterConfigsRequest(resources=(one, one), validate_only=False), does="says a topic twice")
    for kind, name in ((0, "x"), (99, "x"), (TOPIC, ""), (BROKER, "9"), (BROKER, "one")):
        admin.asks(alter(kind, name, ("retention.ms", SET, "1")), does=f"changes resource {name!r} of kind {kind}")
    admin.asks(IncrementalAlterConfigsRequest(resources=(), validate_only=False), does="changes nothing")
