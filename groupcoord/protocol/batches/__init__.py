"""Record batches of magic 2 and their records: reading, validation, writing, compression and rewriting."""
