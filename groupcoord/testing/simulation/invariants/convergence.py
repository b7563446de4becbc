"""What has to come about in the end, and what must never happen to a member."""

from groupcoord.client.errors import BrokerError
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.simulation.invariants.base import Invariant
from groupcoord.testing.simulation.invariants.ownership import assigned
from groupcoord.testing.simulation.process import Process


class NoSurprise(Invariant):
    """See ``promise``."""

    name = "no-surprise"
    promise = (
        "No member ends by itself, but a static one that is fenced, because somebody else has joined with its instance id: its "
        "twin, or its own next life, or a JoinGroup of its last life that was still on its way."
    )

    def failed(self, process: Process, error: Exception) -> None:
        """Raises Broken."""
        fenced = isinstance(error, BrokerError) and error.code is ErrorCode.FENCED_INSTANCE_ID
        if not fenced or process.plan.instance_id is None:
            raise self.broken(f"{process.client_id} ended: {error}")


class Convergence(Invariant):
    """See ``promise``."""

    name = "converges"
    promise = (
        "When nothing more is done to anybody, the group is Stable in time: its members are exactly those that run, each "
        "partition that somebody wants belongs to one of them, and everybody believes what the coordinator says. In time means "
        "5 minutes, two sessions and three rebalance timeouts."
    )

    def finish(self) -> None:
        """Raises Broken."""
        group, processes = self.scene.brokers.group, self.scene.processes()
        if group is None or group.state is not GroupState.STABLE:
            raise self.broken(f"the group is {'not there' if group is None else group.state}")
        running = {process.member_id: process.client_id for process in processes}
        if running.keys() != set(group.members):
            raise self.broken(f"{sorted(running)} run, {sorted(group.members)} are members")
        given = assigned(group)
        for process in processes:
            if not process.is_stable:
                raise self.broken(f"{process.client_id} is {process.membership.state.value}")
            if process.owned != given[process.member_id]:
                believes, has = sorted(process.owned), sorted(given[process.member_id])
                raise self.broken(f"{process.client_id} believes to own {believes}, the coordinator gave it {has}")
        topics = {topic for process in processes for topic in process.topics}
        wanted = {(topic, n) for topic in topics for n in range(self.scene.plan.topics.get(topic, 0))}
        if nobodys := sorted(wanted.difference(*given.values())):
            raise self.broken(f"{nobodys[0][0]}-{nobodys[0][1]} belongs to nobody")
