"""The log of ``__consumer_offsets``, out of files or of a running broker: shown, compacted, exported and imported."""
