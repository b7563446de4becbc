"""The records of ``__consumer_offsets``: their schemas, typed and generic readers, and a fast reader of commits."""
