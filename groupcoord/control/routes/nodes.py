"""Routes of the individual brokers (nodes) of a cluster and of its controller: stop, kill, pause or start one; of a broker
also cut its network, stop its replication, slow down or lose its disk, unregister it."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Path, Query

from groupcoord.control.broker_models import Controller, Node
from groupcoord.control.controlled_clusters import ControlledCluster, taken
from groupcoord.control.problem_documents import ProblemError, responses, wrong_argument
from groupcoord.control.route_dependencies import CONFLICT, WAITS, Target, Timeout, router, waited
from groupcoord.testing.broker_and_controller_handles import ClusterBroker, ControllerHandle, delay_of

nodes = router("nodes")
controller = router("controller")

Peer = Annotated[str, Query(description="the id of another broker, `controller` or `clients`")]
Seconds = Annotated[float, Query(description="the delay of each append, on the cluster's clock; 0: none")]
NodeId = Annotated[int, Path(description="the id of a broker of the cluster")]


def _broker(cluster: ControlledCluster, node: int) -> ClusterBroker:
    """Raises ProblemError if there is no such broker."""
    try:
        return cluster.broker(node)
    except ValueError as error:
        raise ProblemError(404, str(error)) from error


def _answer(cluster: ControlledCluster, broker: ClusterBroker) -> Node:
    at, condition = cluster.brokers[broker.id], broker.condition
    return Node(
        id=broker.id,
        address=at.address,
        rack=at.rack,
        state=condition.state,
        fenced=condition.is_fenced,
        registered=condition.is_registered,
        cut_off_from=[str(peer) for peer in condition.cut_off_from],
        replicating=condition.is_replicating,
        slow_disk_ms=condition.slow_disk_ms,
        lost_disk=condition.lost_disk,
        condition=str(condition),
    )


async def _done(cluster: ControlledCluster, node: int, act: Callable[[ClusterBroker], Awaitable[None]]) -> Node:
    async with cluster.changing:
        broker = _broker(cluster, node)
        try:
            await act(broker)
        except OSError as error:
            raise ProblemError(503, taken(error)) from error
        return _answer(cluster, broker)


@nodes.get("/nodes", summary="List the brokers of the cluster")
async def list_nodes(cluster: Target) -> list[Node]:
    """All brokers, with their states and the faults injected into them."""
    return [_answer(cluster, cluster.broker(node)) for node in cluster.brokers]


@nodes.get("/nodes/{node}", summary="Show a broker of the cluster")
async def show_node(node: NodeId, cluster: Target) -> Node:
    """The broker's state, and the faults injected into it."""
    return _answer(cluster, _broker(cluster, node))


@nodes.get("/nodes/{node}/wait", summary="Wait until a broker is fenced or runs", responses=WAITS)
async def wait_node(
    node: NodeId,
    cluster: Target,
    timeout: Timeout,
    fenced: Annotated[bool, Query(description="the controller has fenced it")] = False,
    running: Annotated[bool, Query(description="it runs, as after a start that has to wait")] = False,
) -> Node:
    """A long poll: the response comes when the condition holds. Give one of ``fenced`` and ``running``."""
    if fenced is running:
        raise ProblemError.of_field("query", "one of fenced=true and running=true")
    broker = _broker(cluster, node)
    await waited(cluster, broker.wait_fenced(timeout=timeout) if fenced else broker.wait_running(timeout=timeout))
    return _answer(cluster, broker)


@nodes.post("/nodes/{node}/stop", summary="Shut a broker down cleanly", responses=CONFLICT)
async def stop_node(node: NodeId, cluster: Target) -> Node:
    """First other in-sync replicas become leaders of its partitions; then its connections are closed, and it is fenced."""
    return await _done(cluster, node, ClusterBroker.stop)


@nodes.post("/nodes/{node}/kill", summary="Kill a broker", responses=CONFLICT)
async def kill_node(node: NodeId, cluster: Target) -> Node:
    """Its connections are closed; others become leaders when its session expires, ``broker.session.timeout.ms`` later."""
    return await _done(cluster, node, ClusterBroker.kill)


@nodes.post("/nodes/{node}/pause", summary="Suspend a broker", responses=CONFLICT)
async def pause_node(node: NodeId, cluster: Target) -> Node:
    """As a suspended process (SIGSTOP): its connections stay open, and others become leaders when its session expires."""
    return await _done(cluster, node, ClusterBroker.pause)


