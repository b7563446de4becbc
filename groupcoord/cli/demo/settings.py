"""Who plays: three consumers, each with another client library, and what each of them wants."""

from importlib import metadata, util
from typing import NamedTuple

GROUP = "billing"
TOPIC = "orders"
PARTITIONS = 6

HEARTBEAT_MS = 250
POLL_MS = 100
COMMIT_EVERY_MS = 1_000
INITIAL_DELAY_MS = 300

LONG_SESSION_MS = 10_000
"""For those that do not die: longer than any hiccup of a busy machine."""
SHORT_SESSION_MS = 2_500
"""For the one that dies: what the audience has to sit through."""


class ConsumerSettings(NamedTuple):
    """One consumer. ``protocols`` are the assignors it offers, most wanted first; ``session_ms`` its session timeout."""

    name: str
    library: str
    module: str
    protocols: tuple[str, ...]
    session_ms: int


KILLED = ConsumerSettings(
    "kafka-python", "kafka-python", "kafka_python_consumer", ("sticky", "range", "roundrobin"), SHORT_SESSION_MS
)
LAST = ConsumerSettings("confluent", "confluent-kafka", "confluent_consumer", ("roundrobin", "range"), LONG_SESSION_MS)
# One protocol only: aiokafka 0.14 sends a JoinGroup for each of its assignors, and each starts a rebalance of its own.
LEAVING = ConsumerSettings("aiokafka", "aiokafka", "aiokafka_consumer", ("roundrobin",), LONG_SESSION_MS)

CONSUMERS = (KILLED, LAST, LEAVING)

_MODULES = {"aiokafka": "aiokafka", "kafka-python": "kafka", "confluent-kafka": "confluent_kafka", "rich": "rich"}


def missing_libraries() -> list[str]:
    """The libraries that the demo needs and that are not installed."""
    return [library for library, module in _MODULES.items() if util.find_spec(module) is None]


def library_version(library: str) -> str:
    """Name and version of an installed library."""
    return f"{library} {metadata.version(library)}"
