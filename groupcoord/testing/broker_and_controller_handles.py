"""ClusterBroker, one broker of an in-process cluster, which a test can stop, kill, pause, start, cut off and slow down, and
ControllerHandle, its controller."""

from collections.abc import Callable

from groupcoord.cluster.broker_status import BrokerCondition, BrokerState
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.controller_outages import ControllerNode
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.testing.engine import Engine
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.wait_reasons import explained, wait_reasons

DUPLICATE_TEXT = (
    "another broker is registered with that id (DUPLICATE_BROKER_REGISTRATION). If the broker was recently restarted this "
    "should self-resolve once the heartbeat manager expires the broker's session."
)


LONGEST_DELAY_S = 86_400.0
"""The longest delay of an append (seconds): a day."""


def delay_of(seconds: float) -> int:
    """``seconds``, the delay of an append, in milliseconds. Raises ValueError for an invalid delay."""
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_time or not (seconds == 0 or 0.001 <= seconds <= LONGEST_DELAY_S):
        raise ValueError(
            f"seconds={seconds!r}: an append takes 0.001 to {LONGEST_DELAY_S:g} seconds on a slow disk; 0 is as quick as before"
        )
    return round(seconds * 1000)


class DuplicateBrokerRegistrationError(ValueError):
    """The controller refused a broker because one with the same id has a live session."""


@noted
class ClusterBroker:
    """One broker of a :class:`~groupcoord.testing.cluster.Cluster` of several. Actions raise ValueError.

    A broker that is killed or paused is fenced when its session expires, ``broker.session.timeout.ms`` later (9 s unless
    configured); only then do others become leaders of its partitions. A broker that is stopped hands them over first.
    """

    def __init__(self, broker_id: int, engine: Engine) -> None:
        if broker_id not in engine.core.broker.cluster.ids:
            ids = ", ".join(map(str, engine.core.broker.cluster.ids))
            raise ValueError(f"there is no broker {broker_id}: the ids are {ids}")
        self.id = broker_id
        """The broker id."""
        self._engine = engine

    def __repr__(self) -> str:
        return f"<ClusterBroker {self.id}: {self.condition}>"

    @property
    def state(self) -> str:
        """``running``, ``paused``, ``stopped``, or ``starting`` until its session from before a kill has expired."""
        return self._controller.state_of(self.id).value

    @property
    def condition(self) -> BrokerCondition:
        """Its state and the faults injected into it: network cuts, a slow disk and so on. As text it is one line."""
        return self._controller.condition_of(self.id)

    @property
    def is_fenced(self) -> bool:
        """Whether the controller has fenced it, or does not know it: it is not in clients' metadata, and leads nothing."""
        return self.id in self._engine.core.broker.cluster.fenced

    @property
    def is_registered(self) -> bool:
        """Whether the controller knows it, fenced or not."""
        return self._controller.is_registered(self.id)

    @property
    def epoch(self) -> int | None:
        """Its broker epoch, which is new after each start; None if it is not registered."""
        return self._engine.core.broker.cluster.epochs.get(self.id)

    async def stop(self) -> None:
        """Shut it down cleanly: other in-sync replicas become leaders of its partitions, and its connections are closed."""
        await self._engine.change_broker(self.id, "stop", ClusterController.stop)

    async def kill(self) -> None:
        """Kill it, as SIGKILL does: its connections are closed, and others become leaders when its session expires."""
        await self._engine.change_broker(self.id, "kill", ClusterController.kill)

    async def pause(self) -> None:
        """Suspend it until ``resume``, as SIGSTOP does: it sends nothing, and its connections stay open."""
        await self._engine.change_broker(self.id, "pause", ClusterController.pause)

    async def resume(self) -> None:
        """End a ``pause``; requests that came meanwhile are handled."""
        await self._engine.change_broker(self.id, "resume", ClusterController.resume)

    async def start(self) -> None:
        """Start it again after ``stop`` or ``kill``, with its data; after ``kill`` it waits until its old session has expired.

        If it is not stopped, this stands for a second broker with its id, and raises DuplicateBrokerRegistrationError.
        """
        is_duplicate = self._controller.has_session(self.id) and self.state != BrokerState.STOPPED.value
        await self._engine.change_broker(self.id, "start", ClusterController.start)
        if is_duplicate:
            raise DuplicateBrokerRegistrationError(f"broker {self.id} is {self.state}: {DUPLICATE_TEXT}")

    async def unregister(self) -> None:
        """Unregister it at the controller, whether it runs or not, as ``kafka-cluster.sh unregister`` does.

        A broker that runs goes on, unknown to all others: it leads nothing until it is stopped and started again.
        """
        if not self.is_registered:
            raise ValueError(f"broker {self.id} is not registered")
        await self._engine.change_broker(self.id, "unregister", ClusterController.unregister)

    async def pause_replication(self) -> None:
        """Pause its replication from leaders until ``resume_replication``, as of a follower that is too slow.

        The high watermark stays at its log end offset, and acks=all waits, until it is removed from the ISR after
        ``replica.lag.time.max.ms`` (30 s unless configured).
        """
        await self._engine.change_broker(self.id, "pause the replication of", ClusterController.pause_replication)

    async def resume_replication(self) -> None:
        """Resume its replication from leaders: it catches up, and is in sync again."""
        await self._engine.change_broker(self.id, "resume the replication of", ClusterController.resume_replication)

    async def slow_disk(self, seconds: float) -> None:
        """Delay each of its appends by so many seconds of the cluster's time from now on; 0 ends that.

        Produce requests (acks=0, 1 and all), offset commits and other writes of its coordinators are answered so much later.
        As a follower it replicates so much later, and acks=all waits for it; if it does not keep up for
        ``replica.lag.time.max.ms``, it is removed from the ISR. Also for the only broker of a cluster. Raises ValueError for a
        value between 0 and 0.001.
        """
        delay_ms = delay_of(seconds)
        await self._engine.change_broker(
            self.id,
            "slow down the disk of" if delay_ms else "speed up the disk of",
            lambda controller, ctx, broker_id: controller.slow_disk(ctx, broker_id, delay_ms),
            even_alone=True,
        )

    async def lose_disk(self) -> None:
        """Delete its data while it is stopped or killed: it will start with empty logs, and replicate them again."""
        await self._engine.change_broker(self.id, "lose the disk of", ClusterController.lose_disk)

    async def cut_off(self, peer: int | str) -> None:
        """Cut the network between it and another broker (its id), ``"clients"`` or the ``"controller"``, until ``reconnect``.

        Brokers that are cut off from each other do not replicate; requests of clients that are cut off wait. A broker that is
        cut off from the controller is fenced when its session expires, but still takes itself for the leader of its partitions:
        with acks=1 a producer gets a successful response.
        """
        await self._engine.change_broker(
            self.id, f"cut off {peer} from", lambda controller, ctx, broker_id: controller.cut_off(ctx, broker_id, peer)
        )

    async def reconnect(self, peer: int | str) -> None:
        """End a ``cut_off``: requests of clients are handled, replication resumes, and it gets the metadata that it missed."""
        await self._engine.change_broker(
            self.id,
            f"reconnect {peer} to",
            lambda controller, ctx, broker_id: controller.reconnect(ctx, broker_id, peer),
        )

    async def wait_fenced(self, *, timeout: float | None = None) -> None:
        """Wait until the controller has fenced the broker."""
        await self._wait(lambda: self.is_fenced, "be fenced", timeout)

    async def wait_running(self, *, timeout: float | None = None) -> None:
        """Wait until it runs, as after ``start`` of a broker whose old session had not expired."""
        await self._wait(lambda: self._controller.state_of(self.id) is BrokerState.RUNNING, "run", timeout)

    async def _wait(self, condition: Callable[[], bool], what: str, timeout: float | None) -> None:
        await self._engine.waiting.until(
            condition,
            f"broker {self.id} should {what}",
            lambda: explained(f"It is {self.condition}", wait_reasons(self._engine)),
            timeout=timeout,
        )

    @property
    def _controller(self) -> ClusterController:
        return self._engine.core.controller


