"""A producer and a member of a group by confluent-kafka. What it is told and says: ``tests/clients/applications.py``."""

import sys
import threading
from queue import Empty, SimpleQueue
from typing import Any

import confluent_kafka

from tests.clients.programs.telling import say, told


def main() -> None:
    """Run until told to end."""
    options = told()
    topic = options["topic"]
    common = {
        "bootstrap.servers": options["bootstrap"],
        "socket.timeout.ms": int(options["request_timeout_ms"]),
        "reconnect.backoff.max.ms": 100,
    }
    idempotent = {"enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": 120_000}
    producer = confluent_kafka.Producer({**common, **idempotent, "request.timeout.ms": options["request_timeout_ms"]})
    consumer = confluent_kafka.Consumer(
        {
            **common,
            "group.id": options["group"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 30_000,
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: say("assigned", len(partitions)),
        on_revoke=lambda _, partitions: say("revoked", len(partitions)),
    )
    wishes: SimpleQueue[str] = SimpleQueue()

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            # Where a retry is answered DUPLICATE_SEQUENCE_NUMBER, the record is there, and librdkafka knows no offset.
            offset = -1 if message.offset() is None else message.offset()
            say("acknowledged", message.partition(), offset, (message.value() or b"").decode())
        else:
            say("failed", error)

    def listen() -> None:
        for line in sys.stdin:
            verb, *words = line.split()
            if verb == "send":
                producer.produce(topic, words[1], partition=int(words[0]), on_delivery=delivered)
            else:
                wishes.put(verb)
        wishes.put("end")

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            if wishes.get_nowait() == "end":
                break
            commit(consumer)
        except Empty:
            pass
        producer.poll(0)
        for message in consumer.consume(100, 0.05):
            if message.error() is None:
                say("read", message.partition(), message.offset(), (message.value() or b"").decode())
    consumer.close()


def commit(consumer: Any) -> None:
    """Commit; librdkafka leaves it to the application to do that again when the coordinator is on its way."""
    while True:
        try:
            consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as problem:
            if not problem.args[0].retriable():
                raise
        else:
            say("committed")
            return


if __name__ == "__main__":
    main()
