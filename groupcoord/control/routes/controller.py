"""The controller of a cluster of several brokers: to kill, pause and start it."""

from collections.abc import Awaitable, Callable

from groupcoord.control.controlled_cluster import ControlledCluster
from groupcoord.control.models import Controller
from groupcoord.control.routing import CONFLICT, Target, router
from groupcoord.testing.cluster_controller import ControllerHandle

controller = router("controller")


def _answer(cluster: ControlledCluster) -> Controller:
    seen = cluster.controller
    return Controller(id=seen.id, state=seen.state, epoch=seen.epoch)


async def _done(cluster: ControlledCluster, act: Callable[[ControllerHandle], Awaitable[None]]) -> Controller:
    async with cluster.changing:
        await act(cluster.controller)
        return _answer(cluster)


@controller.get("/controller", summary="Show the controller of the cluster")
async def show_controller(cluster: Target) -> Controller:
    """What it does, and in which epoch it was elected. A lone broker is its own controller."""
    return _answer(cluster)


@controller.post("/controller/kill", summary="End the controller without a word", responses=CONFLICT)
async def kill_controller(cluster: Target) -> Controller:
    """Brokers serve on by what it decided last; what needs it waits, and is answered with REQUEST_TIMED_OUT after 60 s."""
    return await _done(cluster, ControllerHandle.kill)


@controller.post("/controller/start", summary="Start the controller again", responses=CONFLICT)
async def start_controller(cluster: Target) -> Controller:
    """After a kill, in the next epoch: what waits is answered, and the sessions of brokers begin anew."""
    return await _done(cluster, ControllerHandle.start)


@controller.post("/controller/pause", summary="Let the controller decide nothing", responses=CONFLICT)
async def pause_controller(cluster: Target) -> Controller:
    """As a process that is suspended."""
    return await _done(cluster, ControllerHandle.pause)


@controller.post("/controller/resume", summary="Let a paused controller go on", responses=CONFLICT)
async def resume_controller(cluster: Target) -> Controller:
    """In the same epoch: what waits is answered."""
    return await _done(cluster, ControllerHandle.resume)
