"""A worker written with confluent-kafka: what it reads, it writes into another topic, exactly once.

The one that is called ZOMBIE stands still in the middle of a transaction, as a process does whose machine swaps, or collects
garbage for too long. It is stopped by a signal, and so are the threads of its library.
"""

import json
import os
import signal
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from groupcoord.cli.demo.clients.consumer_common import Parent, Settings, main

TRANSACTIONAL_ID = "billing-1"
OUTPUT = "invoices"
ZOMBIE, SUCCESSOR = "worker-1", "worker-2"
STANDS_STILL_AT = 3
"""In the transaction of that number."""
WROTE, COMMITTED, FENCED = "wrote", "committed", "fenced"
_PATIENCE_S = 60.0


class Application:
    """Reads, writes and commits until it is told to leave, or is fenced."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        common = {"bootstrap.servers": settings.bootstrap, "client.id": settings.client_id}
        # What the library logs about a fenced producer, the parent tells.
        self.producer = Producer({**common, "transactional.id": TRANSACTIONAL_ID, "log_level": 0})
        self.consumer = Consumer(settings.properties() | {"isolation.level": "read_committed"})
        self.transactions = 0

    def run(self, parent: Parent) -> None:
        """Work until ``parent`` says to leave."""
        self.producer.init_transactions(_PATIENCE_S)
        self.consumer.subscribe([self.settings.topic])
        try:
            while parent.should_run:
                message = self.consumer.poll(self.settings.poll_ms / 1000)
                if message is not None and not message.error():
                    self.process(message.value() or b"")
        except KafkaException as refusal:
            if not refusal.args[0].fatal():
                raise
            report(FENCED, refusal.args[0].name())
        finally:
            self.consumer.close()

    def process(self, order: bytes) -> None:
        """One order is one transaction: its invoice, and that it was read."""
        self.transactions += 1
        self.producer.begin_transaction()
        self.producer.produce(OUTPUT, order.replace(b"order", b"invoice"))
        self.producer.flush(_PATIENCE_S)
        positions = self.consumer.position(self.consumer.assignment())
        self.producer.send_offsets_to_transaction(positions, self.consumer.consumer_group_metadata(), _PATIENCE_S)
        report(WROTE, order.decode())
        if self.settings.client_id == ZOMBIE and self.transactions == STANDS_STILL_AT:
            os.kill(os.getpid(), signal.SIGSTOP)
        self.producer.commit_transaction(_PATIENCE_S)
        report(COMMITTED, order.decode())


def report(*what: Any) -> None:
    """Tell the parent."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Application)
