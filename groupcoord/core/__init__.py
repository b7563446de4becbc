"""Shared by all pure packages: calls, effects, events, timers, background work, Java's and Scala's hash orders. No I/O, no
clock."""
