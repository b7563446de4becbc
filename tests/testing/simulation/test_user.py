from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.assignors import TopicPartition
from groupcoord.client.errors import CommitFailedError
from groupcoord.client.member import Generation
from groupcoord.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.user import Do, User

ONE, TWO = ("orders", 0), ("orders", 1)


class Consumer:
    """A process that notes what its user wants."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.plan = SimpleNamespace(commit_interval_ms=10_000, instance_id=None)
        self.slot = 0
        self.owned: frozenset[TopicPartition] = frozenset()
        self.alive = True
        self.is_paused = False
        self.membership = SimpleNamespace(commits_as=lambda: Generation(3, "a"))
        self.asked: list[tuple[Any, Callable[[Any], None], Callable[[Exception], None]]] = []
        self.later: list[tuple[Do, int]] = []
        self.at_rest = 0
        self.user = User(self, self.agenda)  # type: ignore[arg-type]

    def do(self, do: Do) -> None:
        do()

    def soon(self, do: Do, after_ms: int = 0) -> None:
        self.later.append((do, after_ms))

    def ask_coordinator(self, request: Any, *answers: Any) -> None:
        self.asked.append((request, *answers))

    def set_timer(self) -> None:
        self.at_rest += 1

    def owns(self, *partitions: TopicPartition) -> None:
        self.owned = frozenset(partitions)
        self.user.owns(self.owned)

    def go_on(self) -> None:
        later, self.later = self.later, []
        for do, _ in later:
            do()

    def answer(self, error_code: int = 0, **offsets: int) -> None:
        """Answer an OffsetFetch; offsets by partition, as ``p0``."""
        request, answered, _ = self.asked.pop()
        assert type(request) is OffsetFetchRequest
        each = tuple(
            SimpleNamespace(partition_index=int(name[1:]), committed_offset=offset) for name, offset in offsets.items()
        )
        topics = (SimpleNamespace(name="orders", partitions=each),)
        answered(SimpleNamespace(groups=(SimpleNamespace(error_code=error_code, topics=topics),)))

    def committed(self) -> dict[int, int]:
        """What the commit that is under way says of each partition."""
        self.user.commit(lambda: None)
        request, _, _ = self.asked.pop()
        assert type(request) is OffsetCommitRequest
        return {each.partition_index: each.committed_offset for topic in request.topics for each in topic.partitions}


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


def test_it_begins_where_the_group_has_left_off(consumer: Consumer) -> None:
    consumer.owns(ONE, TWO)
    consumer.go_on()
    consumer.answer(p0=5, p1=-1)
    assert consumer.at_rest == 1
    assert consumer.committed() == {0: 5, 1: 0}
    consumer.owns(ONE)
    assert not consumer.later
    assert consumer.committed() == {0: 5}


def test_it_asks_again_if_it_is_not_told(consumer: Consumer) -> None:
    consumer.owns(ONE)
    consumer.go_on()
    consumer.answer(error_code=14)
    ((_, after_ms),) = consumer.later
    assert after_ms > 0
    consumer.go_on()
    consumer.asked.pop()[2](ValueError("gone"))
    consumer.go_on()
    consumer.answer(p0=7)
    assert consumer.committed() == {0: 7}


def test_what_it_has_lost_meanwhile_it_does_not_begin(consumer: Consumer) -> None:
    consumer.owns(ONE, TWO)
    consumer.go_on()
    consumer.owns(TWO)
    consumer.answer(p0=5, p1=6)
    consumer.go_on()
    assert not consumer.asked
    assert consumer.committed() == {1: 6}


def test_who_is_not_in_the_group_does_not_commit(consumer: Consumer) -> None:
    consumer.owns(ONE)
    consumer.go_on()
    consumer.answer(p0=5)

    def refuse() -> Generation:
        raise CommitFailedError("no")

    consumer.membership.commits_as = refuse
    done: list[str] = []
    consumer.user.commit(lambda: done.append("done"))
    assert done == ["done"]
    assert not consumer.asked


def test_who_is_away_commits_when_it_comes_back(consumer: Consumer) -> None:
    consumer.owns(ONE)
    consumer.go_on()
    consumer.answer(p0=5)
    consumer.user.start()
    consumer.user.go_away()
    consumer.user.go_on()
    consumer.user.come_back()
    assert not consumer.asked
    consumer.user.go_away()
    consumer.agenda.do_next()
    assert consumer.agenda.now_ms == 10_000
    assert not consumer.asked
    consumer.user.come_back()
    assert len(consumer.asked) == 1
    consumer.user.come_back()
    assert len(consumer.asked) == 1
    assert consumer.user.commits_at_ms == 20_000
    consumer.alive = False
    consumer.agenda.do_next()
    assert consumer.agenda.next_ms() is None
