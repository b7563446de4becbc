"""The configuration of brokers, topics and groups: Kafka's properties with types, defaults, validation and documentation."""
