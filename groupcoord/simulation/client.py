"""A client of the brokers without a group: it knows who leads the partitions of a topic, and sends requests to them."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from groupcoord.client.member.request_builders import metadata_request
from groupcoord.protocol.messages import MetadataResponse
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.network import GENERAL, MEMBER_ACTS, OnResponse, PendingRequests, SimulatedNetwork, rank
from groupcoord.simulation.plan import SimulationPlan

REQUEST_TIMEOUT_MS = 12_000


class ClientEnvironment(Protocol):
    """The world as a client sees it."""

    plan: SimulationPlan
    event_queue: EventQueue
    network: SimulatedNetwork

    def broker_number(self, node_id: int) -> int:
        """The number of a broker, counted from 0."""

    def random_broker(self, slot_id: int) -> int:
        """The number of any broker."""


class SimulatedClient(ABC):
    """Subclasses say what it does every ``interval_ms``."""

    def __init__(self, environment: ClientEnvironment, slot_id: int, name: str, topic: str, interval_ms: int) -> None:
        self.name, self.topic = name, topic
        self.leaders: dict[int, int] = {}
        """The number of the broker that leads each partition, as far as it is known."""
        self._environment, self._slot_id, self._interval_ms = environment, slot_id, interval_ms
        self._event_queue = environment.event_queue
        self.requests = PendingRequests(environment.network, slot_id, lambda callback: callback(), self.later)
        self._last_ticket = 0

    def start(self, first_ms: int, last_ms: int) -> None:
        """Do something every now and then, from ``first_ms`` to ``last_ms``."""

        def tick() -> None:
            if self._event_queue.now_ms + self._interval_ms <= last_ms:
                self.later(tick, self._interval_ms)
            self.act()

        self.later(tick, first_ms)

    @abstractmethod
    def act(self) -> None:
        """Do it once."""

    def later(self, callback: Callback, after_ms: int = 0) -> None:
        """Call ``callback`` as an event of its own."""
        self._event_queue.schedule(self._event_queue.now_ms + after_ms, rank(self._slot_id, MEMBER_ACTS), callback)

    def send(self, broker: int, request: Any, on_response: OnResponse, on_failure: Callback) -> None:
        """Send ``request`` to that broker, counted from 0; either ``on_response`` or ``on_failure`` is called."""
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
        """Ask any broker who leads the partitions, and go on, even if that is not known."""

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
