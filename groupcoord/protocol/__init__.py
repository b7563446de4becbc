"""Bytes and messages of the Kafka protocol. Knows nothing about groups, clocks or sockets."""
