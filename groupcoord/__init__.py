"""Apache Kafka's group coordination, small enough to hold in your hand and exact enough to trust."""
