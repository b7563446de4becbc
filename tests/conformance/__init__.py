"""Conformance tests: stories that are played on a real Kafka broker and on groupcoord, and whose transcripts must be equal."""
