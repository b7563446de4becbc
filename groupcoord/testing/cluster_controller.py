"""The controller of a cluster in this process, which a test can kill, pause and start."""

from collections.abc import Callable

from groupcoord.cluster.controller_node import ControllerNode
from groupcoord.core.handler_context import HandlerContext
from groupcoord.testing.engine import Engine
from groupcoord.testing.forgotten_awaits import noted


@noted
class ControllerHandle:
    """The controller of a :class:`~groupcoord.testing.cluster.Cluster` of several brokers. Actions raise ValueError.

    While it is away, brokers serve, lead and copy by what it decided last. Nobody is fenced or elected, no replica leaves the
    ISR or joins it, and no broker that starts is let in. Requests about topics, configurations, elections and the quorum wait
    for it, and are answered with REQUEST_TIMED_OUT after 60 s.
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
        """What it does: ``running``, ``paused`` or ``stopped``."""
        return self._engine.core.controller_node.state.value

    @property
    def epoch(self) -> int:
        """The epoch in which it was elected, one more after each start."""
        return self._engine.core.controller.quorum.leader_epoch

    async def kill(self) -> None:
        """End it without a word, as SIGKILL does."""
        await self._change("kill", ControllerNode.kill)

    async def start(self) -> None:
        """Start it again after ``kill``, in the next epoch: what waits is answered, and the sessions of brokers begin anew."""
        await self._change("start", ControllerNode.start)

    async def pause(self) -> None:
        """Let it decide nothing until ``resume``, as a process that is suspended."""
        await self._change("pause", ControllerNode.pause)

    async def resume(self) -> None:
        """Let it go on after ``pause``, in the same epoch: what waits is answered."""
        await self._change("resume", ControllerNode.resume)

    async def _change(self, action: str, act: Callable[[ControllerNode, HandlerContext], None]) -> None:
        await self._engine.change_controller(f"{action} the controller", act)
