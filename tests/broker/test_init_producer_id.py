import pytest

from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import DataPlane, batch


def ask(plane: DataPlane, timeout_ms: int = 60_000, **fields: int) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=timeout_ms, **fields)
    response: InitProducerIdResponse = plane.ask(request, 5)
    return response


def test_every_producer_gets_its_own_id_and_epoch_0() -> None:
    plane = DataPlane()
    found = [ask(plane) for _ in range(3)]
    assert [(one.error_code, one.producer_id, one.producer_epoch) for one in found] == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]


def test_a_producer_that_asks_again_gets_another_id() -> None:
    plane = DataPlane()
    ask(plane)
    assert ask(plane, producer_id=0, producer_epoch=4).producer_id == 1


def test_the_timeout_of_a_transaction_is_nothing_without_one() -> None:
    assert ask(DataPlane(), timeout_ms=-5).error_code == 0


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_gets_none(asked: dict[str, int], error: ErrorCode) -> None:
    plane = DataPlane()
    refused = ask(plane, **asked)
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (error, -1, -1)
    assert ask(plane).producer_id == 0


def test_an_id_is_good_for_producing() -> None:
    plane = DataPlane()
    plane.topic("orders")
    producer = ask(plane).producer_id
    for sequence in range(3):
        data = batch(b"x", producer_id=producer, producer_epoch=0, base_sequence=sequence)
        assert plane.produced("orders", data).base_offset == sequence
    data = batch(b"x", producer_id=producer, producer_epoch=0, base_sequence=9)
    assert plane.produced("orders", data).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
