"""The brokers that a cluster is of, which Kafka's clients call nodes: to stop, kill, pause and start one of them."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Path, Query

from groupcoord.control.controlled_cluster import ControlledCluster, taken
from groupcoord.control.node_models import Node
from groupcoord.control.problems import ProblemError, responses, wrong_argument
from groupcoord.control.routing import CONFLICT, WAITS, Target, Timeout, router, waited
from groupcoord.testing.cluster_broker import ClusterBroker, delay_of

nodes = router("nodes")

Peer = Annotated[str, Query(description="the id of another broker, `controller` or `clients`")]
Seconds = Annotated[float, Query(description="how long each append takes, on the cluster's clock; 0: no time")]
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
        copying=condition.is_copying,
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
    """With what each of them does, and all that was done to it."""
    return [_answer(cluster, cluster.broker(node)) for node in cluster.brokers]


@nodes.get("/nodes/{node}", summary="Show a broker of the cluster")
async def show_node(node: NodeId, cluster: Target) -> Node:
    """What it does, and all that was done to it."""
    return _answer(cluster, _broker(cluster, node))


@nodes.get("/nodes/{node}/wait", summary="Wait until a broker is as it should be", responses=WAITS)
async def wait_node(
    node: NodeId,
    cluster: Target,
    timeout: Timeout,
    fenced: Annotated[bool, Query(description="the controller has fenced it")] = False,
    running: Annotated[bool, Query(description="it runs, as after a start that had to wait")] = False,
) -> Node:
    """A long poll: the answer comes when it is so. One of the two."""
    if fenced is running:
        raise ProblemError.of_field("query", "one of fenced=true and running=true")
    broker = _broker(cluster, node)
    await waited(cluster, broker.wait_fenced(timeout=timeout) if fenced else broker.wait_running(timeout=timeout))
    return _answer(cluster, broker)


@nodes.post("/nodes/{node}/stop", summary="Shut a broker down in order", responses=CONFLICT)
async def stop_node(node: NodeId, cluster: Target) -> Node:
    """First others lead what it led, as far as others are in sync; then its connections are closed, and it is fenced."""
    return await _done(cluster, node, ClusterBroker.stop)


@nodes.post("/nodes/{node}/kill", summary="End a broker without a word", responses=CONFLICT)
async def kill_node(node: NodeId, cluster: Target) -> Node:
    """Its connections are closed; others lead when its session ends, ``broker.session.timeout.ms`` later."""
    return await _done(cluster, node, ClusterBroker.kill)


@nodes.post("/nodes/{node}/pause", summary="Let a broker say nothing", responses=CONFLICT)
async def pause_node(node: NodeId, cluster: Target) -> Node:
    """As a process that is suspended: its connections stay open, and others lead when its session ends."""
    return await _done(cluster, node, ClusterBroker.pause)


@nodes.post("/nodes/{node}/resume", summary="Let a paused broker go on", responses=CONFLICT)
async def resume_node(node: NodeId, cluster: Target) -> Node:
    """What it was asked meanwhile is answered."""
    return await _done(cluster, node, ClusterBroker.resume)


@nodes.post("/nodes/{node}/start", summary="Start a broker again", responses=responses(409, 503))
async def start_node(node: NodeId, cluster: Target) -> Node:
    """After a stop or a kill, with all that it had; after a kill it is ``starting`` until its session from before has ended."""
    return await _done(cluster, node, ClusterBroker.start)


@nodes.post("/nodes/{node}/stop-copying", summary="Let a broker copy nothing from leaders")
async def stop_copying_at_node(node: NodeId, cluster: Target) -> Node:
    """As a follower that is too slow: it is out of the replicas in sync ``replica.lag.time.max.ms`` later."""
    return await _done(cluster, node, ClusterBroker.stop_copying)


@nodes.post("/nodes/{node}/copy-again", summary="Let a broker copy from leaders again")
async def copy_again_at_node(node: NodeId, cluster: Target) -> Node:
    """It has all that they have, and is in sync."""
    return await _done(cluster, node, ClusterBroker.copy_again)


@nodes.post("/nodes/{node}/cut-off", summary="Cut the network between a broker and a peer", responses=CONFLICT)
async def cut_off_node(node: NodeId, cluster: Target, peer: Peer) -> Node:
    """Copies stop at another broker, requests wait at clients; without the controller it is fenced, and leads on in vain."""
    return await _done(cluster, node, lambda broker: broker.cut_off(_peer(peer)))


@nodes.post("/nodes/{node}/reconnect", summary="Mend what a cut-off has cut", responses=CONFLICT)
async def reconnect_node(node: NodeId, cluster: Target, peer: Peer) -> Node:
    """Clients are answered, copies go on, and the broker hears who leads."""
    return await _done(cluster, node, lambda broker: broker.reconnect(_peer(peer)))


@nodes.post("/nodes/{node}/slow-disk", summary="Let what a broker appends take its time")
async def slow_disk_of_node(node: NodeId, cluster: Target, seconds: Seconds) -> Node:
    """What is produced and committed is answered so much later, and as a follower its copies come so much later."""
    with wrong_argument("seconds"):
        delay_of(seconds)
    return await _done(cluster, node, lambda broker: broker.slow_disk(seconds))


@nodes.post("/nodes/{node}/lose-disk", summary="Let a broker that does not run lose its disk", responses=CONFLICT)
async def lose_disk_of_node(node: NodeId, cluster: Target) -> Node:
    """It starts with empty logs, and copies them anew."""
    return await _done(cluster, node, ClusterBroker.lose_disk)


@nodes.post("/nodes/{node}/unregister", summary="Let the controller forget a broker", responses=CONFLICT)
async def unregister_node(node: NodeId, cluster: Target) -> Node:
    """One that runs goes on as one that the others do not know, until it is started again."""
    return await _done(cluster, node, ClusterBroker.unregister)


def _peer(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
