"""Values of configurations as Java and Kafka parse them: numbers in unusual notations."""

from groupcoord.protocol.apis import alter_configs
from groupcoord.protocol.messages import AlterConfigsRequest
from tests.conformance.actors import Client, Stagehand
from tests.conformance.stories.configs import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    SPREAD_MS,
    SUBTRACT,
    TOPIC,
    alter,
    describe,
)
from tests.conformance.stories.topics import create, wanted
from tests.conformance.story import Story, story


@story(sections=["configs"])
def doubles_as_java_parses_them(s: Story) -> None:
    """Hexadecimal doubles, with suffixes, too great, too small and not a number, for a topic in all requests, and a broker."""
    stage, admin = Stagehand(s), Client(s, "admin")
    topic, ratio = stage.topic("orders"), "min.cleanable.dirty.ratio"
    valid = (
        "0x1p-1",
        "0X.8P-1",
        "+0x1.p-2f",
        " 0x0p99999999999D ",
        "0x1p-1075",
        "1d",
        "NaN",
        "-0",
        "4.9e-324",
        "0x1p-1074",
    )
    invalid = (
        "0x1p3",
        "-0x1p-1",
        "0x1",
        "0xp1",
        "0x.p1",
        "0x1p",
        "0x1p-1L",
        "0x1p-1_0",
        "1_0",
        "nan",
        "NaNd",
        "Infinity",
        "",
    )
    for value in valid:
        admin.asks(alter(TOPIC, topic, (ratio, SET, value)), does=f"sets {value!r}")
        s.target.wait(SPREAD_MS)
        admin.asks(describe(TOPIC, topic, [ratio]), 4, does="describes the topic")
    for value in valid + invalid:
        config = alter_configs.AlterableConfig(name=ratio, value=value)
        resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=(config,))
        admin.asks(AlterConfigsRequest(resources=(resource,), validate_only=True), does=f"tries {value!r}")
        new = wanted(s.topic_name("new"), configs={ratio: value})
        admin.asks(create(new, validate_only=True), 4, does=f"tries to create a topic with {value!r}")
    bytes_per_second = "log.cleaner.io.max.bytes.per.second"
    for value in (
        "0x1p3",
        "-0x1p99999999999",
        "0x1p99999999999",
        "0x1.fffffffffffff8p1023",
        "-0x1p-1074",
        "0x1.8p-1073",
    ):
        admin.asks(alter(BROKER, "1", (bytes_per_second, SET, value)), does=f"sets {value!r} for the broker")
        s.target.wait(SPREAD_MS)
        admin.asks(describe(BROKER, "1", [bytes_per_second]), 4, does="describes the broker")
    admin.asks(alter(BROKER, "1", (bytes_per_second, DELETE, None)), does="deletes it")


@story(sections=["configs"])
def lists_of_a_broker_that_cannot_be_changed(s: Story) -> None:
    """All operations on lists that are fixed at the start, with and without a default, of one broker and of all."""
    admin = Client(s, "admin")
    for name in ("1", ""):
        for key in (
            "process.roles",
            "controller.listener.names",
            "early.start.listeners",
            "log.dirs",
            "group.consumer.assignors",
            "group.coordinator.rebalance.protocols",
            "config.providers",
            "controller.quorum.voters",
            "sasl.oauthbearer.expected.audience",
        ):
            for operation in (SET, DELETE, APPEND, SUBTRACT):
                for value in (None,) if operation == DELETE else ("", "broker", "a,b,a", ","):
                    request = alter(BROKER, name, (key, operation, value), validate_only=True)
                    does = f"does {operation} with {value!r} to {key} of broker {name!r}"
                    admin.asks(request, does=does)


@story(sections=["configs"])
def listeners_that_cannot_be_parsed(s: Story) -> None:
    """Listeners without a form, a name, a port or a protocol, and maps of protocols that are none."""
    admin = Client(s, "admin")
    tried = {
        "listeners": (
            "x",
            "A",
            "A://h",
            "A://h:",
            "://h:1",
            "A:PLAINTEXT",
            "A://h:99999999999",
            "A://h:1",
            "b://h:1,x",
            "x,A://h:1",
            "A://[::1",
            "",
            ",",
            "A://h:1,,B://h:2",
        ),
        "listener.security.protocol.map": (
            "x",
            "A:X",
            "A:PLAINTEXT,B",
            "A:Y,,",
            "PLAINTEXT://h",
            "A:",
            ":PLAINTEXT,:X",
        ),
    }
    for key, values in tried.items():
        for value in values:
            admin.asks(alter(BROKER, "1", (key, SET, value), validate_only=True), does=f"tries {value!r} for {key}")
    for key in ("advertised.listeners", "inter.broker.listener.name", "early.start.listeners"):
        for name in ("1", ""):
            admin.asks(alter(BROKER, name, (key, SET, "x"), validate_only=True), does=f"tries to set {key}")
    for key in tried:
        admin.asks(alter(BROKER, "", (key, SET, "x"), validate_only=True), does=f"tries {key} for all brokers")
