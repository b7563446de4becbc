"""An ordinary kafka-python consumer, which prints what it reads."""

import sys

from kafka import KafkaConsumer

consumer = KafkaConsumer(
    "orders",
    bootstrap_servers=sys.argv[1],
    group_id="app",
    client_id=sys.argv[2],
    auto_offset_reset="earliest",
    heartbeat_interval_ms=50,
)
for message in consumer:
    print(message.value.decode(), flush=True)
