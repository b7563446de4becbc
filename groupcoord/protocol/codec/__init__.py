"""Messages as bytes: one compiled reader and writer for each message and version."""
