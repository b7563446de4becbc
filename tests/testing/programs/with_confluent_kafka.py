"""An ordinary confluent-kafka consumer, which prints what it reads."""

import sys

from confluent_kafka import Consumer

consumer = Consumer(
    {
        "bootstrap.servers": sys.argv[1],
        "group.id": "app",
        "client.id": sys.argv[2],
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 50,
    }
)
consumer.subscribe(["orders"])
while True:
    message = consumer.poll(1)
    if message is not None and not message.error():
        print((message.value() or b"").decode(), flush=True)
