"""Partition assignors: pure functions from subscriptions to assignments."""
