"""The worker process of ``groupcoord demo zombie``: a consume-transform-produce loop with transactions (confluent-kafka).

The worker named ZOMBIE suspends itself in the middle of a transaction with SIGSTOP, which also stops the threads of its
library, as a process whose machine swaps or whose garbage collection takes too long.
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
"""The number of the transaction in which it suspends itself."""
WROTE, COMMITTED, FENCED = "wrote", "committed", "fenced"
_PATIENCE_S = 60.0


class Application:
    """Reads, writes and commits until its parent says to leave, or it is fenced."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        common = {"bootstrap.servers": settings.bootstrap, "client.id": settings.client_id}
        # No logs of the library about a fenced producer: the parent reports that.
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
        """Process one order in one transaction: its invoice, and the consumed offset."""
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
    """Report to the parent, as one line of JSON."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Application)
