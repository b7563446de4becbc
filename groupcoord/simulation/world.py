"""SimulatedWorld: executes one plan, with brokers, network and members on one simulated clock.

It reads no clock and uses no ``random``, so that a run is a function of its plan. Invariants are checked after every step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.cluster.coordinator_partition_writer import HOLD
from groupcoord.core.events import Event
from groupcoord.protocol.errors import ErrorCode
from groupcoord.simulation.actions import COORDINATOR_ACTIONS, FAILURES, ActionKind
from groupcoord.simulation.brokers import SimulatedBrokers
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.invariants import InvariantChecker
from groupcoord.simulation.member_process import MemberProcess
from groupcoord.simulation.network import SimulatedConnection, SimulatedNetwork
from groupcoord.simulation.plan import (
    CHANGING_TOPIC,
    CLASSIC,
    CONSUMER,
    OFFSETS_TOPIC,
    TRANSACTION_STATE,
    WRITTEN_TOPIC,
    MemberPlan,
    PlannedAction,
    SimulationPlan,
)
from groupcoord.simulation.prng import Prng, draw
from groupcoord.simulation.standalone_clients import StandaloneClient, StandaloneConsumer, StandaloneProducer

START_INTERVAL_MS = 700
"""The time between the starts of two members."""
RESTART_DELAY_MS = 5_000
"""A member that ends with an error is restarted after this time."""
TWIN_SLOT_OFFSET = 100
"""The slot of a twin is the slot of its member plus this."""
CLIENT_SLOT_OFFSET = 200
"""The slot of the first client without a group."""
WRITES_AFTER_HEALING_MS = 30_000
"""How long standalone producers write after the end of the faults."""
READS_AFTER_WRITING_MS = 60_000
"""How long the standalone consumer reads after the last write."""
SECOND_TOPIC = "payments"
"""The topic that SUBSCRIBE adds or removes."""
_ACTION_RANK = 0
_CLUSTER_KEY, _BACKOFF_KEY, _BROKER_KEY = range(3)

AddLine = Callable[[int, str, str], None]
"""(at ms, source, text) of one line of the timeline."""


@dataclass(slots=True, eq=False)
class MemberSlot:
    """One member of the plan: its current process, if it is running, and the number of its starts."""

    plan: MemberPlan
    slot_id: int
    topics: tuple[str, ...]
    protocol: str
    process: MemberProcess | None = None
    starts: int = 0


class SimulatedWorld:
    """A run of ``plan``. ``skip``: skip heartbeats without effect. ``add_line`` is called with each line of the timeline."""

    def __init__(self, plan: SimulationPlan, *, skip: bool = True, add_line: AddLine | None = None) -> None:
        self.plan = plan
        self.event_queue = EventQueue()
        self.standalone_producers: list[StandaloneProducer] = []
        self.checker = InvariantChecker(self)
        self._skip = skip
        self._add_line = add_line
        self.brokers = SimulatedBrokers(
            self.event_queue,
            plan,
            Prng(draw(plan.key, _CLUSTER_KEY)),
            observer=self.checker,
            on_event=None if add_line is None else self._broker_event,
            client_id_of=self._client_id_of,
        )
        self.network = SimulatedNetwork(self.event_queue, plan.key, self.brokers.handle)
        self.brokers.network = self.network
        self.slots = [
            MemberSlot(member, slot_id, member.topics, member.protocol) for slot_id, member in enumerate(plan.members)
        ]
        self.twins = {
            slot.slot_id: MemberSlot(slot.plan, slot.slot_id + TWIN_SLOT_OFFSET, slot.topics, slot.protocol)
            for slot in self.slots
            if slot.plan.instance_id is not None
        }
        self._all_slots = (*self.slots, *self.twins.values())
        self.standalone_producers += [
            StandaloneProducer(self, CLIENT_SLOT_OFFSET + number, writer)
            for number, writer in enumerate(plan.standalone_producers)
        ]
        self.clients: list[StandaloneClient] = [*self.standalone_producers]
        if self.standalone_producers:
            interval_ms = min(writer.interval_ms for writer in plan.standalone_producers)
            self.clients.append(
                StandaloneConsumer(
                    self, CLIENT_SLOT_OFFSET + len(self.standalone_producers), WRITTEN_TOPIC, interval_ms
                )
            )

    # The run.

    def run(self) -> None:
        """Run to the end of the plan. Raises InvariantViolation."""
        queue = self.event_queue
        for slot in self.slots:
            queue.schedule(slot.slot_id * START_INTERVAL_MS, _ACTION_RANK, self._starting(slot))
        for number, client in enumerate(self.clients):
            writes_ms = self.plan.heal_ms + WRITES_AFTER_HEALING_MS
            last_ms = writes_ms if client in self.standalone_producers else writes_ms + READS_AFTER_WRITING_MS
            client.start((number + 1) * START_INTERVAL_MS, last_ms)
        for number, action in self.plan.numbered():
            queue.schedule(action.at_ms, _ACTION_RANK, self._acting(number, action))
        queue.schedule(self.plan.heal_ms, _ACTION_RANK, self._heal)
        end_ms = self.plan.end_ms
        deadline_lower_bound, queue_next_ms = self.brokers.deadline_lower_bound, queue.next_ms
        while True:
            due_ms, next_ms = deadline_lower_bound(), queue_next_ms()
            assert next_ms is not None  # there is always a next periodic commit
            if due_ms is not None and due_ms <= next_ms:
                due_ms = self.brokers.next_ms()  # the lower bound may be too early
            at_ms = next_ms if due_ms is None else min(due_ms, next_ms)
            if at_ms > end_ms:
                break
            if at_ms == due_ms:
                queue.now_ms = max(queue.now_ms, at_ms)
                self.brokers.expire()
            else:
                queue.run_next()
        queue.now_ms = end_ms
        self.checker.finish()

    def processes(self) -> list[MemberProcess]:
        """All running processes, also those that are paused."""
        return [slot.process for slot in self._all_slots if slot.process is not None]

    def _client_id_of(self, connection: SimulatedConnection) -> str:
        slot_id = connection.slot_id
        if slot_id >= CLIENT_SLOT_OFFSET:
            return self.clients[slot_id - CLIENT_SLOT_OFFSET].name
        if slot_id >= TWIN_SLOT_OFFSET:
            return f"{self.plan.members[slot_id - TWIN_SLOT_OFFSET].name}-twin"
        return self.plan.members[slot_id].name

    # Actions of the plan.

    def _starting(self, slot: MemberSlot) -> Callback:
        return lambda: self._start(slot)

    def _acting(self, number: int, action: PlannedAction) -> Callback:
        def act() -> None:
            self._line("plan", f"({number}) {action.text(self.plan.members)}")
            self._act(action)

        return act

    def _start(self, slot: MemberSlot) -> None:
        """Start the member, unless it is running. If it is still leaving, it is stopped first."""
        if slot.process is not None:
            if not slot.process.leaving:
                return
            self._stop(slot)
        slot.starts += 1
        name = slot.plan.name if slot.slot_id < TWIN_SLOT_OFFSET else f"{slot.plan.name}-twin"
        random = Prng(draw(self.plan.key, _BACKOFF_KEY, slot.slot_id, slot.starts))
        slot.process = MemberProcess(self, slot.plan, slot.slot_id, name, slot.topics, random, protocol=slot.protocol)
        self._line(name, "starts" if slot.protocol == CLASSIC else "starts with the consumer protocol")
        slot.process.start()

    def _stop(self, slot: MemberSlot) -> None:
        if slot.process is not None:
            process, slot.process = slot.process, None
            process.crash()
            self.checker.ownership_changed()

    def _after(self, ms: int, callback: Callback) -> None:
        self.event_queue.schedule(self.event_queue.now_ms + ms, _ACTION_RANK, callback)

    def _act(self, action: PlannedAction) -> None:
        brokers, for_ms = self.brokers, action.for_ms
        match action.kind:
            case kind if kind in COORDINATOR_ACTIONS:
                self._act_on_coordinator(action)
            case kind if kind in FAILURES:
                self._fail(kind, action.amount, for_ms)
            case ActionKind.RESTART:
                self._restart_broker(action.amount % self.plan.brokers, for_ms, action.amount)
            case ActionKind.MOVE_OUTPUT:
                brokers.move_output(action.amount, for_ms)
            case ActionKind.SLOW | ActionKind.PARTITION | ActionKind.BLACKOUT:
                self._disturb_link(action)
            case ActionKind.GROW:
                brokers.grow_topic(CHANGING_TOPIC)
            case ActionKind.DELETE:
                brokers.delete_topic(CHANGING_TOPIC)
                self._after(for_ms, self._create_topic)
            case ActionKind.TWIN:
                twin = self.twins[action.member]
                self._start(twin)
                self._after(for_ms, lambda: self._stop(twin))
            case _:
                slot = self.slots[action.member]
                if action.kind is ActionKind.SWITCH:
                    slot.protocol = CLASSIC if slot.protocol == CONSUMER else CONSUMER
                if slot.process is not None:
                    self._act_on_process(slot, slot.process, action)

    def _act_on_coordinator(self, action: PlannedAction) -> None:
        brokers, for_ms, amount = self.brokers, action.for_ms, action.amount
        topic = TRANSACTION_STATE if action.of_transactions else OFFSETS_TOPIC
        match action.kind:
            case ActionKind.RELOAD:
                brokers.reload(topic, for_ms, amount)
            case ActionKind.MOVE:
                brokers.move(topic, amount, for_ms)
            case ActionKind.FAIL_APPEND:
                error = ErrorCode[action.error]
                brokers.disturb_next_append(topic, error, 0, error)
            case ActionKind.HOLD_APPEND:
                brokers.disturb_next_append(topic, HOLD, for_ms, ErrorCode.NONE)
            case _:
                brokers.disturb_next_append(topic, HOLD, for_ms, ErrorCode[action.error])

    def _act_on_process(self, slot: MemberSlot, process: MemberProcess, action: PlannedAction) -> None:
        match action.kind:
            case ActionKind.CRASH:
                self._stop(slot)
                self._after(action.for_ms, self._starting(slot))
            case ActionKind.LEAVE | ActionKind.SWITCH:
                process.leave()
                self._after(action.for_ms, self._starting(slot))
            case ActionKind.PAUSE:
                process.pause()
                self._after(action.for_ms, process.resume)
            case ActionKind.BUSY:
                process.stop_polling()
                self._after(action.for_ms, process.poll)
            case ActionKind.SUBSCRIBE:
                others = tuple(topic for topic in slot.topics if topic != SECOND_TOPIC)
                slot.topics = others if SECOND_TOPIC in slot.topics else (*others, SECOND_TOPIC)
                process.subscribe(slot.topics)
            case ActionKind.REJOIN:
                process.rejoin()
            case ActionKind.RESET:
                process.reset_connections()
            case _:
                process.break_connections(requests=action.kind is ActionKind.LOSE_REQUESTS)

    def _disturb_link(self, action: PlannedAction) -> None:
        link, until_ms = self.network.link(action.member), self.event_queue.now_ms + action.for_ms
        if action.kind is ActionKind.SLOW:
            link.slow_until_ms, link.max_delay_ms = until_ms, action.amount
        else:
            link.cut_until_ms, link.loses = until_ms, action.kind is ActionKind.BLACKOUT

    def _fail(self, kind: ActionKind, broker_id: int, for_ms: int) -> None:
        failures = self.brokers.failures
        if failures.fail(kind, broker_id):
            self._break_connections(self.broker_number(broker_id))
        self._after(for_ms, lambda: failures.mend(kind, broker_id))

    def _break_connections(self, broker: int) -> None:
        """Close all connections to that broker, which its clients notice."""
        for process in self.processes():
            process.broker_restarts(broker)
        for client in self.clients:
            client.requests.broker_restarts(broker)

    def _restart_broker(self, broker: int, away_ms: int, loading_ms: int) -> None:
        self._break_connections(broker)
        for topic in (OFFSETS_TOPIC, TRANSACTION_STATE):
            if self.brokers.leads(broker, topic):
                self.brokers.reload(topic, away_ms, loading_ms)

    def _create_topic(self) -> None:
        if CHANGING_TOPIC not in self.brokers.partition_counts:
            self.brokers.create_topic(CHANGING_TOPIC, self.plan.topics[CHANGING_TOPIC])

    def _heal(self) -> None:
        """End all faults. If the group may not migrate both ways, all members get the protocol in which it ends.

        With policy upgrade that is the consumer protocol: if only classic members are left in a consumer group that may not
        become a classic one, no heartbeat makes the coordinator compute an assignment, as in Kafka.
        """
        self._line("plan", "no more actions from now on")
        self.brokers.heal()
        if CHANGING_TOPIC in self.plan.topics:
            self._create_topic()
        if self.plan.migration_policy != "bidirectional":
            last = {"upgrade": CONSUMER, "downgrade": CLASSIC}.get(self.plan.migration_policy, self.slots[0].protocol)
            for slot in self.slots:
                if slot.protocol != last:
                    slot.protocol = last
                    self._stop(slot)
        for link in self.network.links.values():
            link.heal()
        for twin in self.twins.values():
            self._stop(twin)
        for slot in self.slots:
            if slot.process is not None:
                slot.process.resume()
            if slot.process is not None and not slot.process.leaving:
                slot.process.poll()
            self._start(slot)

    # The environment of processes.

    def broker_number(self, node_id: int) -> int:
        """The number of a broker (from 0)."""
        return self.brokers.numbers[node_id]

    def random_broker(self, slot_id: int) -> int:
        """The number of a random broker."""
        return draw(self.plan.key, _BROKER_KEY, slot_id, self.event_queue.now_ms) % self.plan.brokers

    def quiet_until(self) -> int | None:
        """The time (ms) before which only idle members act; None if anything else happens or may happen.

        A paused or cut-off process has no effect on others before it resumes or is connected again.
        """
        brokers = self.brokers
        if not self._skip or not brokers.is_settled:
            return None
        renewed_by: dict[str, int] = {}
        quiet_ms = self.plan.end_ms
        for process in self.processes():
            if brokers.append_disturbed:
                quiet_ms = min(quiet_ms, process.commits_at_ms)
            if process.is_paused:
                continue
            cut_ms = self.network.cut_until(process.slot_id)
            if cut_ms is not None:
                quiet_ms = min(quiet_ms, cut_ms)
                continue
            generation = process.membership.generation
            if not brokers.is_current(generation.member_id, generation.generation_id):
                return None
            coordinator = process.membership.coordinator
            if coordinator is None or coordinator.node_id != brokers.leader or not process.is_at_rest:
                return None
            renewed_by[generation.member_id] = process.renews_session_by()
        event_ms = self.event_queue.next_event_ms()
        if event_ms is not None and event_ms < quiet_ms:
            quiet_ms = event_ms
        return min(quiet_ms, brokers.relevant_deadline(renewed_by, quiet_ms))

    def heartbeat_in_advance(self, connection: SimulatedConnection, number: int, request: Any, at_ms: int) -> Any:
        """The response to a heartbeat that arrives at ``at_ms``, before which nothing else happens."""
        return self.brokers.heartbeat_in_advance(connection, number, request, at_ms)

    def ownership_changed(self) -> None:
        """The owned partitions of a process have changed."""
        self.checker.ownership_changed()

    def ended(self, process: MemberProcess, error: Exception | None) -> None:
        """The process has left, or has ended with ``error`` and is restarted later."""
        self._line(process.client_id, "has left" if error is None else f"ends: {error}")
        process.crash()
        for slot in self._all_slots:
            if slot.process is process:
                slot.process = None
                if error is not None and slot.slot_id < TWIN_SLOT_OFFSET:
                    self._after(RESTART_DELAY_MS, self._starting(slot))
        self.checker.ownership_changed()
        if error is not None:
            self.checker.member_failed(process, error)

    def member_event(self, process: MemberProcess, event: Event) -> None:
        """The membership, or the producer, has emitted ``event``."""
        if self._add_line is not None:
            self._line(process.client_id, event.text())

    def record_sent(self, record: bytes, partition: TopicPartition) -> None:
        """A process has sent a record."""
        self.checker.record_sent(record, partition)

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """The record is stored at that partition and offset, or (None) was given up."""
        self.checker.record_ended(record, stored)

    def _broker_event(self, event: Event) -> None:
        self._line("coordinator", event.text())

    def _line(self, source: str, text: str) -> None:
        if self._add_line is not None:
            self._add_line(self.event_queue.now_ms, source, text)
