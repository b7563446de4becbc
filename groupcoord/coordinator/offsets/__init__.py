"""Committed offsets of groups of any kind: OffsetCommit, OffsetFetch, OffsetDelete, expiration."""
