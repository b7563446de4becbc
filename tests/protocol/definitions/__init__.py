"""Message definitions of Kafka 4.3.1, as its client library carries them, of APIs that kafka-python does not have."""
