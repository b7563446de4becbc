"""One broker of a cluster, and its controller, controlled over HTTP: parts of the client."""

from typing import TYPE_CHECKING, Any

from groupcoord.control.models import Controller
from groupcoord.control.node_models import Node

if TYPE_CHECKING:
    from groupcoord.control.client import ControlClient


class ControlledNode:
    """``control.node(id)``: what ``groupcoord.Cluster.broker`` offers. Every action returns what it is then."""

    def __init__(self, client: "ControlClient", node_id: int) -> None:
        self.id = node_id
        self._client = client

    def describe(self) -> Node:
        """What it does, and all that was done to it."""
        return self._client.read(Node, "GET", f"/nodes/{self.id}")

    def stop(self) -> Node:
        """Shut it down in order: others lead what it led, as far as others are in sync."""
        return self._act("stop")

    def kill(self) -> Node:
        """End it without a word: others lead when its session ends."""
        return self._act("kill")

    def pause(self) -> Node:
        """Let it say nothing until ``resume``; its connections stay open."""
        return self._act("pause")

    def resume(self) -> Node:
        """Let it go on after ``pause``; what it was asked meanwhile is answered."""
        return self._act("resume")

    def start(self) -> Node:
        """Start it again; after ``kill`` first when its session has ended."""
        return self._act("start")

    def stop_copying(self) -> Node:
        """Let it copy nothing from leaders until ``copy_again``."""
        return self._act("stop-copying")

    def copy_again(self) -> Node:
        """Let it copy from leaders again."""
        return self._act("copy-again")

    def cut_off(self, peer: int | str) -> Node:
        """Cut the network between it and another broker (its id), ``"clients"`` or the ``"controller"``."""
        return self._act("cut-off", peer=peer)

    def reconnect(self, peer: int | str) -> Node:
        """Mend what ``cut_off`` has cut."""
        return self._act("reconnect", peer=peer)

    def slow_disk(self, seconds: float) -> Node:
        """Let everything that it appends take so many seconds of the cluster's time; 0 ends that."""
        return self._act("slow-disk", seconds=seconds)

    def lose_disk(self) -> Node:
        """Let it lose its disk, while it is stopped or killed."""
        return self._act("lose-disk")

    def unregister(self) -> Node:
        """Let the controller forget it."""
        return self._act("unregister")

    def wait_fenced(self, *, timeout: float | None = None) -> Node:
        """Wait until the controller has fenced it."""
        return self._wait(timeout, fenced=True)

    def wait_running(self, *, timeout: float | None = None) -> Node:
        """Wait until it runs."""
        return self._wait(timeout, running=True)

    def _act(self, verb: str, **parameters: Any) -> Node:
        return self._client.read(Node, "POST", f"/nodes/{self.id}/{verb}", **parameters)

    def _wait(self, timeout: float | None, **condition: Any) -> Node:
        return self._client.read(Node, "GET", f"/nodes/{self.id}/wait", timeout=timeout, **condition)


class ControlledController:
    """``control.controller``: what ``groupcoord.Cluster.controller`` offers. Every action returns what it is then."""

    def __init__(self, client: "ControlClient") -> None:
        self._client = client

    def describe(self) -> Controller:
        """What it does, and in which epoch it was elected."""
        return self._client.read(Controller, "GET", "/controller")

    def kill(self) -> Controller:
        """End it without a word: what needs it waits, for 60 s at most, and the rest goes on."""
        return self._act("kill")

    def start(self) -> Controller:
        """Start it again after ``kill``, in the next epoch."""
        return self._act("start")

    def pause(self) -> Controller:
        """Let it decide nothing until ``resume``."""
        return self._act("pause")

    def resume(self) -> Controller:
        """Let it go on after ``pause``."""
        return self._act("resume")

    def _act(self, verb: str) -> Controller:
        return self._client.read(Controller, "POST", f"/controller/{verb}")
