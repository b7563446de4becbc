"""What a broker does, and all that was done to it: nothing of that is hidden where brokers are listed."""

import enum
from dataclasses import dataclass

from groupcoord.cluster.network_cuts import Peer, named


class BrokerState(enum.Enum):
    """What a broker does."""

    RUNNING = "running"
    PAUSED = "paused"
    """It keeps its connections and says nothing, as after SIGSTOP."""
    STOPPED = "stopped"
    STARTING = "starting"
    """It was killed and started again, and the controller lets it in when its session from before ends, or is back itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCondition:
    """One broker of a cluster at one moment."""

    state: str
    """``running``, ``paused``, ``stopped``, or ``starting`` until its session from before has ended."""
    is_fenced: bool
    """The controller has fenced it, or does not know it: clients are not told of it, and it leads nothing."""
    is_registered: bool
    """The controller knows it, fenced or not."""
    cut_off_from: tuple[Peer, ...]
    """Other brokers, by their ids, ``clients`` and ``controller``."""
    is_copying: bool
    """It copies from leaders, as far as it runs and reaches them."""
    slow_disk_ms: int
    """How long each of its appends takes; 0: no time."""
    lost_disk: bool
    """It has lost its disk, and was not started since."""

    def __str__(self) -> str:
        said = [self.state]
        if self.is_fenced:
            said.append("fenced" if self.is_registered else "not registered")
        said += [f"cut off from {named(peer)}" for peer in self.cut_off_from]
        if not self.is_copying:
            said.append("copies nothing")
        if self.slow_disk_ms:
            said.append(f"slow disk: {self.slow_disk_ms} ms for each append")
        if self.lost_disk:
            said.append("lost its disk")
        return ", ".join(said)
