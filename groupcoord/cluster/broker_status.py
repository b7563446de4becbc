"""The status of a broker for users: whether it runs, is fenced or registered, and which faults it has."""

import enum
from dataclasses import dataclass

from groupcoord.cluster.network_cuts import Peer, named


class BrokerState(enum.Enum):
    """Whether a broker process runs."""

    RUNNING = "running"
    PAUSED = "paused"
    """It keeps its connections but does nothing, as after SIGSTOP."""
    STOPPED = "stopped"
    STARTING = "starting"
    """It was started again after a kill, but can register only when its old session has expired and the controller runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCondition:
    """The state of one broker, and the faults injected into it."""

    state: str
    """``running``, ``paused``, ``stopped``, or ``starting`` until its old session has expired."""
    is_fenced: bool
    """It is fenced or not registered: clients do not see it, and it leads nothing."""
    is_registered: bool
    """It is registered with the controller, fenced or not."""
    cut_off_from: tuple[Peer, ...]
    """The other ends of cut connections: broker ids, ``clients`` and ``controller``."""
    is_replicating: bool
    """It replicates from leaders, if it runs and reaches them."""
    slow_disk_ms: int
    """The delay of each of its appends; 0: none."""
    lost_disk: bool
    """It has lost its disk since it was stopped."""

    def __str__(self) -> str:
        said = [self.state]
        if self.is_fenced:
            said.append("fenced" if self.is_registered else "not registered")
        said += [f"cut off from {named(peer)}" for peer in self.cut_off_from]
        if not self.is_replicating:
            said.append("replication paused")
        if self.slow_disk_ms:
            said.append(f"slow disk: {self.slow_disk_ms} ms for each append")
        if self.lost_disk:
            said.append("lost its disk")
        return ", ".join(said)
