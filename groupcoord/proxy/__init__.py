"""A Kafka proxy between clients and a real cluster, which forwards bytes, traces and records them, and applies fault rules."""
