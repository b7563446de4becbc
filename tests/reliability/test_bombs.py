import math

import pytest

from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.messages import ListGroupsRequest
from tests.reliability import bombs
from tests.reliability.bombs import Bomb, empty_records, producing, send, serving
from tests.reliability.talk import Talk


@pytest.mark.slow
def test_bombs_of_every_kind_leave_the_server_as_it_was() -> None:
    outcome = bombs.attack(31, seed=1, worst_wait_ms=math.inf, size=300_000, partitions=10)
    assert outcome.problems == ()


@pytest.mark.slow
def test_who_asks_later_and_quietly_is_answered_before_the_bomb() -> None:
    """The answer to the bomb is not there yet when the quiet client has its own."""
    bomb = Bomb("empty records", producing(empty_records(Compression.ZSTD, 3_000_000), 3), 9)
    quiet = ListGroupsRequest()
    with serving(3) as server, Talk(server.address) as one, Talk(server.address) as other:
        send(one, bomb)
        for _ in range(3):
            other.ask(quiet)
        assert not one.hears(), "the bomb is answered already"
        (topic,) = one.answer().responses
    assert {part.error_code for part in topic.partition_responses} == {0}
