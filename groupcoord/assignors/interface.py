"""What an assignor is to the client and to the command line (``ConsumerPartitionAssignor``)."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from groupcoord.assignors.model import Assignment, Group, RebalanceProtocol, TopicPartition


class Assignor(Protocol):
    """An assignor of one member.

    ``name`` and ``assign`` are what makes one. The rest may be inherited, by naming this class as a base: an assignor then
    supports the eager protocol only, sends no user data and remembers nothing.
    """

    name: str
    """What it is called in JoinGroup; members vote for names, so it has to mean the same to all."""

    protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,)
    """Under which protocols it gives right answers; cooperative ones may not give away what somebody still owns."""

    def assign(self, group: Group) -> Assignment:
        """Who gets what, when this member leads. Every member has an entry in the answer, if only an empty one.

        May raise anything; the leader's join then fails with it, and the group goes on without an answer.
        """
        ...

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002 - for those who override it
        """What to send along with this member's subscription to ``topics``."""
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:  # noqa: ARG002 - see above
        """Hear what this member got in a generation, before anybody else does."""
        return


class FunctionAssignor(Assignor):
    """A function under a name."""

    def __init__(
        self,
        name: str,
        function: Callable[[Group], Assignment],
        protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,),
    ) -> None:
        self.name = name
        self.protocols = protocols
        self._function = function

    def assign(self, group: Group) -> Assignment:
        """What the function answers."""
        return self._function(group)
