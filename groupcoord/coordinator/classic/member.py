"""A member of a classic group. Source: ``ClassicGroupMember``."""

from dataclasses import dataclass

from groupcoord.coordinator.errors import UnexpectedBrokerError
from groupcoord.core.effects import Call
from groupcoord.core.timers import TimerKey

Protocols = tuple[tuple[str, bytes], ...]
"""Protocol names with their metadata, most wanted first; for consumers the names are assignors."""


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """One member; times are milliseconds. ``parked_join`` and ``parked_sync`` are requests that wait for their answer."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    session_key: TimerKey
    assignment: bytes = b""
    parked_join: Call | None = None
    parked_sync: Call | None = None
    is_new: bool = False
    last_heartbeat_ms: int = -1
    timed_ms: int = -1
    """How long the session timer was last set for; -1 before it was set for this member."""

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Is the member known to be there because a request of it waits here? A new member has to prove itself first."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """The names of its protocols, most wanted first. One that a client lists twice is there twice, and counts twice."""
        return tuple(name for name, _ in self.protocols)

    def metadata_of(self, protocol: str | None) -> bytes:
        """The metadata the member sent for ``protocol``. Raises UnexpectedBrokerError if it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise UnexpectedBrokerError(f"member {self.member_id} does not offer protocol {protocol}")

    def vote(self, candidates: set[str]) -> str:
        """The first of the member's protocols that every member supports. Raises UnexpectedBrokerError if there is none."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise UnexpectedBrokerError(f"member {self.member_id} offers no protocol that counts as offered by all")

    def __repr__(self) -> str:
        parked = " parked in join" if self.parked_join else " parked in sync" if self.parked_sync else ""
        return f"<Member {self.member_id}{parked}>"
