"""The records of ``__consumer_offsets`` and ``__transaction_state``: schemas, dataclasses, formatting, a fast reader of
commits."""