@noted
class ControllerHandle:
    """The controller of a :class:`~groupcoord.testing.cluster.Cluster` of several brokers. Actions raise
    ValueError if the controller is in the wrong state.

    While it is down or paused, brokers serve, lead and replicate with the metadata that they have. No broker is fenced, no
    leader elected, no ISR changed, and no broker that starts is registered. Requests about topics, configs, elections and the
    quorum wait for it, and get REQUEST_TIMED_OUT after 60 s.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __repr__(self) -> str:
        return f"<ControllerHandle {self.id}, {self.state}, epoch {self.epoch}>"

    @property
    def id(self) -> int:
        """Its node id."""
        return self._engine.core.controller.quorum.voters[0][0]

    @property
    def state(self) -> str:
        """``running``, ``paused`` or ``stopped``."""
        return self._engine.core.controller_node.state.value

    @property
    def epoch(self) -> int:
        """The epoch in which it was elected, one more after each start."""
        return self._engine.core.controller.quorum.leader_epoch

    async def kill(self) -> None:
        """Kill it, as SIGKILL does."""
        await self._change("kill", ControllerNode.kill)

    async def start(self) -> None:
        """Start it again after ``kill``, in the next epoch: waiting requests are handled, and brokers get new sessions."""
        await self._change("start", ControllerNode.start)

    async def pause(self) -> None:
        """Suspend it until ``resume``, as SIGSTOP does: it decides nothing."""
        await self._change("pause", ControllerNode.pause)

    async def resume(self) -> None:
        """End a ``pause``, in the same epoch: waiting requests are handled."""
        await self._change("resume", ControllerNode.resume)

    async def _change(self, action: str, act: Callable[[ControllerNode, HandlerContext], None]) -> None:
        await self._engine.change_controller(f"{action} the controller", act)
