"""ControllerHandle, the controller of an in-process cluster, which a test can kill, pause and start."""

from collections.abc import Callable

from groupcoord.cluster.controller_outages import ControllerNode
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.testing.engine import Engine
from groupcoord.testing.forgotten_awaits import noted


@noted
class ControllerHandle:
    """The controller of a :class:`~groupcoord.testing.cluster.Cluster` of several brokers. Actions raise
    ValueError if the controller is in the wrong state.

    While it is down or paused, brokers serve, lead and replicate with the metadata that they have. No broker is fenced, no
    leader elected, no ISR changed, and no broker that starts is registered. Requests about topics, configs, elections and the
    quorum wait for it, and get REQUEST_TIMED_OUT after 60 s.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __repr__(self) -> str:
        return f"<ControllerHandle {self.id}, {self.state}, epoch {self.epoch}>"

    @property
    def id(self) -> int:
        """Its node id."""
        return self._engine.core.controller.quorum.voters[0][0]

    @property
    def state(self) -> str:
        """``running``, ``paused`` or ``stopped``."""
        return self._engine.core.controller_node.state.value

    @property
    def epoch(self) -> int:
        """The epoch in which it was elected, one more after each start."""
        return self._engine.core.controller.quorum.leader_epoch

    async def kill(self) -> None:
        """Kill it, as SIGKILL does."""
        await self._change("kill", ControllerNode.kill)

    async def start(self) -> None:
        """Start it again after ``kill``, in the next epoch: waiting requests are handled, and brokers get new sessions."""
        await self._change("start", ControllerNode.start)

    async def pause(self) -> None:
        """Suspend it until ``resume``, as SIGSTOP does: it decides nothing."""
        await self._change("pause", ControllerNode.pause)

    async def resume(self) -> None:
        """End a ``pause``, in the same epoch: waiting requests are handled."""
        await self._change("resume", ControllerNode.resume)

    async def _change(self, action: str, act: Callable[[ControllerNode, HandlerContext], None]) -> None:
        await self._engine.change_controller(f"{action} the controller", act)
