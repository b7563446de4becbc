"""What is answered about one broker of a cluster."""

from pydantic import Field

from groupcoord.control.models import Broker


class Node(Broker):
    """One broker of a cluster, what it does, and all that was done to it."""

    state: str = Field(
        description="running, paused, stopped, or starting: until its session from before it was killed has ended"
    )
    fenced: bool = Field(description="the controller has fenced it: clients are not told of it, and it leads nothing")
    registered: bool = Field(description="the controller knows it, fenced or not")
    cut_off_from: list[str] = Field(description="the ids of other brokers, `clients` and `controller`")
    copying: bool = Field(description="it copies from leaders, as far as it runs and reaches them")
    slow_disk_ms: int = Field(description="how long each of its appends takes; 0: no time")
    lost_disk: bool = Field(description="it has lost its disk, and was not started since")
    condition: str = Field(
        description="all of that in words",
        examples=["running, cut off from broker 3, slow disk: 500 ms for each append"],
    )
