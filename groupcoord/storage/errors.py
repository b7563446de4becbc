"""What can be wrong with a data directory."""


class StorageError(Exception):
    """The directory cannot be used; the text names the file and says why, and what to do about it."""
