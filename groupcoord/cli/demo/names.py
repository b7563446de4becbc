"""Short names for members: a member is called by its client id, which it chose itself; its real id is long and random."""

from groupcoord.core.events import Event, Requested


class Names:
    """Learns member ids and replaces them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, member: str, name: str) -> None:
        """``member`` is to be called ``name``."""
        if member and name:
            self._names[member] = name

    def of(self, member: str) -> str:
        """The name of ``member``, or its id if it has none."""
        return self._names.get(member, member)

    def asking(self, event: Event) -> str:
        """Who made the request that caused ``event``."""
        cause = event.cause
        return cause.client_id or "a client" if isinstance(cause, Requested) else "coordinator"

    def friendly(self, text: str) -> str:
        """``text`` with names in place of member ids."""
        for member, name in self._names.items():
            text = text.replace(member, name)
        return text
