"""groupcoord in this process, in a thread and an event loop of its own, so that clients may block as they like."""

from collections.abc import Mapping

from groupcoord import Cluster, SyncCluster

# Short enough to wait for, long enough that a busy machine does not make the living look dead.
CONFIG = {"group.min.session.timeout.ms": 1500}


def groupcoord(config: Mapping[str, object] = CONFIG, *, dev: bool = True) -> SyncCluster:
    """A broker while its ``with`` block runs, in real time. The end of the block raises what went wrong in it."""
    return Cluster(config=config, dev=dev).sync()
