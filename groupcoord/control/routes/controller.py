"""Routes of the controller of a cluster of several brokers: show, kill, start, pause and resume it."""

from collections.abc import Awaitable, Callable

from groupcoord.control.broker_models import Controller
from groupcoord.control.controlled_clusters import ControlledCluster
from groupcoord.control.route_dependencies import CONFLICT, Target, router
from groupcoord.testing.cluster_controller import ControllerHandle

controller = router("controller")


async def _done(cluster: ControlledCluster, act: Callable[[ControllerHandle], Awaitable[None]]) -> Controller:
    async with cluster.changing:
        await act(cluster.controller)
        return Controller.model_validate(cluster.controller)


@controller.get("/controller", summary="Show the controller of the cluster")
async def show_controller(cluster: Target) -> Controller:
    """Its state, and the epoch in which it was elected. A single broker is its own controller."""
    return Controller.model_validate(cluster.controller)


@controller.post("/controller/kill", summary="Kill the controller", responses=CONFLICT)
async def kill_controller(cluster: Target) -> Controller:
    """Brokers keep serving with the metadata that they have; requests that need the controller wait, and get REQUEST_TIMED_OUT
    after 60 s."""
    return await _done(cluster, ControllerHandle.kill)


@controller.post("/controller/start", summary="Start the controller again", responses=CONFLICT)
async def start_controller(cluster: Target) -> Controller:
    """After a kill, in the next epoch: waiting requests are handled, and the sessions of brokers start anew."""
    return await _done(cluster, ControllerHandle.start)


@controller.post("/controller/pause", summary="Suspend the controller", responses=CONFLICT)
async def pause_controller(cluster: Target) -> Controller:
    """As a suspended process (SIGSTOP), it decides nothing until it is resumed."""
    return await _done(cluster, ControllerHandle.pause)


@controller.post("/controller/resume", summary="Resume a paused controller", responses=CONFLICT)
async def resume_controller(cluster: Target) -> Controller:
    """It keeps its epoch, and answers the requests that waited."""
    return await _done(cluster, ControllerHandle.resume)
