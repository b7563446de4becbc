"""Real chance, for a node that serves real clients; a test gives its node one that counts."""

import os
import uuid


class SystemChance:
    """Ids nobody can guess."""

    def uuid(self) -> uuid.UUID:
        """A random id of which Kafka's text for topic ids does not start with a dash.

        Such an id would look like an option on a command line, so Kafka draws another one (``Uuid.randomUuid``).
        """
        while (drawn := uuid.uuid4()).bytes[0] >> 2 == 0b111110:
            pass
        return drawn

    def session_id(self) -> int:
        """A random int32 above 0."""
        while (drawn := int.from_bytes(os.urandom(4)) >> 1) == 0:
            pass
        return drawn

    def next_int(self, bound: int) -> int:
        """A random int from 0 up to ``bound``."""
        return int.from_bytes(os.urandom(8)) % bound
