"""Drives the consumer's group member on asyncio: runs its actions as tasks, and one timer for its next deadline."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from groupcoord.assignors import TopicPartition, run_assignor
from groupcoord.client.assigned_partitions import AssignedPartitions
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.action_executor import ActionExecutor
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Event

SLOW_ASSIGNOR_MS = 5_000
"""A warning is logged about an assignor that takes longer."""
_TOLD_OTHERWISE = frozenset({ErrorReaction.REJOIN.value, ErrorReaction.FIND_COORDINATOR.value})
"""Reactions that are not logged as failures here: an ordinary rebalance, and the loss of the coordinator, logged elsewhere."""
Callback = Callable[[tuple[TopicPartition, ...]], Awaitable[None] | None]


class MemberDriver(ActionExecutor):
    """Drives one member on the running loop. ``on_progress`` is called when a waiting poll should look again."""

    def __init__(
        self,
        membership: GroupMember,
        cluster: NetworkClient,
        partitions: AssignedPartitions,
        *,
        callbacks: Mapping[a.CallbackKind, Callback | None],
        listeners: Iterable[Callable[[Event], None]],
        troubles: TroubleLog,
        commit_consumed: Callable[[int], Awaitable[None]],
        now_ms: Callable[[], int],
        on_progress: Callable[[], None],
    ) -> None:
        super().__init__(membership, now_ms)
        self.now_ms = now_ms
        self.left = asyncio.Event()
        self._cluster = cluster
        self._partitions = partitions
        self._callbacks = callbacks
        self._listeners = tuple(listeners)
        self._troubles = troubles
        self._commit_consumed = commit_consumed
        self._on_progress = on_progress
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._sent: dict[int, a.SendRequest] = {}
        self._callback_tasks: set[asyncio.Task[None]] = set()
        self._errors: list[Exception] = []
        self._failure: Exception | None = None
        self._progress = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms: int | None = None
        self._stopped = False

    # For the consumer.

    @property
    def in_callback(self) -> bool:
        """Is a callback of the user running?"""
        return bool(self._callback_tasks)

    @property
    def is_callback(self) -> bool:
        """Is the current task a callback of the user?"""
        return asyncio.current_task() in self._callback_tasks

    def raise_errors(self) -> None:
        """Raise the next error for the user: each once, a fatal one every time."""
        self.raise_last_errors()
        if self._failure is not None:
            raise self._failure

    def raise_last_errors(self) -> None:
        """Raise the oldest error that no poll has raised, if any."""
        if self._errors:
            raise self._errors.pop(0)

    def execute_actions(self, actions: Iterable[a.Action]) -> None:
        """Carry ``actions`` out, in order, unless the driver has been stopped."""
        if not self._stopped:
            super().execute_actions(actions)

    async def coordinator(self) -> a.CoordinatorNode:
        """Wait for the coordinator. Raises the error that ended the member."""
        while self.membership.coordinator is None:
            if self.membership.failure is not None:
                raise self.membership.failure
            self._progress.clear()
            await self._progress.wait()
        return self.membership.coordinator

    async def ask_coordinator(self, coordinator: a.CoordinatorNode, request: Any, *, limit: int | None = None) -> Any:
        """Send ``request`` to ``coordinator`` and return the response. Raises DisconnectedError, UnsupportedVersionError."""
        return await self._cluster.request_at(
            (coordinator.host, coordinator.port), request, ConnectionPurpose.GENERAL, limit=limit
        )

    async def stop(self) -> None:
        """Cancel all tasks and the timer."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Actions.

    def _executed(self) -> None:
        if self.membership.is_stable:
            self._troubles.end(self._own_membership)
        self._set_timer()
        self._progress.set()
        self._on_progress()

    def _send_request(self, action: a.SendRequest) -> None:
        self._sent[action.ticket] = action
        self._start(action.ticket, partial(self._request, action))

    def _commit_offsets(self, action: a.CommitOffsets) -> None:
        self._start(action.ticket, partial(self._commit_consumed, action.timeout_ms))

    def _fetch_metadata(self, action: a.FetchMetadata) -> None:
        fetch = partial(self._cluster.refresh_by_id, action.topic_ids)
        self._start(action.ticket, fetch if action.topic_ids else partial(self._refresh_metadata, action.topics))

    def _run_assignor(self, action: a.RunAssignor) -> None:
        self._start(action.ticket, partial(self._assign, action))

    def _invoke_callback(self, action: a.InvokeCallback) -> None:
        self._callback_tasks.add(self._start(action.ticket, partial(self._call_back, action)))

    def _cancel_action(self, action: a.CancelAction) -> None:
        sent = self._sent.get(action.ticket)
        self._tasks[action.ticket].cancel()
        if sent is not None and sent.to is not None:
            purpose = ConnectionPurpose.PARKING if sent.parks else ConnectionPurpose.GENERAL
            self._cluster.disconnect((sent.to.host, sent.to.port), purpose)

    def _stop_delivery(self, action: a.StopDelivery) -> None:
        self._partitions.stop_delivery(action.partitions)

    def _set_owned(self, action: a.SetOwned) -> None:
        if not self.membership.manual:
            self._partitions.assign(action.partitions)

    def _disconnect(self, action: a.Disconnect) -> None:
        address = (action.coordinator.host, action.coordinator.port)
        self._cluster.disconnect(address, ConnectionPurpose.GENERAL, ConnectionPurpose.PARKING)

    def _raise_error(self, action: a.RaiseError) -> None:
        if action.final:
            self._failure = action.error
        else:
            self._errors.append(action.error)

    def _membership_ended(self, action: a.MembershipEnded) -> None:
        del action
        self.left.set()

    def _emit_event(self, action: EmitEvent) -> None:
        self.tell(action.event)
        self._watch_for_trouble(action.event)

    def tell(self, event: Event) -> None:
        """Pass ``event`` to the listeners."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:
                self._errors.append(error)  # a listener must not stop the member

    @property
    def _own_membership(self) -> str:
        return f"the membership in {self.membership.settings.group_id}"

    def _watch_for_trouble(self, event: Event) -> None:
        """Log the events that are failures or end a failure; an ordinary rebalance is none."""
        coordinator = f"the coordinator of {self.membership.settings.group_id}"
        match event:
            case e.CoordinatorFound():
                self._troubles.end(coordinator)
            case e.CoordinatorLost():
                self._troubles.begin(coordinator, event.text())
            case e.RequestFailed(request="FindCoordinator"):
                self._troubles.begin(coordinator, event.text())
            case e.RequestFailed(then=then) if then in _TOLD_OTHERWISE:
                pass
            case e.RequestFailed() | e.MembershipReset() | e.Fenced() | e.PolledTooLate() | e.MemberFailed():
                self._troubles.begin(self._own_membership, event.text())
            case _:
                pass

    # Tasks.

    def _start(self, ticket: int, work: Callable[[], Awaitable[Any]]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(self._work(ticket, work))
        self._tasks[ticket] = task
        task.add_done_callback(lambda _: self._forget(ticket))  # also of a task that was cancelled before it began
        return task

    def _forget(self, ticket: int) -> None:
        self._sent.pop(ticket, None)
        task = self._tasks.pop(ticket, None)
        if task is not None:
            self._callback_tasks.discard(task)

    async def _work(self, ticket: int, work: Callable[[], Awaitable[Any]]) -> None:
        result: Any = None
        error: Exception | None = None
        try:
            result = await work()
        except Exception as problem:
            error = problem
        self._forget(ticket)
        if error is None:
            self._complete(ticket, result)
        else:
            self._fail(ticket, error)

    async def _request(self, action: a.SendRequest) -> Any:
        if action.to is None:
            return await self._cluster.request_any(action.request, action.timeout_ms)
        purpose = ConnectionPurpose.PARKING if action.parks else ConnectionPurpose.GENERAL
        return await self._cluster.request_at(
            (action.to.host, action.to.port), action.request, purpose, action.timeout_ms
        )

    async def _assign(self, action: a.RunAssignor) -> Any:
        # In a thread, so that a slow assignor does not stop the heartbeats; a daemon thread, because it may never return.
        subject = f"the assignor {action.assignor.name}"
        why = f"it has not ended after {SLOW_ASSIGNOR_MS} ms, and may take max_poll_interval_ms"
        slow = asyncio.get_running_loop().call_later(SLOW_ASSIGNOR_MS / 1000, self._troubles.begin, subject, why)
        try:
            assignment = await run_in_daemon_thread(run_assignor, action.assignor, action.group, action.protocol)
        finally:
            slow.cancel()
        self._troubles.end(subject)
        return assignment

    async def _refresh_metadata(self, topics: frozenset[str]) -> Any:
        self._cluster.watch(self._cluster.watched | topics)
        await self._cluster.refresh(self._cluster.watched)
        return self._cluster.view()

    async def _call_back(self, action: a.InvokeCallback) -> None:
        callback = self._callbacks[action.news]
        if callback is None and action.news is a.CallbackKind.LOST:
            callback = self._callbacks[a.CallbackKind.REVOKED]  # as in Kafka
        returned = None if callback is None else callback(action.partitions)
        if inspect.isawaitable(returned):
            await returned

    # Time.

    def _set_timer(self) -> None:
        at_ms = self.membership.next_deadline()
        if at_ms == self._timer_at_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at_ms = None, at_ms
        if at_ms is not None:
            delay_s = max(0, at_ms - self.now_ms()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._due)

    def _due(self) -> None:
        self._timer, self._timer_at_ms = None, None
        self.execute_actions(self.membership.expire(self.now_ms()))


def run_in_daemon_thread(function: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
    """Call ``function`` in a thread of its own; the future gets its result or its exception.

    ``asyncio.to_thread`` would not do for a function that may never return: its threads are joined when the program ends.
    """
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return  # nobody waits any more
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = function(*arguments)
        except Exception as problem:
            error = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=f"groupcoord {function.__name__}", daemon=True).start()
    return future
