"""MemberProcess: one simulated process with a consumer, and HeartbeatSkipper, which leaves out heartbeats
that would change nothing, to make runs faster.

The process executes the actions of groupcoord's own group member on simulated time, as ``groupcoord.client.member_driver`` does
on asyncio.
"""

from typing import Any, NamedTuple, Protocol

from groupcoord.assignors import ASSIGNORS, TopicPartition
from groupcoord.client.client_errors import DisconnectedError
from groupcoord.client.member import actions as a
from groupcoord.client.member.action_executor import ActionExecutor
from groupcoord.client.member.classic_membership import Membership
from groupcoord.client.member.consumer_membership import ConsumerMembership
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.member.metadata_and_commit_requests import metadata_request, metadata_snapshot
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Event
from groupcoord.protocol.messages import (
    ConsumerGroupHeartbeatResponse,
    HeartbeatResponse,
    MetadataResponse,
    OffsetCommitRequest,
)
from groupcoord.simulation.consumer_and_producer_application import ConsumerAndProducerApplication
from groupcoord.simulation.consumer_application import GROUP, ConsumerApplication
from groupcoord.simulation.event_queue import Callback
from groupcoord.simulation.network import (
    GENERAL,
    HEARTBEAT_REQUESTS,
    MEMBER_ACTS,
    NORMAL_MAX_DELAY_MS,
    PARKING,
    PRODUCING,
    OnError,
    OnResponse,
    PendingRequests,
    SimulatedConnection,
    rank,
)
from groupcoord.simulation.plan import CONSUMER, MemberPlan
from groupcoord.simulation.prng import Prng
from groupcoord.simulation.standalone_clients import ClientEnvironment
from groupcoord.simulation.transactional_application import TransactionalApplication

_ROUTINE_REQUESTS = (*HEARTBEAT_REQUESTS, OffsetCommitRequest)
"""The requests of an idle member, which do not affect other members."""

_HEARTBEAT_RESPONSES = (HeartbeatResponse, ConsumerGroupHeartbeatResponse)

MARGIN_MS = 2 * NORMAL_MAX_DELAY_MS + 10
"""A heartbeat and its response take less than this."""


class UnsafeSkipError(Exception):
    """A skipped heartbeat would have had an effect, so the run must be repeated without skipping."""


class ProcessEnvironment(ClientEnvironment, Protocol):
    """The part of the simulated world that a process uses."""

    def quiet_until(self) -> int | None:
        """The time (ms) before which only idle members act; None if anything else happens or may happen."""

    def heartbeat_in_advance(self, connection: SimulatedConnection, number: int, request: Any, at_ms: int) -> Any:
        """The response to a heartbeat that arrives at ``at_ms``, before which nothing else happens."""

    def ownership_changed(self) -> None:
        """The owned partitions of a process have changed."""

    def ended(self, process: "MemberProcess", error: Exception | None) -> None:
        """The process has ended, with ``error`` if that is not None."""

    def member_event(self, process: "MemberProcess", event: Event) -> None:
        """The membership, or the producer, has emitted ``event``."""

    def record_sent(self, record: bytes, partition: TopicPartition) -> None:
        """A process has sent a record."""

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """The record is stored at that partition and offset, or (None) was given up."""


