"""groupcoord in this process, in a thread and an event loop of its own, so that clients may block as they like."""

from collections.abc import Mapping

from groupcoord import Cluster, SyncCluster

# Short enough to wait for, long enough that a busy machine does not make the living look dead.
CONFIG = {
    "group.min.session.timeout.ms": 1500,
    "group.consumer.min.session.timeout.ms": 1500,
    "group.consumer.session.timeout.ms": 20_000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
}


def groupcoord(config: Mapping[str, object] = CONFIG, *, dev: bool = True) -> SyncCluster:
    """A broker while its ``with`` block runs, in real time. The end of the block raises what went wrong in it."""
    return Cluster(config=config, dev=dev).sync()
