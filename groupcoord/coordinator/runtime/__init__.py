"""The coordinator runtime: shards of any coordinator's topic, their writes, appends and loading; it knows no groups."""
