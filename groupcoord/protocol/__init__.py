"""The Kafka wire protocol: messages, record batches and coordinator records as bytes. No groups, clocks or sockets."""
