"""Tools for the log of ``__consumer_offsets``, from files or a running cluster: dump, compact, export and import."""
