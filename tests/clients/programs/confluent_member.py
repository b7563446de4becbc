"""A member of a group by confluent-kafka. What it is told and what it says: ``tests.clients.program_members``."""

import sys
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import confluent_kafka

from tests.clients.programs.telling import say

PROPERTIES = {
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": 100,
    "fetch.wait.max.ms": 100,
    "log_level": 0,
}
OF_CLASSIC = {"heartbeat.interval.ms": 100, "partition.assignment.strategy": "range"}


def say_partitions(what: str, partitions: Iterable[Any]) -> None:
    """``what`` happened to ``partitions``."""
    say(what, *sorted(f"{partition.topic}:{partition.partition}" for partition in partitions))


def main(arguments: Sequence[str]) -> None:
    """Be the member that ``arguments`` describe until standard input ends."""
    told = dict(argument.split("=", 1) for argument in arguments)
    named = {"bootstrap.servers": told["bootstrap"], "group.id": told["group"], "client.id": told["client"]}
    if told.get("instance"):
        named["group.instance.id"] = told["instance"]
    of_protocol = OF_CLASSIC if told["protocol"] == "classic" else {}
    consumer = confluent_kafka.Consumer({**PROPERTIES, **of_protocol, **named, "group.protocol": told["protocol"]})
    consumer.subscribe(
        [told["topic"]],  # what begins with ^ is an expression
        on_assign=lambda _, partitions: say_partitions("assigned", partitions),
        on_revoke=lambda _, partitions: say_partitions("revoked", partitions),
        on_lost=lambda _, partitions: say_partitions("revoked", partitions),
    )
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    while not ended.is_set():
        message = consumer.poll(0.05)
        if message is None:
            continue
        if error := message.error():
            say("failed", error.name())
        else:
            say("read", f"{message.topic()}:{message.partition()}:{message.offset()}")
    consumer.close()
    say("closed")


if __name__ == "__main__":
    main(sys.argv[1:])
