import contextlib
import math

import pytest

from groupcoord.protocol.compression import Compression
from groupcoord.protocol.messages import ListGroupsRequest
from tests.reliability import bombs
from tests.reliability.bombs import Bomb, Line, empty_records, producing, serving


@pytest.mark.slow
def test_bombs_of_every_kind_leave_the_server_as_it_was() -> None:
    outcome = bombs.attack(31, seed=1, worst_wait_ms=math.inf, size=300_000, partitions=10)
    assert outcome.problems == ()


@pytest.mark.slow
def test_who_asks_later_and_quietly_is_answered_before_the_bomb() -> None:
    """The answer to the bomb is not there yet when the quiet client has its own."""
    bomb = Bomb("empty records", producing(empty_records(Compression.ZSTD, 3_000_000), 3), 9)
    quiet = Bomb("quiet", ListGroupsRequest(), 4)
    with serving(3) as server:
        one, other = Line(server.port), Line(server.port)
        with contextlib.closing(one.socket), contextlib.closing(other.socket):
            one.send(bomb)
            for _ in range(3):
                other.send(quiet)
                other.answer(quiet)
            one.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                assert not one.socket.recv(1), "the bomb is answered already"
            (topic,) = one.answer(bomb).responses
    assert {part.error_code for part in topic.partition_responses} == {0}
