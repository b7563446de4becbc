"""Runs a member: carries out what it wants done and tells it what came of it.

This is all there is between :class:`~groupcoord.client.membership.Membership` and the world: tasks for what takes time, one
timer for its next deadline.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from groupcoord.assignors import (
    TopicPartition,
    run_assignor,
)
from groupcoord.client.member import actions as a
from groupcoord.client.member.membership import Membership
from groupcoord.client.network_client import (
    ConnectionPurpose,
    NetworkClient,
)
from groupcoord.client.partitions import AssignedPartitions
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import Event

Callback = Callable[[tuple[TopicPartition, ...]], Awaitable[None] | None]


class MemberDriver:
    """One member of one group on the running loop. ``on_news`` is called when a poll may have something to do."""

    def __init__(
        self,
        membership: Membership,
        cluster: NetworkClient,
        partitions: AssignedPartitions,
        *,
        callbacks: Mapping[a.CallbackKind, Callback | None],
        listeners: Iterable[Callable[[Event], None]],
        commit_consumed: Callable[[int], Awaitable[None]],
        now_ms: Callable[[], int],
        on_news: Callable[[], None],
    ) -> None:
        self.membership = membership
        self.now_ms = now_ms
        self.left = asyncio.Event()
        self._cluster = cluster
        self._partitions = partitions
        self._callbacks = callbacks
        self._listeners = tuple(listeners)
        self._commit_consumed = commit_consumed
        self._on_news = on_news
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._sent: dict[int, a.SendRequest] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._errors: list[Exception] = []
        self._failure: Exception | None = None
        self._progress = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms: int | None = None
        self._stopped = False

    # For the consumer.

    @property
    def in_callback(self) -> bool:
        """Is the user being told something?"""
        return bool(self._telling)

    @property
    def is_callback(self) -> bool:
        """Is it a callback that asks this?"""
        return asyncio.current_task() in self._telling

    def raise_errors(self) -> None:
        """Raise what the user must know: each error once, the one that ended the member every time."""
        self.raise_last_errors()
        if self._failure is not None:
            raise self._failure

    def raise_last_errors(self) -> None:
        """Raise what no poll has raised, if anything."""
        if self._errors:
            raise self._errors.pop(0)

    def feed(self, actions: Iterable[a.Action]) -> None:
        """Carry ``actions`` out, in order, and set the timer anew."""
        if self._stopped:
            return
        for action in actions:
            self._carry_out(action)
        self._set_timer()
        self._progress.set()
        self._on_news()

    async def coordinator(self) -> a.CoordinatorNode:
        """The coordinator, as soon as it is known. Raises the error that ended the member."""
        while self.membership.coordinator is None:
            if self.membership.failure is not None:
                raise self.membership.failure
            self._progress.clear()
            await self._progress.wait()
        return self.membership.coordinator

    async def ask_coordinator(self, coordinator: a.CoordinatorNode, request: Any, *, limit: int | None = None) -> Any:
        """The answer of ``coordinator``. Raises DisconnectedError, UnsupportedVersionError."""
        return await self._cluster.request_at(
            (coordinator.host, coordinator.port), request, ConnectionPurpose.GENERAL, limit=limit
        )

    async def stop(self) -> None:
        """Do nothing any more, whatever is under way."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Actions.

    def _carry_out(self, action: a.Action) -> None:
        match action:
            case a.SendRequest():
                self._sent[action.ticket] = action
                self._start(action.ticket, partial(self._send, action))
            case a.CommitOffsets():
                self._start(action.ticket, partial(self._commit_consumed, action.timeout_ms))
            case a.FetchMetadata():
                self._start(action.ticket, partial(self._learn, action.topics))
            case a.RunAssignor():
                # In a thread: an assignor that takes a minute must not stop the heartbeats that keep its member alive.
                assign = partial(asyncio.to_thread, run_assignor, action.assignor, action.group, action.protocol)
                self._start(action.ticket, assign)
            case a.InvokeCallback():
                self._telling.add(self._start(action.ticket, partial(self._tell, action)))
            case _:
                self._do_at_once(action)

    def _do_at_once(
        self,
        action: a.CancelAction
        | a.StopDelivery
        | a.SetOwned
        | a.Disconnect
        | a.RaiseError
        | a.MembershipEnded
        | EmitEvent,
    ) -> None:
        match action:
            case a.CancelAction():
                self._abandon(action.ticket)
            case a.StopDelivery():
                self._partitions.hold(action.partitions)
            case a.SetOwned():
                self._partitions.own(action.partitions)
            case a.Disconnect():
                address = (action.coordinator.host, action.coordinator.port)
                self._cluster.disconnect(address, ConnectionPurpose.GENERAL, ConnectionPurpose.PARKING)
            case a.RaiseError():
                if action.final:
                    self._failure = action.error
                else:
                    self._errors.append(action.error)
            case a.MembershipEnded():
                self.left.set()
            case _:
                self._note(action.event)

    def _note(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:
                self._errors.append(error)  # somebody who only watches must not stop what is watched

    def _start(self, ticket: int, work: Callable[[], Awaitable[Any]]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(self._work(ticket, work))
        self._tasks[ticket] = task
        task.add_done_callback(lambda _: self._forget(ticket))  # also of a task that was cancelled before it began
        return task

    def _forget(self, ticket: int) -> None:
        self._sent.pop(ticket, None)
        task = self._tasks.pop(ticket, None)
        if task is not None:
            self._telling.discard(task)

    async def _work(self, ticket: int, work: Callable[[], Awaitable[Any]]) -> None:
        result: Any = None
        error: Exception | None = None
        try:
            result = await work()
        except Exception as problem:
            error = problem
        self._forget(ticket)
        membership, now_ms = self.membership, self.now_ms()
        self.feed(
            membership.complete(ticket, result, now_ms) if error is None else membership.fail(ticket, error, now_ms)
        )

    async def _send(self, action: a.SendRequest) -> Any:
        if action.to is None:
            return await self._cluster.request_any(action.request, action.timeout_ms)
        lane = ConnectionPurpose.PARKING if action.parks else ConnectionPurpose.GENERAL
        return await self._cluster.request_at((action.to.host, action.to.port), action.request, lane, action.timeout_ms)

    async def _learn(self, topics: frozenset[str]) -> Any:
        self._cluster.watch(self._cluster.watched | topics)
        await self._cluster.refresh(self._cluster.watched)
        return self._cluster.view()

    async def _tell(self, action: a.InvokeCallback) -> None:
        callback = self._callbacks[action.news]
        if callback is None and action.news is a.CallbackKind.LOST:
            callback = self._callbacks[
                a.CallbackKind.REVOKED
            ]  # as in Kafka, losing partitions is told as their revocation
        told = None if callback is None else callback(action.partitions)
        if inspect.isawaitable(told):
            await told

    def _abandon(self, ticket: int) -> None:
        sent = self._sent.get(ticket)
        self._tasks[ticket].cancel()
        if sent is not None and sent.to is not None:
            self._cluster.disconnect(
                (sent.to.host, sent.to.port), ConnectionPurpose.PARKING if sent.parks else ConnectionPurpose.GENERAL
            )

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
        self.feed(self.membership.expire(self.now_ms()))
