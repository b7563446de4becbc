"""The consumer process of the demo's migration chapter (confluent-kafka), which reports its assigned and revoked partitions.

The last of the ``protocols`` in its settings is ``group.protocol``; those before are assignors.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from groupcoord.cli.demo.clients.consumer_common import Parent, Settings, main

ASSIGNED, REVOKED = "assigned", "revoked"


class Application:
    """Reads until its parent says to leave; the library commits."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.consumer = Consumer(properties(settings))

    def run(self, parent: Parent) -> None:
        """Join and read until ``parent`` says to leave."""
        self.consumer.subscribe(
            [self.settings.topic],
            on_assign=lambda _, partitions: report(ASSIGNED, partitions),
            on_revoke=lambda _, partitions: report(REVOKED, partitions),
            on_lost=lambda _, partitions: report(REVOKED, partitions),
        )
        try:
            while parent.should_run:
                self.consumer.consume(500, self.settings.poll_ms / 1000)
        finally:
            self.consumer.close()


def properties(settings: Settings) -> dict[str, Any]:
    """The configs of the client. In the consumer protocol the coordinator sets assignor, session timeout and heartbeats."""
    *assignors, protocol = settings.protocols
    named = settings.properties() | {"group.protocol": protocol, "enable.auto.commit": True}
    if protocol == "classic":
        return named | {"partition.assignment.strategy": ",".join(assignors)}
    return {name: value for name, value in named.items() if name not in ("session.timeout.ms", "heartbeat.interval.ms")}


def report(what: str, partitions: Iterable[TopicPartition]) -> None:
    """Report to the parent, unless there are no partitions."""
    numbers = sorted(place.partition for place in partitions)
    if numbers:
        sys.stdout.write(json.dumps([what, numbers]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Application)
