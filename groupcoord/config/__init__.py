"""Kafka's configuration properties: names, types, defaults and meaning."""
