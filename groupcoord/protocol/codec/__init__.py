"""The message codec: compiled readers and writers for each message and version."""
