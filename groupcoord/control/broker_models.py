"""The Pydantic models of responses about one broker of a cluster (``/nodes``) and about its controller (``/controller``)."""

from pydantic import Field

from groupcoord.control.models import Broker, ResponseBody


class Node(Broker):
    """The state of one broker of a cluster, with every fault that is injected into it."""

    state: str = Field(
        description="running, paused, stopped, or starting: it waits until its session from before a kill has expired"
    )
    fenced: bool = Field(
        description="the controller has fenced it: it is not in clients' metadata, and leads no partition"
    )
    registered: bool = Field(description="the controller knows it, fenced or not")
    cut_off_from: list[str] = Field(description="the ids of other brokers, `clients` and `controller`")
    replicating: bool = Field(description="it replicates from leaders, provided that it runs and reaches them")
    slow_disk_ms: int = Field(description="how long each of its appends is delayed: milliseconds; 0: not at all")
    lost_disk: bool = Field(description="its data was deleted, and it was not started since")
    condition: str = Field(
        description="the state and the faults in words",
        examples=["running, cut off from broker 3, slow disk: 500 ms for each append"],
    )


class Controller(ResponseBody):
    """The controller of a cluster."""

    id: int
    state: str = Field(description="running, paused or stopped")
    epoch: int = Field(description="the epoch in which it was elected")
