"""Committed offsets of groups of any type: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete, expiration."""
