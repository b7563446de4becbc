"""StandaloneClient: base class of clients without a group, which send requests to the leaders of a topic's partitions."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from groupcoord.client.member.metadata_and_commit_requests import metadata_request
from groupcoord.protocol.messages import MetadataResponse
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.network import GENERAL, MEMBER_ACTS, OnResponse, PendingRequests, SimulatedNetwork, rank
from groupcoord.simulation.plan import SimulationPlan

REQUEST_TIMEOUT_MS = 12_000


class ClientEnvironment(Protocol):
    """The part of the simulated world that a client uses."""

    plan: SimulationPlan
    event_queue: EventQueue
    network: SimulatedNetwork

    def broker_number(self, node_id: int) -> int:
        """The number of a broker (from 0)."""

    def random_broker(self, slot_id: int) -> int:
        """The number of a random broker."""


class StandaloneClient(ABC):
    """A client that calls ``act`` every ``interval_ms``."""

    def __init__(self, environment: ClientEnvironment, slot_id: int, name: str, topic: str, interval_ms: int) -> None:
        self.name, self.topic = name, topic
        self.leaders: dict[int, int] = {}
        """The number of the broker that leads each partition, as far as it is known."""
        self._environment, self._slot_id, self._interval_ms = environment, slot_id, interval_ms
        self._event_queue = environment.event_queue
        self.requests = PendingRequests(environment.network, slot_id, lambda callback: callback(), self.later)
        self._last_ticket = 0

    def start(self, first_ms: int, last_ms: int) -> None:
        """Call ``act`` periodically, from ``first_ms`` to ``last_ms``."""

        def tick() -> None:
            if self._event_queue.now_ms + self._interval_ms <= last_ms:
                self.later(tick, self._interval_ms)
            self.act()

        self.later(tick, first_ms)

    @abstractmethod
    def act(self) -> None:
        """The periodic action of a subclass."""

    def later(self, callback: Callback, after_ms: int = 0) -> None:
        """Schedule ``callback`` as a separate event."""
        self._event_queue.schedule(self._event_queue.now_ms + after_ms, rank(self._slot_id, MEMBER_ACTS), callback)

    def send(self, broker: int, request: Any, on_response: OnResponse, on_failure: Callback) -> None:
        """Send ``request`` to that broker (numbered from 0), then call ``on_response`` or ``on_failure``."""
        queue, self._last_ticket = self._event_queue, self._last_ticket + 1
        due_ms = queue.now_ms + REQUEST_TIMEOUT_MS
        timer = queue.schedule(
            due_ms, rank(self._slot_id, MEMBER_ACTS), lambda: self.requests.expire(self._event_queue.now_ms)
        )

        def responded(response: Any) -> None:
            queue.cancel(timer)
            on_response(response)

        self.requests.send(
            self._last_ticket, (broker, GENERAL), request, due_ms, responded, lambda _: on_failure(), routine=False
        )

    def find_leaders(self, then: Callback) -> None:
        """Fetch the partition leaders from a random broker, then call ``then``, even if that failed."""

        def found(response: MetadataResponse) -> None:
            (topic,) = response.topics
            self.leaders = {
                each.partition_index: self._environment.broker_number(each.leader_id)
                for each in topic.partitions
                if each.leader_id >= 0
            }
            then()

        request = metadata_request([self.topic])
        self.send(self._environment.random_broker(self._slot_id), request, found, then)