class HeartbeatSkipper:
    """Skips heartbeats of one member that change nothing because nothing else happens (docs/simulation.md).

    ``last_success_ms``: when it sent the last heartbeat that was answered without error.
    """

    def __init__(self, environment: ProcessEnvironment, membership: GroupMember, requests: PendingRequests) -> None:
        self._environment, self._membership, self._requests = environment, membership, requests
        self.last_success_ms: int | None = None

    def next_heartbeat_ms(self, due_ms: int, commits_at_ms: int, connection: SimulatedConnection | None) -> int:
        """When to send the next heartbeat that can have an effect (ms); without skipping, one is due at ``due_ms``.

        In quiet times a heartbeat only extends the session. So the last heartbeat of the quiet time is exchanged right now,
        with its own time and delays; if the session would expire before it, so is the first one. Those in between would only
        set what the last one sets again. Raises UnsafeSkipError.
        """
        quiet_ms = None if self.last_success_ms is None else self._environment.quiet_until()
        if self.last_success_ms is None or quiet_ms is None:
            return due_ms
        settings, due_ms = self._membership.settings, max(due_ms, self._environment.event_queue.now_ms)
        interval_ms, left_ms = settings.heartbeat_interval_ms, min(quiet_ms, commits_at_ms) - MARGIN_MS - due_ms
        if left_ms < 0 or interval_ms <= MARGIN_MS:
            return due_ms
        last_ms = due_ms + left_ms // interval_ms * interval_ms
        if due_ms < last_ms > self.last_success_ms + settings.session_timeout_ms - MARGIN_MS:
            self._exchange(connection, due_ms, until_ms=last_ms)
        self._exchange(connection, last_ms)
        return last_ms + interval_ms

    def _exchange(self, connection: SimulatedConnection | None, at_ms: int, until_ms: int = 0) -> None:
        """Exchange the heartbeat of ``at_ms``, whose response stands for all heartbeats before ``until_ms``.

        Raises UnsafeSkipError if it has any other effect.
        """
        actions = self._membership.expire(at_ms)
        if connection is None or len(actions) != 1 or not isinstance(actions[0], a.SendRequest):
            raise UnsafeSkipError
        send, number = actions[0], self._requests.next_number()
        arrived_ms, answered_ms = self._environment.network.normal_times(connection, at_ms)
        response = self._environment.heartbeat_in_advance(connection, number, send.request, arrived_ms)
        if isinstance(self._membership, Membership):  # by the consumer protocol a member has no session timer
            answered_ms = max(answered_ms, until_ms)
        if self._membership.complete(send.ticket, response, answered_ms):
            raise UnsafeSkipError
        self.last_success_ms = at_ms


class _Timer(NamedTuple):
    """The event queue entry that calls ``_timer_fired``."""

    entry: int
    at_ms: int
    routine: bool


