import pytest

from groupcoord.coordinator.availability import Unavailable
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode


def test_whoever_asks_is_refused_until_it_is_available() -> None:
    there = [False]
    groups = Unavailable(ErrorCode.NOT_COORDINATOR, "nobody has the log", lambda: there[0])
    with pytest.raises(ApiError, match="nobody has the log, where group 'g' would be") as refused:
        groups.get("g")
    assert refused.value.code is ErrorCode.NOT_COORDINATOR
    there[0] = True
    assert groups.get("g") is None
    assert not groups


def test_most_are_never_available_again_by_themselves() -> None:
    with pytest.raises(ApiError):
        Unavailable(ErrorCode.NOT_COORDINATOR, "it is so").get("g")
