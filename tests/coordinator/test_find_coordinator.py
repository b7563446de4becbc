from typing import Any

import pytest

from groupcoord.coordinator.find_coordinator import this_broker
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest
from tests.coordinator.world import Asked, World

ME: dict[str, Any] = {"node_id": 7, "advertised_listeners": "PLAINTEXT://kafka.test:1234"}


def find(*keys: str, key_type: int = 0, version: int = 6) -> Asked:
    request = FindCoordinatorRequest(key=keys[0] if keys else "", key_type=key_type, coordinator_keys=keys)
    world = World(**ME)
    world.coordinator.transaction_coordinator_of = lambda _, listener: this_broker(world.config, listener)
    return world.ask(ApiKey.FIND_COORDINATOR, request, version=version)


@pytest.mark.parametrize("key_type", [0, 1])
def test_this_broker_coordinates_every_group_and_transaction(key_type: int) -> None:
    found = find("a", "", "b", key_type=key_type).answer.coordinators
    assert [(one.key, one.node_id, one.host, one.port, one.error_code) for one in found] == [
        (key, 7, "kafka.test", 1234, 0) for key in ("a", "", "b")
    ]


@pytest.mark.parametrize("version", [4, 5, 6])
def test_from_version_4_a_success_has_no_message(version: int) -> None:
    """Gotcha 46."""
    assert find("a", version=version).answer.coordinators[0].error_message == ""


@pytest.mark.parametrize("version", [1, 2, 3])
def test_before_version_4_a_success_says_none(version: int) -> None:
    """Gotcha 46."""
    answer = find("a", version=version).answer
    assert (answer.node_id, answer.host, answer.port) == (7, "kafka.test", 1234)
    assert (answer.error_code, answer.error_message) == (0, "NONE")


def test_version_0_has_no_message() -> None:
    answer = find("a", version=0).answer
    assert (answer.node_id, answer.host, answer.port, answer.error_code) == (7, "kafka.test", 1234, 0)
    assert not answer.error_message


def test_share_groups_have_no_coordinator() -> None:
    """As a real 4.3.1 refuses a key that is not of its internal form."""
    (found,) = find("a", key_type=2).answer.coordinators
    assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    assert found.error_message == ""


def test_an_unknown_kind_of_key_is_refused_key_by_key() -> None:
    """Seen on a real 4.3.1, the text included."""
    found = find("a", "b", key_type=9).answer.coordinators
    assert [(one.key, one.error_code, one.error_message) for one in found] == [
        (key, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.text) for key in ("a", "b")
    ]


def test_before_version_4_an_unknown_kind_of_key_is_refused_at_the_top() -> None:
    answer = find("a", key_type=9, version=3).answer
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.text)
    assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)


def test_who_is_still_reading_the_log_is_the_coordinator_already() -> None:
    """Kafka looks at who leads the partition, and at nothing else."""
    world = World(**ME)
    world.coordinator.runtime.resign(
        world.coordinator.shard_of("a").partition, HandlerContext(0, AdminAction("a test"))
    )
    request = FindCoordinatorRequest(coordinator_keys=("a",))
    (lost,) = world.ask(ApiKey.FIND_COORDINATOR, request).answer.coordinators
    assert (lost.error_code, lost.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    world.coordinator.runtime.load(world.coordinator.shard_of("a").partition, HandlerContext(0, AdminAction("a test")))
    (found,) = world.ask(ApiKey.FIND_COORDINATOR, request).answer.coordinators
    assert (found.error_code, found.node_id, found.port) == (0, 7, 1234)
