"""Waits until a started broker is ready: not when it accepts connections, but when it is the coordinator of every group."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.framing import encode_request, parse_response
from groupcoord.protocol.messages import DescribeGroupsRequest, FindCoordinatorRequest, InitProducerIdRequest
from tests.real_kafka.broker import BrokerFailed

START_S = 180
"""A cold JVM on a machine with other work; an idle one takes four seconds."""

LOADING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


def until(condition: Callable[[], bool], within_s: float) -> bool:
    """Ask until ``condition`` is true, or for so long: whether it came true."""
    deadline = time.monotonic() + within_s
    while not (came := condition()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return came


def until_it_coordinates(port: int, partitions: int, gone: Callable[[], str | None]) -> None:
    """Return when the broker at 127.0.0.1:``port`` has loaded all ``partitions`` of the offsets topic.

    ``gone`` says why it will never be so, or None. Raises BrokerFailed.
    """
    deadline = time.monotonic() + START_S
    while not coordinates(port, partitions):
        if reason := gone():
            raise BrokerFailed(reason)
        if time.monotonic() > deadline:
            raise BrokerFailed(f"no answer for all groups within {START_S} s")
        time.sleep(0.1)


def coordinates(port: int, partitions: int) -> bool:
    """Does the broker answer for a group of each partition, and to producers? Who asks first makes it get ready for it."""
    groups = tuple(a_group_per_partition(partitions))
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(10)
            found = _ask(connection, ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=groups))
            if any(item.error_code for item in found.coordinators):
                return False
            described = _ask(connection, ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=groups))
            if any(group.error_code in LOADING for group in described.groups):
                return False
            # The first block of producer ids is fetched when somebody asks for one.
            wants_id = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            return not _ask(connection, ApiKey.INIT_PRODUCER_ID, 4, wants_id).error_code
    except (OSError, WireError):
        return False


def a_group_per_partition(partitions: int) -> Iterator[str]:
    """Names of groups, each in another of ``partitions``."""
    seen: set[int] = set()
    number = 0
    while len(seen) < partitions:
        name = f"ready-{number}"
        number += 1
        if (partition := partition_for(name, partitions)) not in seen:
            seen.add(partition)
            yield name


def _ask(connection: socket.socket, key: ApiKey, version: int, request: object) -> Any:
    connection.sendall(encode_request(APIS[key], version, 1, "ready", request))
    size = int.from_bytes(_read(connection, 4), "big")
    return parse_response(APIS[key], version, _read(connection, size))[1]


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the broker hung up")
        data += part
    return data
