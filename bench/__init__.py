"""Benchmarks: ``python -m bench`` prints tables, always with a peer measured in the same run; nothing is asserted."""
