"""Record batches of magic 2 and the records in them: read, check, write, compress, and rewrite."""
