"""The events of a group member (joined, assignment received …), which a consumer passes to its ``listeners``."""

from groupcoord.assignors import TopicPartition
from groupcoord.core.events import Event, event_class, partition_names


@event_class
class MemberEvent(Event):
    """Something happened to a member of ``group``; ``member`` is its id, "" as long as it has none."""

    group: str
    member: str


@event_class
class CoordinatorFound(MemberEvent):
    """The member has found its coordinator."""

    coordinator: str

    def text(self) -> str:
        return f"the coordinator of {self.group} is {self.coordinator}"


@event_class
class CoordinatorLost(MemberEvent):
    """The member has to look for the coordinator again."""

    coordinator: str
    reason: str

    def text(self) -> str:
        return f"{self.coordinator} is no longer the coordinator: {self.reason}"


@event_class
class RejoinWanted(MemberEvent):
    """The member will join again."""

    reason: str

    def text(self) -> str:
        return f"has to join again: {self.reason}"


@event_class
class JoinSent(MemberEvent):
    """JoinGroup is sent. ``keeps`` are the partitions that it consumes meanwhile: none under the eager protocol."""

    generation: int
    protocol: str
    assignors: tuple[str, ...]
    keeps: tuple[TopicPartition, ...]
    reason: str

    def text(self) -> str:
        keeps = f"keeps {partition_names(self.keeps)} meanwhile" if self.keeps else "owns nothing meanwhile"
        return f"joins ({self.protocol}, offers {', '.join(self.assignors)}), {keeps}{because(self.reason)}"


@event_class
class MemberIdGiven(MemberEvent):
    """The coordinator gave the new member an id, with which it joins again (KIP-394)."""

    def text(self) -> str:
        return f"is {self.member} from now on and joins with that id"


@event_class
class Joined(MemberEvent):
    """JoinGroup succeeded; the ``leader`` computes the assignment with the ``assignor`` that the group chose."""

    generation: int
    assignor: str
    leader: str
    members: int

    def text(self) -> str:
        role = f"leads {self.members} member(s)" if self.leader == self.member else f"follows {self.leader}"
        return f"is in generation {self.generation} and {role}; the vote chose {self.assignor}"


@event_class
class AssignorRan(MemberEvent):
    """The leader's assignor has returned; ``withheld`` partitions stay unassigned until their owners have revoked them."""

    assignor: str
    assignment: tuple[tuple[str, tuple[TopicPartition, ...]], ...]
    withheld: tuple[TopicPartition, ...]

    def text(self) -> str:
        given = "; ".join(f"{member}: {partition_names(partitions)}" for member, partitions in self.assignment)
        withheld = f"; nobody gets yet: {partition_names(self.withheld)}" if self.withheld else ""
        return f"{self.assignor} gives {given}{withheld}"


@event_class
class AssignmentSkipped(MemberEvent):
    """A static leader rejoined and skips the assignment, which is still valid (KIP-814)."""

    def text(self) -> str:
        return "leads a group whose assignment stands, and assigns nothing"


@event_class
class Synced(MemberEvent):
    """The member has its assignment: the partitions it keeps, gains and gives up."""

    generation: int
    keeps: tuple[TopicPartition, ...]
    gains: tuple[TopicPartition, ...]
    gives_up: tuple[TopicPartition, ...]

    def text(self) -> str:
        return (
            f"generation {self.generation}: keeps {partition_names(self.keeps)}, gains {partition_names(self.gains)}, "
            f"gives up {partition_names(self.gives_up)}" + (" and joins a second time" if self.gives_up else "")
        )


@event_class
class HeartbeatJoinSent(MemberEvent):
    """The heartbeat with epoch 0 is sent, with which a member of the consumer protocol joins; ``subscription`` is a text."""

    subscription: str

    def text(self) -> str:
        return f"joins with epoch 0, subscribes to {self.subscription}"


@event_class
class EpochReached(MemberEvent):
    """The coordinator has moved the member to ``epoch``."""

    epoch: int

    def text(self) -> str:
        return f"is at epoch {self.epoch}"


@event_class
class AssignmentReceived(MemberEvent):
    """The coordinator has sent a target assignment; the member begins to change to it, first by revoking."""

    epoch: int
    keeps: tuple[TopicPartition, ...]
    gains: tuple[TopicPartition, ...]
    gives_up: tuple[TopicPartition, ...]

    def text(self) -> str:
        return (
            f"epoch {self.epoch}: keeps {partition_names(self.keeps)}, gains {partition_names(self.gains)}, "
            f"gives up {partition_names(self.gives_up)}"
        )


@event_class
class AssignmentAcknowledged(MemberEvent):
    """The heartbeat with the owned partitions is sent, which frees the revoked ones for other members."""

    owns: tuple[TopicPartition, ...]

    def text(self) -> str:
        return f"tells the coordinator that it owns {partition_names(self.owns)}"


@event_class
class Fenced(MemberEvent):
    """The coordinator has fenced the member or does not know it: all its partitions are lost, and it joins again."""

    reason: str

    def text(self) -> str:
        return f"is out of the group, loses what it owned and joins again: {self.reason}"


@event_class
class PartitionsTold(MemberEvent):
    """A callback of the user has returned; ``news`` is ``assigned``, ``revoked`` or ``lost``."""

    news: str
    partitions: tuple[TopicPartition, ...]

    def text(self) -> str:
        return f"{self.news}: {partition_names(self.partitions)}"


@event_class
class MembershipReset(MemberEvent):
    """The member has lost its generation and all partitions; ``forgets_id``: its member id, too."""

    reason: str
    forgets_id: bool

    def text(self) -> str:
        return f"is out of its generation{' and starts as a newcomer' if self.forgets_id else ''}: {self.reason}"


@event_class
class RequestFailed(MemberEvent):
    """A step did not succeed; ``then`` is what the member does about it."""

    request: str
    error: str
    then: str

    def text(self) -> str:
        return f"{self.request} refused with {self.error}: {self.then}"


@event_class
class PolledTooLate(MemberEvent):
    """The user did not poll for ``max_poll_interval_ms``, so the member leaves until it does."""

    max_poll_interval_ms: int

    def text(self) -> str:
        return (
            f"nobody asked for records for {self.max_poll_interval_ms} ms, so it leaves the group until somebody does"
        )


@event_class
class LeaveSent(MemberEvent):
    """The member leaves the group; a static one never sends LeaveGroup."""

    reason: str

    def text(self) -> str:
        return f"leaves {self.group}{because(self.reason)}"


@event_class
class MemberFailed(MemberEvent):
    """The member has ended; ``error`` is raised to its user."""

    error: str

    def text(self) -> str:
        return f"has ended: {self.error}"


def because(reason: str) -> str:
    """``reason`` as the end of a sentence."""
    return f" because {reason}" if reason else ""