class MemberProcess(ActionExecutor):
    """One process of a member, from start to end. ``random`` provides the jitter of back-offs."""

    def __init__(
        self,
        environment: ProcessEnvironment,
        plan: MemberPlan,
        slot_id: int,
        client_id: str,
        topics: tuple[str, ...],
        random: Prng,
        *,
        protocol: str,
    ) -> None:
        self.plan, self.slot_id, self.client_id, self.protocol = plan, slot_id, client_id, protocol
        self.owned: frozenset[TopicPartition] = frozenset()
        """The partitions that the application reads."""
        self.alive = True
        self.leaving = False
        self.is_paused = False
        self.topics = topics
        self.producer_name = ""
        """The name of its producer, if it has one."""
        self._environment = environment
        self._event_queue, self._network = environment.event_queue, environment.network
        settings = MemberSettings(
            group_id=GROUP,
            instance_id=plan.instance_id,
            session_timeout_ms=plan.session_timeout_ms,
            heartbeat_interval_ms=plan.heartbeat_interval_ms,
            max_poll_interval_ms=plan.max_poll_interval_ms,
        )
        membership: GroupMember
        if protocol == CONSUMER:
            membership = ConsumerMembership(settings, f"{client_id}-{random.uuid()}", chance=random.fraction)
        else:
            assignors = [ASSIGNORS.create(name) for name in plan.assignors]
            membership = Membership(settings, assignors, chance=random.fraction)
        super().__init__(membership, lambda: environment.event_queue.now_ms)
        self._application = self._new_application(environment, random)
        self._requests = PendingRequests(self._network, slot_id, self.run, self.run_later)
        self._last_ticket = 0  # of requests that the membership did not send; negative, so that tickets are unique
        self._waiting = 0  # callbacks, commits and calls of run_later that are pending
        self._heartbeat_skipper = HeartbeatSkipper(environment, self.membership, self._requests)
        self._timer: _Timer | None = None
        self._backlog: list[Callback] = []

    def __repr__(self) -> str:
        return f"<MemberProcess {self.client_id} {self.membership!r}>"

    def _new_application(self, environment: ProcessEnvironment, random: Prng) -> ConsumerApplication:
        plan, producing = self.plan.transactions, self.plan.producing
        if producing is not None:
            self.producer_name = f"{self.client_id}-{random.session_id()}"
            return ConsumerAndProducerApplication(
                self,
                self._event_queue,
                random,
                environment.plan,
                producing,
                name=self.producer_name,
                tell=lambda event: environment.member_event(self, event),
            )
        if plan is None:
            return ConsumerApplication(self, self._event_queue)
        transactional_id = f"{self.client_id}-{random.session_id()}" if plan.new_id_per_start else self.plan.name
        settings = ProducerConfig(transactional_id=transactional_id, transaction_timeout_ms=plan.timeout_ms)
        return TransactionalApplication(self, self._event_queue, settings, random, environment.plan)

    # Actions of the plan.

    def start(self) -> None:
        """Start the consumer."""
        now_ms = self._event_queue.now_ms
        self._application.start()
        self.execute_actions(self.membership.subscribe(self.topics, now_ms))
        self.execute_actions(self.membership.polled(now_ms))

    def crash(self) -> None:
        """End at once. Requests in flight still arrive."""
        self.alive = False
        self._requests.crash()

    def leave(self) -> None:
        """Close the consumer: commit and send LeaveGroup."""

        def leave() -> None:
            self.leaving = True
            self._poll()
            self._application.close(
                lambda: self.execute_actions(self.membership.leave("the consumer is closed", self._event_queue.now_ms))
            )

        self.run(leave)

    def pause(self) -> None:
        """Suspend the process."""
        self.is_paused = True
        self._application.stop_reading()

    def resume(self) -> None:
        """Resume the process, and handle everything that it missed."""
        if not self.is_paused or not self.alive:
            return
        self.is_paused = False
        self._application.resume_reading()
        backlog, self._backlog = self._backlog, []
        for callback in backlog:
            self.run(callback)
        self.run(self._expire)

    def stop_polling(self) -> None:
        """The application stops polling."""

        def stop() -> None:
            self._application.stop_polling()
            self.execute_actions(self.membership.poll_ended(self._event_queue.now_ms))

        self.run(stop)

    def poll(self) -> None:
        """The application polls again."""
        self.run(self._poll)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Change the subscription."""
        self.topics = topics
        self.run(lambda: self.execute_actions(self.membership.subscribe(topics, self._event_queue.now_ms)))

    def rejoin(self) -> None:
        """Request a rebalance."""
        self.run(lambda: self.execute_actions(self.membership.rejoin("the user wants it", self._event_queue.now_ms)))

    def broker_restarts(self, broker: int) -> None:
        """A broker restarts: the connections to it are closed, which the member notices."""
        self._requests.broker_restarts(broker)

    def reset_connections(self) -> None:
        """All connections are closed, which the member notices."""
        self._requests.reset()

    def break_connections(self, *, requests: bool) -> None:
        """Let the current connections lose all responses and, with ``requests``, all requests; the member does not notice."""
        self._requests.lose(requests=requests)

    # State.

    @property
    def member_id(self) -> str:
        """The member id; "" if it has none."""
        return self.membership.generation.member_id

    @property
    def is_stable(self) -> bool:
        """Does it have an assignment, with no callback running?"""
        return self.membership.is_stable

    def awaited_requests(self) -> set[tuple[int, int]]:
        """(connection number, request number) of each request that waits for a response."""
        return self._requests.awaited()

    @property
    def commits_at_ms(self) -> int:
        """The time of the next periodic commit."""
        return self._application.commits_at_ms

    @property
    def is_at_rest(self) -> bool:
        """Is the member idle: does it only send heartbeats, over a working link?"""
        return (
            self.membership.is_stable
            and not self._waiting
            and self._application.is_polling
            and not self.is_paused
            and not self.leaving
            and self._requests.only_heartbeats
            and self._network.is_normal(self.slot_id)
            and self._heartbeat_connection() is not None
        )

    def renews_session_by(self) -> int:
        """The latest arrival time (ms) of the next heartbeat of an idle member at the coordinator."""
        sent_ms = self._event_queue.now_ms
        if not self._requests:
            sent_ms = max(0 if self._timer is None else self._timer.at_ms, self.membership.next_deadline() or 0)
        return sent_ms + MARGIN_MS

    def _heartbeat_connection(self) -> SimulatedConnection | None:
        """The connection for heartbeats, if there is one and it works."""
        coordinator = self.membership.coordinator
        if coordinator is None:
            return None
        return self._requests.working_connection(self._environment.broker_number(coordinator.node_id))

    # Execution.

    def run(self, callback: Callback) -> None:
        """Call ``callback`` now, when the process resumes if it is paused, or never if it has ended."""
        if not self.alive:
            return
        if self.is_paused:
            self._backlog.append(callback)
        else:
            callback()

    def run_later(self, callback: Callback, after_ms: int = 0) -> None:
        """Schedule ``callback`` as a separate event."""
        self._waiting += 1

        def later() -> None:
            self._waiting -= 1
            callback()

        at_ms = self._event_queue.now_ms + after_ms
        self._event_queue.schedule(at_ms, rank(self.slot_id, MEMBER_ACTS), lambda: self.run(later))

    def _poll(self) -> None:
        self._application.poll()
        self.execute_actions(self.membership.polled(self._event_queue.now_ms))

    def _executed(self) -> None:
        if self.alive:
            self.set_timer()

    def _run_assignor(self, action: a.RunAssignor) -> None:
        self.run_later(lambda: super(MemberProcess, self)._run_assignor(action))

    def _commit_offsets(self, action: a.CommitOffsets) -> None:
        """Commit before a rebalance. The member is not idle until that is done."""

        def done() -> None:
            self._waiting -= 1
            self._complete(action.ticket, None)

        def commit() -> None:
            self._waiting += 1
            self._application.commit(done)

        self.run_later(commit)

    def _invoke_callback(self, action: a.InvokeCallback) -> None:
        self.run_later(lambda: self._complete(action.ticket, None), self.plan.callback_ms)

    def _set_owned(self, action: a.SetOwned) -> None:
        self.owned = action.partitions
        self._application.set_owned(action.partitions)
        self._environment.ownership_changed()

    def _cancel_action(self, action: a.CancelAction) -> None:
        self._requests.abandon(action.ticket)

    def _disconnect(self, action: a.Disconnect) -> None:
        self._requests.disconnect(self._broker(action.coordinator.node_id), "another broker is the coordinator")

    def _raise_error(self, action: a.RaiseError) -> None:
        if action.final:
            self._environment.ended(self, action.error)

    def _membership_ended(self, action: a.MembershipEnded) -> None:
        del action
        self._environment.ended(self, None)

    def _emit_event(self, action: EmitEvent) -> None:
        self._environment.member_event(self, action.event)

    # Requests.

    def _send_request(self, action: a.SendRequest) -> None:
        ticket, sent_ms = action.ticket, self._event_queue.now_ms
        node_id = None if action.to is None else action.to.node_id

        def on_response(response: Any) -> None:
            if type(response) in _HEARTBEAT_RESPONSES and not response.error_code:
                self._heartbeat_skipper.last_success_ms = sent_ms
            self._complete(ticket, response)

        to = self._broker(node_id), PARKING if action.parks else GENERAL
        self._submit(
            ticket, to, action.request, action.timeout_ms, on_response, lambda error: self._fail(ticket, error)
        )

    def _broker(self, node_id: int | None) -> int:
        """The number of that broker, or of a random one for None."""
        if node_id is None:
            return self._environment.random_broker(self.slot_id)
        return self._environment.broker_number(node_id)

    def _submit(
        self,
        ticket: int,
        to: tuple[int, int],
        request: Any,
        timeout_ms: int,
        on_response: OnResponse,
        on_error: OnError,
    ) -> None:
        due_ms = self._event_queue.now_ms + timeout_ms
        routine = type(request) in _ROUTINE_REQUESTS and self.is_at_rest
        self._requests.send(ticket, to, request, due_ms, on_response, on_error, routine=routine)

    def send_to_coordinator(self, request: Any, on_response: OnResponse, on_error: OnError) -> None:
        """Send a request of the application to the group coordinator, then call ``on_response`` or ``on_error``."""
        coordinator = self.membership.coordinator
        if coordinator is None:
            self.run_later(lambda: on_error(DisconnectedError("the coordinator is not known")))
            return

        def failed(error: Exception) -> None:
            self.execute_actions(
                self.membership.coordinator_unreachable(coordinator, str(error), self._event_queue.now_ms)
            )
            on_error(error)

        self._last_ticket -= 1
        to = self._broker(coordinator.node_id), GENERAL
        timeout_ms = self.membership.settings.request_timeout_ms
        self._submit(self._last_ticket, to, request, timeout_ms, on_response, failed)

    def send(
        self, node_id: int | None, request: Any, timeout_ms: int, on_response: OnResponse, on_error: OnError
    ) -> None:
        """Send a request of the producer; to a random broker if ``node_id`` is None."""
        self._last_ticket -= 1
        to = self._broker(node_id), PRODUCING
        self._submit(self._last_ticket, to, request, timeout_ms, on_response, on_error)
        self.set_timer()

    def record_sent(self, record: bytes, partition: TopicPartition) -> None:
        """The application has sent a record."""
        self._environment.record_sent(record, partition)

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """The record is stored at that partition and offset, or (None) was given up."""
        self._environment.record_ended(record, stored)

    def application_failed(self, error: Exception) -> None:
        """The application has failed: the process ends."""
        self._environment.ended(self, error)

    def _fetch_metadata(self, action: a.FetchMetadata) -> None:
        ticket, timeout_ms = action.ticket, self.membership.settings.request_timeout_ms

        def on_response(response: MetadataResponse) -> None:
            self._complete(ticket, metadata_snapshot(response))

        to = (self._broker(None), GENERAL)
        request = metadata_request(action.topics, topic_ids=action.topic_ids)
        self._submit(ticket, to, request, timeout_ms, on_response, lambda error: self._fail(ticket, error))

    # Time.

    def set_timer(self) -> None:
        """Schedule ``_timer_fired`` for the next deadline."""
        at_ms, routine, timer = self._next_deadline(), self.is_at_rest, self._timer
        if at_ms is not None:
            if routine and not self._requests:
                at_ms = self._heartbeat_skipper.next_heartbeat_ms(
                    at_ms, self._application.commits_at_ms, self._heartbeat_connection()
                )
            at_ms = max(at_ms, self._event_queue.now_ms)  # the process may have been paused when it was due
        if timer is not None:
            if timer.at_ms == at_ms and timer.routine == routine:
                return
            self._event_queue.cancel(timer.entry)
            self._timer = None
        if at_ms is not None:
            entry = self._event_queue.schedule(
                at_ms, rank(self.slot_id, MEMBER_ACTS), self._timer_fired, routine=routine
            )
            self._timer = _Timer(entry, at_ms, routine)

    def _next_deadline(self) -> int | None:
        requests_ms, membership_ms = self._requests.next_deadline(), self.membership.next_deadline()
        if requests_ms is None or membership_ms is None:
            return requests_ms if membership_ms is None else membership_ms
        return min(requests_ms, membership_ms)

    def _timer_fired(self) -> None:
        self._timer = None
        self.run(self._expire)

    def _expire(self) -> None:
        now_ms = self._event_queue.now_ms
        self._requests.expire(now_ms)
        deadline = self.membership.next_deadline()
        if deadline is not None and deadline <= now_ms:
            self.execute_actions(self.membership.expire(now_ms))
        else:
            self.set_timer()
