"""The coordinator runtime (KIP-848): shards of any coordinator, their writes, appends and loading, independent of groups."""
