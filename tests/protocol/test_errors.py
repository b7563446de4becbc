"""Against Kafka's own table: see ErrorsTable.java."""

import json
from pathlib import Path

import pytest

from groupcoord.protocol.errors import ErrorCode, WireError

TABLE = json.loads(Path(__file__).with_name("errors_table.json").read_text())


def test_an_error_is_kafkas() -> None:
    for code, name, retriable, text in TABLE:
        error = ErrorCode(code)
        assert (error.name, error.retriable, error.text) == (name, retriable, text)


def test_there_are_no_others() -> None:
    assert sorted(ErrorCode) == sorted(row[0] for row in TABLE)


def test_an_error_is_its_number() -> None:
    assert int(ErrorCode.REBALANCE_IN_PROGRESS) == 27
    assert f"{ErrorCode(27).name} {ErrorCode(27):d}" == "REBALANCE_IN_PROGRESS 27"


def test_the_table_survives_the_unknown() -> None:
    stranger = ErrorCode(999)
    assert repr(stranger) == "<ErrorCode.UNKNOWN_999: 999>"
    assert (stranger, stranger.retriable, stranger.text) == (999, False, "Error code 999 is not in this table.")
    assert 999 not in list(ErrorCode)
    with pytest.raises(ValueError, match="'x' is not a valid ErrorCode"):
        ErrorCode("x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (WireError("bad"), "bad"),
        (WireError("bad", offset=3), "offset 3: bad"),
        (
            WireError("bad", api="Heartbeat", version=4, offset=3, field="group_id"),
            "Heartbeat v4, field group_id, offset 3: bad",
        ),
        (WireError("bad", api="Subscription"), "Subscription: bad"),
    ],
)
def test_a_wire_error_says_what_it_knows(problem: WireError, text: str) -> None:
    assert str(problem) == text
