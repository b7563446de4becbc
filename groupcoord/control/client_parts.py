"""The parts of ControlClient for the clock of a cluster (``control.clock``), for one broker (``control.node(id)``) and for the
controller (``control.controller``)."""

from typing import TYPE_CHECKING, Any

from groupcoord.control.broker_models import Controller, Node
from groupcoord.control.models import Clock, Deadline

if TYPE_CHECKING:
    from groupcoord.control.client import ControlClient


class ControlledClock:
    """``control.clock``."""

    def __init__(self, client: "ControlClient") -> None:
        self._client = client

    def now_ms(self) -> int:
        """The time of the broker's clock: milliseconds since 1970."""
        return self._client.read(Clock, "GET", "/clock").now_ms

    def deadlines(self, *, group: str | None = None, everything: bool = False) -> list[Deadline]:
        """The pending deadlines (session timeouts and other timers), earliest first."""
        return self._client.read(list[Deadline], "GET", "/clock/deadlines", group=group, everything=everything)

    def advance(self, seconds: float, *, heartbeats: bool = True) -> Clock:
        """Advance a manual clock; every timer that expires has run when this returns."""
        return self._client.read(Clock, "POST", "/clock/advance", {"seconds": seconds, "heartbeats": heartbeats})

    def advance_to_next(self, *, group: str | None = None, heartbeats: bool = False) -> Deadline:
        """Advance a manual clock to the next deadline and let it expire; returns the deadline."""
        body = {"group": group, "heartbeats": heartbeats}
        return self._client.read(Deadline, "POST", "/clock/advance-to-next", body)


class ControlledNode:
    """``control.node(id)``: what ``groupcoord.Cluster.broker`` offers. Every action returns the broker's new state."""

    def __init__(self, client: "ControlClient", node_id: int) -> None:
        self.id = node_id
        self._client = client

    def describe(self) -> Node:
        """The broker's state, with every fault that is injected into it."""
        return self._client.read(Node, "GET", f"/nodes/{self.id}")

    def stop(self) -> Node:
        """Shut the broker down cleanly: other in-sync replicas become leaders of its partitions."""
        return self._act("stop")

    def kill(self) -> Node:
        """Kill the broker: others become leaders when its session expires."""
        return self._act("kill")

    def pause(self) -> Node:
        """Suspend the broker until ``resume``: it sends nothing, and its connections stay open."""
        return self._act("pause")

    def resume(self) -> Node:
        """End a ``pause``; requests that came meanwhile are handled."""
        return self._act("resume")

    def start(self) -> Node:
        """Start the broker again; after ``kill`` it has to wait until its old session has expired."""
        return self._act("start")

    def pause_replication(self) -> Node:
        """Pause the broker's replication from leaders until ``resume_replication``."""
        return self._act("pause-replication")

    def resume_replication(self) -> Node:
        """Resume the broker's replication from leaders."""
        return self._act("resume-replication")

    def cut_off(self, peer: int | str) -> Node:
        """Cut the network between the broker and another one (its id), ``"clients"`` or the ``"controller"``."""
        return self._act("cut-off", peer=peer)

    def reconnect(self, peer: int | str) -> Node:
        """End a ``cut_off``."""
        return self._act("reconnect", peer=peer)

    def slow_disk(self, seconds: float) -> Node:
        """Delay each of the broker's appends by so many seconds of the cluster's time; 0 ends that."""
        return self._act("slow-disk", seconds=seconds)

    def lose_disk(self) -> Node:
        """Delete the data of the broker, while it is stopped or killed."""
        return self._act("lose-disk")

    def unregister(self) -> Node:
        """Unregister the broker at the controller."""
        return self._act("unregister")

    def wait_fenced(self, *, timeout: float | None = None) -> Node:
        """Wait until the controller has fenced the broker."""
        return self._wait(timeout, fenced=True)

    def wait_running(self, *, timeout: float | None = None) -> Node:
        """Wait until the broker runs."""
        return self._wait(timeout, running=True)

    def _act(self, verb: str, **parameters: Any) -> Node:
        return self._client.read(Node, "POST", f"/nodes/{self.id}/{verb}", **parameters)

    def _wait(self, timeout: float | None, **condition: Any) -> Node:
        return self._client.read(Node, "GET", f"/nodes/{self.id}/wait", timeout=timeout, **condition)


class ControlledController:
    """``control.controller``: what ``groupcoord.Cluster.controller`` offers. Every action returns the new state."""

    def __init__(self, client: "ControlClient") -> None:
        self._client = client

    def describe(self) -> Controller:
        """The controller's state, and the epoch in which it was elected."""
        return self._client.read(Controller, "GET", "/controller")

    def kill(self) -> Controller:
        """Kill the controller: requests that need it wait for up to 60 s, all others are served."""
        return self._act("kill")

    def start(self) -> Controller:
        """Start the controller again after ``kill``, in the next epoch."""
        return self._act("start")

    def pause(self) -> Controller:
        """Suspend the controller until ``resume``."""
        return self._act("pause")

    def resume(self) -> Controller:
        """End a ``pause``."""
        return self._act("resume")

    def _act(self, verb: str) -> Controller:
        return self._client.read(Controller, "POST", f"/controller/{verb}")
