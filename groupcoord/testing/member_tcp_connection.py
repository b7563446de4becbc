"""TcpConnection: connects the test's members in this process to a cluster in another process, by TCP.

A broker answers the requests of a connection one after the other, so a JoinGroup or SyncGroup, which waits for other members,
has a connection of its own while it waits. All other requests of a member to a broker share one connection and arrive in order.
Requests on different connections may arrive in any order.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import DisconnectedError, UnsupportedVersionError
from groupcoord.client.connection import BrokerConnection
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.option_value_parsing import Address
from groupcoord.protocol.apis.find_coordinator import GROUP, Coordinator
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    SyncGroupRequest,
)
from groupcoord.testing.in_process_transport import OnResponse
from groupcoord.testing.waiting import poll

REQUEST_TIMEOUT_MS = 30_000
PARKED_TIMEOUT_MS = 3_600_000
"""The request timeout of JoinGroup and SyncGroup: longer than any rebalance timeout."""


class BrokerLocator:
    """Finds brokers and coordinators, for all connections to one cluster. Both methods may raise DisconnectedError."""

    def __init__(self, cluster: NetworkClient, bootstrap: Address) -> None:
        self._cluster = cluster
        self._bootstrap = bootstrap

    async def broker(self, broker_id: int | None) -> Address:
        """The address of a broker; None stands for any."""
        if broker_id is None:
            return self._bootstrap
        if broker_id not in self._cluster.brokers:
            await self._cluster.refresh(())
        found = self._cluster.brokers.get(broker_id)
        if found is None:
            raise DisconnectedError(f"broker {broker_id} is not known")
        return found.host, found.port

    async def leader(self, partition: TopicPartition) -> Address:
        """The address of the leader of ``partition``, looked up each time; the bootstrap broker's if there is none."""
        await self._cluster.refresh((partition[0],))
        found = self._cluster.leader_of(partition)
        return await self.broker(None if found is None else found.leader)

    async def coordinator(self, key: str, key_type: int = GROUP) -> Address:
        """The address of the coordinator of ``key``, a group or what ``key_type`` says, looked up each time as it may move.

        Raises WaitTimeoutError, and ValueError if the broker refuses the key.
        """
        what = f"{'group' if key_type == GROUP else 'transactional id'} {key!r}"
        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=(key,))

        async def ask() -> Coordinator:
            answer: FindCoordinatorResponse = await self._cluster.request_any(request)
            return answer.coordinators[0]

        found = await poll(
            ask,
            lambda found: (
                not ErrorCode(found.error_code).retriable
            ),  # the coordinator's topic may have to be created first
            f"{what} should have a coordinator",
            lambda found: ErrorCode(found.error_code).name,
        )
        if found.error_code:
            raise ValueError(f"{what}: {ErrorCode(found.error_code).name}: {found.error_message}")
        return found.host, found.port


class TcpConnection:
    """The connections of one member. ``heard`` is called after each answer, ``failed`` with unexpected exceptions."""

    hears: None = None
    """As of ``MemberConnection``: None, as there is no trace of a remote cluster."""

    def __init__(
        self, places: BrokerLocator, client_id: str, *, heard: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        self.client_id = client_id
        self._places = places
        self._heard = heard
        self._failed = failed
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._talking: dict[Address, BrokerConnection] = {}
        self._parking: dict[Address, list[BrokerConnection]] = {}
        self._all: list[BrokerConnection] = []
        self._closed = False

    def ask(
        self, request: Any, answered: OnResponse, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request``, by default to the bootstrap broker and in the newest version that both sides speak.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``.
        """
        self._begin(lambda: self._places.broker(broker_id), request, answered, version)

    def ask_coordinator(
        self, key: str, request: Any, answered: OnResponse, *, version: int | None = None, key_type: int = GROUP
    ) -> None:
        """Send ``request`` to the coordinator of ``key``, a group or what ``key_type`` says; see ``ask``."""
        self._begin(lambda: self._places.coordinator(key, key_type), request, answered, version)

    def ask_leader(
        self, partition: TopicPartition, request: Any, answered: OnResponse, *, version: int | None = None
    ) -> None:
        """Send ``request`` to the leader of ``partition``, or to the bootstrap broker if there is none; see ``ask``."""
        self._begin(lambda: self._places.leader(partition), request, answered, version)

    async def sent(self) -> None:
        """Wait until all requests so far are sent."""
        async with self._turn:
            pass

    def close(self) -> None:
        """Close the connections; no ``answered`` is called afterwards."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        for connection in self._all:
            connection.close()

    async def closed(self) -> None:
        """Wait until all tasks have ended, after ``close``."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Internals.

    def _begin(
        self, find: Callable[[], Awaitable[Address]], request: Any, answered: OnResponse, version: int | None
    ) -> None:
        if self._closed:
            raise RuntimeError(f"{self.client_id} has vanished: it sends nothing any more")
        task = asyncio.get_running_loop().create_task(self._ask(find, request, answered, version))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(
        self, find: Callable[[], Awaitable[Address]], request: Any, answered: OnResponse, version: int | None
    ) -> None:
        response = None
        try:
            response = await self._exchange(find, request, version)
        except DisconnectedError:
            pass  # a MemberConnection says so by None
        except Exception as error:
            self._failed(error)
        try:
            answered(response)
        except Exception as error:
            self._failed(error)
        self._heard()

    async def _exchange(self, find: Callable[[], Awaitable[Address]], request: Any, version: int | None) -> Any:
        parks = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        async with (
            self._turn
        ):  # requests are sent in the order of the calls: no other task runs between here and the write
            address = await find()
            connection = await self._connected(address, parks=parks)
        if version is not None and connection.highest_version(type(request), version) != version:
            raise UnsupportedVersionError(f"{type(request).__name__}: the broker does not speak version {version}")
        timeout_ms = PARKED_TIMEOUT_MS if parks else REQUEST_TIMEOUT_MS
        response = await connection.request(request, timeout_ms, limit=version)
        if parks:
            self._parking.setdefault(address, []).append(connection)
        return response

    async def _connected(self, address: Address, *, parks: bool) -> BrokerConnection:
        idle = self._parking.get(address, []) if parks else []
        while idle:
            connection = idle.pop()
            if connection.open:
                return connection
        known = self._talking.get(address)
        if not parks and known is not None and known.open:
            return known
        connection = await BrokerConnection.connect(*address, client_id=self.client_id, timeout_ms=REQUEST_TIMEOUT_MS)
        self._all = [each for each in self._all if each.open] + [connection]
        if not parks:
            self._talking[address] = connection
        return connection