@nodes.post("/nodes/{node}/resume", summary="Resume a paused broker", responses=CONFLICT)
async def resume_node(node: NodeId, cluster: Target) -> Node:
    """The broker handles the requests that came meanwhile."""
    return await _done(cluster, node, ClusterBroker.resume)


@nodes.post("/nodes/{node}/start", summary="Start a broker again", responses=responses(409, 503))
async def start_node(node: NodeId, cluster: Target) -> Node:
    """After a stop or a kill, with its data; after a kill it is ``starting`` until its old session has expired."""
    return await _done(cluster, node, ClusterBroker.start)


@nodes.post("/nodes/{node}/pause-replication", summary="Pause the replication of a broker from leaders")
async def pause_replication_at_node(node: NodeId, cluster: Target) -> Node:
    """As a follower that is too slow, it is removed from the ISR ``replica.lag.time.max.ms`` later."""
    return await _done(cluster, node, ClusterBroker.pause_replication)


@nodes.post("/nodes/{node}/resume-replication", summary="Resume the replication of a broker from leaders")
async def resume_replication_at_node(node: NodeId, cluster: Target) -> Node:
    """It catches up with the leaders and is in sync again."""
    return await _done(cluster, node, ClusterBroker.resume_replication)


@nodes.post("/nodes/{node}/cut-off", summary="Cut the network between a broker and a peer", responses=CONFLICT)
async def cut_off_node(node: NodeId, cluster: Target, peer: Peer) -> Node:
    """Without another broker, replication between the two stops; without clients, their requests wait; without the controller,
    the broker is fenced, although it still takes itself for the leader of its partitions."""
    return await _done(cluster, node, lambda broker: broker.cut_off(_peer(peer)))


@nodes.post("/nodes/{node}/reconnect", summary="Restore the network between a broker and a peer", responses=CONFLICT)
async def reconnect_node(node: NodeId, cluster: Target, peer: Peer) -> Node:
    """Requests of clients are answered, replication goes on, and the broker gets the metadata that it missed."""
    return await _done(cluster, node, lambda broker: broker.reconnect(_peer(peer)))


@nodes.post("/nodes/{node}/slow-disk", summary="Delay the appends of a broker")
async def slow_disk_of_node(node: NodeId, cluster: Target, seconds: Seconds) -> Node:
    """Responses to Produce and OffsetCommit, and the replication of a follower, are delayed by ``seconds``."""
    with wrong_argument("seconds"):
        delay_of(seconds)
    return await _done(cluster, node, lambda broker: broker.slow_disk(seconds))


@nodes.post("/nodes/{node}/lose-disk", summary="Delete the data of a broker that does not run", responses=CONFLICT)
async def lose_disk_of_node(node: NodeId, cluster: Target) -> Node:
    """It will start with empty logs and replicate them again."""
    return await _done(cluster, node, ClusterBroker.lose_disk)


@nodes.post("/nodes/{node}/unregister", summary="Unregister a broker at the controller", responses=CONFLICT)
async def unregister_node(node: NodeId, cluster: Target) -> Node:
    """A broker that runs goes on, unknown to the others, until it is started again."""
    return await _done(cluster, node, ClusterBroker.unregister)


def _peer(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


# The controller.


async def _controller_done(
    cluster: ControlledCluster, act: Callable[[ControllerHandle], Awaitable[None]]
) -> Controller:
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
    return await _controller_done(cluster, ControllerHandle.kill)


@controller.post("/controller/start", summary="Start the controller again", responses=CONFLICT)
async def start_controller(cluster: Target) -> Controller:
    """After a kill, in the next epoch: waiting requests are handled, and the sessions of brokers start anew."""
    return await _controller_done(cluster, ControllerHandle.start)


@controller.post("/controller/pause", summary="Suspend the controller", responses=CONFLICT)
async def pause_controller(cluster: Target) -> Controller:
    """As a suspended process (SIGSTOP), it decides nothing until it is resumed."""
    return await _controller_done(cluster, ControllerHandle.pause)


@controller.post("/controller/resume", summary="Resume a paused controller", responses=CONFLICT)
async def resume_controller(cluster: Target) -> Controller:
    """It keeps its epoch, and answers the requests that waited."""
    return await _controller_done(cluster, ControllerHandle.resume)
