from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import CommitFailedError
from groupcoord.client.member.context import Generation
from groupcoord.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from groupcoord.simulation.consumer_application import ConsumerApplication, ReadPositions
from groupcoord.simulation.event_queue import Callback, EventQueue

ONE, TWO = ("orders", 0), ("orders", 1)
PENDING, UNSTABLE = -7, 88
"""An offset in an open transaction, and what is said of it."""


class ApplicationHost:
    """A process that notes what its user wants."""

    def __init__(self) -> None:
        self.event_queue = EventQueue()
        self.plan = SimpleNamespace(commit_interval_ms=10_000, instance_id=None)
        self.slot_id = 0
        self.owned: frozenset[TopicPartition] = frozenset()
        self.alive = True
        self.is_paused = False
        self.membership = SimpleNamespace(commits_as=lambda: Generation(3, "a"), fetches_as=lambda: None)
        self.request_received: list[tuple[Any, Callable[[Any], None], Callable[[Exception], None]]] = []
        self.later: list[tuple[Callback, int]] = []
        self.at_rest = 0
        self.application = ConsumerApplication(self, self.event_queue)  # type: ignore[arg-type]

    def run(self, callback: Callback) -> None:
        callback()

    def run_later(self, callback: Callback, after_ms: int = 0) -> None:
        self.later.append((callback, after_ms))

    def send_to_coordinator(self, request: Any, *answers: Any) -> None:
        self.request_received.append((request, *answers))

    def set_timer(self) -> None:
        self.at_rest += 1

    def owns(self, *partitions: TopicPartition) -> None:
        self.owned = frozenset(partitions)
        self.application.set_owned(self.owned)

    def go_on(self) -> None:
        later, self.later = self.later, []
        for do, _ in later:
            do()

    def answer(self, error_code: int = 0, **offsets: int) -> None:
        """Answer an OffsetFetch; offsets by partition, as ``p0``."""
        request, answered, _ = self.request_received.pop()
        assert type(request) is OffsetFetchRequest
        each = tuple(
            SimpleNamespace(
                partition_index=int(name[1:]), committed_offset=offset, error_code=UNSTABLE if offset == PENDING else 0
            )
            for name, offset in offsets.items()
        )
        topics = (SimpleNamespace(name="orders", partitions=each),)
        answered(SimpleNamespace(groups=(SimpleNamespace(error_code=error_code, topics=topics),)))

    def committed(self) -> dict[int, int]:
        """What the commit that is under way says of each partition."""
        self.application.commit(lambda: None)
        request, _, _ = self.request_received.pop()
        assert type(request) is OffsetCommitRequest
        return {each.partition_index: each.committed_offset for topic in request.topics for each in topic.partitions}


@pytest.fixture
def consumer() -> ApplicationHost:
    return ApplicationHost()


def test_it_begins_where_the_group_has_left_off(consumer: ApplicationHost) -> None:
    consumer.owns(ONE, TWO)
    consumer.go_on()
    consumer.answer(p0=5, p1=-1)
    assert consumer.at_rest == 1
    assert consumer.committed() == {0: 5, 1: 0}
    consumer.owns(ONE)
    assert not consumer.later
    assert consumer.committed() == {0: 5}


def test_it_asks_again_if_it_is_not_told(consumer: ApplicationHost) -> None:
    consumer.owns(ONE)
    consumer.go_on()
    consumer.answer(error_code=14)
    ((_, after_ms),) = consumer.later
    assert after_ms > 0
    consumer.go_on()
    consumer.request_received.pop()[2](ValueError("gone"))
    consumer.go_on()
    consumer.answer(p0=7)
    assert consumer.committed() == {0: 7}


def test_it_asks_again_for_what_is_in_a_transaction(consumer: ApplicationHost) -> None:
    consumer.owns(ONE, TWO)
    consumer.go_on()
    consumer.answer(p0=5, p1=PENDING)
    assert consumer.committed() == {0: 5}
    consumer.go_on()
    consumer.answer(p1=6)
    assert consumer.committed() == {0: 5, 1: 6}


def test_what_it_has_lost_meanwhile_it_does_not_begin(consumer: ApplicationHost) -> None:
    consumer.owns(ONE, TWO)
    consumer.go_on()
    consumer.owns(TWO)
    consumer.answer(p0=5, p1=6)
    consumer.go_on()
    assert not consumer.request_received
    assert consumer.committed() == {1: 6}


def test_who_is_not_in_the_group_does_not_commit(consumer: ApplicationHost) -> None:
    consumer.owns(ONE)
    consumer.go_on()
    consumer.answer(p0=5)

    def refuse() -> Generation:
        raise CommitFailedError("no")

    consumer.membership.commits_as = refuse
    done: list[str] = []
    consumer.application.commit(lambda: done.append("done"))
    assert done == ["done"]
    assert not consumer.request_received


def test_who_is_away_commits_when_it_comes_back(consumer: ApplicationHost) -> None:
    consumer.owns(ONE)
    consumer.go_on()
    consumer.answer(p0=5)
    consumer.application.start()
    consumer.application.stop_polling()
    consumer.application.resume_reading()
    consumer.application.poll()
    assert not consumer.request_received
    consumer.application.stop_polling()
    consumer.event_queue.run_next()
    assert consumer.event_queue.now_ms == 10_000
    assert not consumer.request_received
    consumer.application.poll()
    assert len(consumer.request_received) == 1
    consumer.application.poll()
    assert len(consumer.request_received) == 1
    assert consumer.application.commits_at_ms == 20_000
    consumer.alive = False
    consumer.event_queue.run_next()
    assert consumer.event_queue.next_ms() is None


ONE, TWO = ("orders", 0), ("orders", 1)


def test_reading_goes_on_at_a_steady_pace() -> None:
    positions = ReadPositions()
    positions.set(ONE, 100, 1_000, reading=True)
    positions.set(TWO, 7, 1_000, reading=False)
    assert positions.at(1_400) == {ONE: 110, TWO: 7}
    positions.resume(1_400)
    positions.stop(1_790)
    assert positions.at(5_000) == {ONE: 119, TWO: 17}


def test_only_what_is_owned_has_a_position() -> None:
    positions = ReadPositions()
    positions.set(ONE, 0, 0, reading=True)
    positions.set(TWO, 0, 0, reading=True)
    positions.keep_only(frozenset({TWO}))
    assert ONE not in positions
    assert TWO in positions
