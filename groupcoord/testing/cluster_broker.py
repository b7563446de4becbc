"""A broker of a cluster in this process, which a test can stop, kill, pause and start."""

from collections.abc import Callable

from groupcoord.cluster.broker_state import BrokerCondition, BrokerState
from groupcoord.cluster.controller import ClusterController
from groupcoord.testing.engine import Engine
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.wait_reasons import explained, wait_reasons

DUPLICATE_TEXT = (
    "another broker is registered with that id (DUPLICATE_BROKER_REGISTRATION). If the broker was recently restarted this "
    "should self-resolve once the heartbeat manager expires the broker's session."
)


LONGEST_DELAY_S = 86_400.0
"""A day, which no client waits for."""


def delay_of(seconds: float) -> int:
    """How long an append takes, in milliseconds. Raises ValueError for what is no such time."""
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_time or not (seconds == 0 or 0.001 <= seconds <= LONGEST_DELAY_S):
        raise ValueError(
            f"seconds={seconds!r}: an append takes 0.001 to {LONGEST_DELAY_S:g} seconds on a slow disk; 0 is as quick as before"
        )
    return round(seconds * 1000)


class DuplicateBrokerRegistrationError(ValueError):
    """A broker with the id of one whose session lives is refused by the controller."""


@noted
class ClusterBroker:
    """One broker of a :class:`~groupcoord.testing.cluster.Cluster` of several. Actions raise ValueError.

    A broker that was killed or paused is fenced when its session ends, ``broker.session.timeout.ms`` later (9 s unless
    configured): only then do others lead what it led. One that is stopped hands over first.
    """

    def __init__(self, broker_id: int, engine: Engine) -> None:
        if broker_id not in engine.core.broker.cluster.ids:
            ids = ", ".join(map(str, engine.core.broker.cluster.ids))
            raise ValueError(f"there is no broker {broker_id}: the ids are {ids}")
        self.id = broker_id
        """Its id."""
        self._engine = engine

    def __repr__(self) -> str:
        return f"<ClusterBroker {self.id}: {self.condition}>"

    @property
    def state(self) -> str:
        """What it does: ``running``, ``paused``, ``stopped``, or ``starting`` until its session from before has ended."""
        return self._controller.state_of(self.id).value

    @property
    def condition(self) -> BrokerCondition:
        """What it does, and all that was done to it: cuts, a slow disk and so on. As text it is a line."""
        return self._controller.condition_of(self.id)

    @property
    def is_fenced(self) -> bool:
        """Whether the controller has fenced it, or does not know it: clients are not told of it, and it leads nothing."""
        return self.id in self._engine.core.broker.cluster.fenced

    @property
    def is_registered(self) -> bool:
        """Whether the controller knows it, fenced or not."""
        return self._controller.is_registered(self.id)

    @property
    def epoch(self) -> int | None:
        """Its broker epoch, which is another one after each start; None if it is not registered."""
        return self._engine.core.broker.cluster.epochs.get(self.id)

    async def stop(self) -> None:
        """Shut it down in order: others lead what it led, as far as others are in sync, and its connections are closed."""
        await self._engine.change_broker(self.id, "stop", ClusterController.stop)

    async def kill(self) -> None:
        """End it without a word: its connections are closed, and others lead when its session ends."""
        await self._engine.change_broker(self.id, "kill", ClusterController.kill)

    async def pause(self) -> None:
        """Let it say nothing until ``resume``, as a process that is suspended: its connections stay open."""
        await self._engine.change_broker(self.id, "pause", ClusterController.pause)

    async def resume(self) -> None:
        """Let it go on after ``pause``; what it was asked meanwhile is answered."""
        await self._engine.change_broker(self.id, "resume", ClusterController.resume)

    async def start(self) -> None:
        """Start it again after ``stop`` or ``kill``, with all that it had; after ``kill`` first when its session has ended.

        Where it is not stopped, whoever starts is another broker with its id: DuplicateBrokerRegistrationError.
        """
        is_duplicate = self._controller.has_session(self.id) and self.state != BrokerState.STOPPED.value
        await self._engine.change_broker(self.id, "start", ClusterController.start)
        if is_duplicate:
            raise DuplicateBrokerRegistrationError(f"broker {self.id} is {self.state}: {DUPLICATE_TEXT}")

    async def unregister(self) -> None:
        """Let the controller forget it, whether it runs or not, as ``kafka-cluster.sh unregister`` does.

        One that runs goes on, unknown to all others: it leads nothing until it is stopped and started again.
        """
        if not self.is_registered:
            raise ValueError(f"broker {self.id} is not registered")
        await self._engine.change_broker(self.id, "unregister", ClusterController.unregister)

    async def stop_copying(self) -> None:
        """Let it copy nothing from leaders until ``copy_again``, as a follower that is too slow.

        The high watermark stays where its copy ends, and acks=all waits, until it is out of the ISR: after
        ``replica.lag.time.max.ms`` (30 s unless configured).
        """
        await self._engine.change_broker(self.id, "stop copying at", ClusterController.stop_copying)

    async def copy_again(self) -> None:
        """Let it copy from leaders again: it has all that they have, and is in sync."""
        await self._engine.change_broker(self.id, "copy again at", ClusterController.copy_again)

    async def slow_disk(self, seconds: float) -> None:
        """Let everything that it appends take so many seconds of the cluster's time from now on; 0 ends that.

        So much later what is produced is answered (acks=0, 1 and all), and so are commits and what else its coordinators write;
        as a follower its copies come so much later, and acks=all waits for them. If it has not kept up for
        ``replica.lag.time.max.ms`` it is out of the ISR. Also for the only broker of a cluster. Raises ValueError for less
        than 0.001 that is not 0.
        """
        delay_ms = delay_of(seconds)
        await self._engine.change_broker(
            self.id,
            "slow down the disk of" if delay_ms else "speed up the disk of",
            lambda controller, ctx, broker_id: controller.slow_disk(ctx, broker_id, delay_ms),
            even_alone=True,
        )

    async def lose_disk(self) -> None:
        """Let it lose its disk while it is stopped or killed: it starts with empty logs, and copies them anew."""
        await self._engine.change_broker(self.id, "lose the disk of", ClusterController.lose_disk)

    async def cut_off(self, peer: int | str) -> None:
        """Cut the network between it and another broker (its id), ``"clients"`` or the ``"controller"``, until ``reconnect``.

        Brokers copy nothing from each other through a cut. What clients ask waits. Cut off from the controller it is fenced
        when its session ends, but believes on that it leads what it led: with acks=1 a producer is told that its record is
        written.
        """
        await self._engine.change_broker(
            self.id, f"cut off {peer} from", lambda controller, ctx, broker_id: controller.cut_off(ctx, broker_id, peer)
        )

    async def reconnect(self, peer: int | str) -> None:
        """Mend what ``cut_off`` has cut: clients are answered, copies go on, and it hears who leads."""
        await self._engine.change_broker(
            self.id,
            f"reconnect {peer} to",
            lambda controller, ctx, broker_id: controller.reconnect(ctx, broker_id, peer),
        )

    async def wait_fenced(self, *, timeout: float | None = None) -> None:
        """Wait until the controller has fenced it."""
        await self._wait(lambda: self.is_fenced, "be fenced", timeout)

    async def wait_running(self, *, timeout: float | None = None) -> None:
        """Wait until it runs, as after ``start`` of a broker whose session from before had not ended."""
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
