"""The user of one member: reads what the member owns, commits its positions from time to time, and is away at times."""

from collections.abc import Callable
from typing import Any, Protocol

from groupcoord.assignors import TopicPartition
from groupcoord.client import actions as a
from groupcoord.client.errors import CommitFailedError, RebalanceInProgressError
from groupcoord.client.membership import Membership
from groupcoord.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from groupcoord.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.testing.request_builders import codes_of, commit_request
from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.network import MEMBER_COMMITS, rank
from groupcoord.testing.simulation.plan import MemberPlan
from groupcoord.testing.simulation.positions import Positions

GROUP = "app"
_OFFSETS_AGAIN_MS = 500

Do = Callable[[], None]


class Consumer(Protocol):
    """The process that the user lives in."""

    membership: Membership
    plan: MemberPlan
    slot: int
    owned: frozenset[TopicPartition]
    alive: bool

    @property
    def is_paused(self) -> bool:
        """Does it stand still?"""

    def feed(self, actions: list[a.Action]) -> None:
        """Have that done."""

    def do(self, do: Do) -> None:
        """Now, or when it goes on, or never if it is gone."""

    def soon(self, do: Do, after_ms: int = 0) -> None:
        """When what is under way is done."""

    def ask_coordinator(
        self, request: Any, answered: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        """One of the two is called in the end."""

    def set_timer(self) -> None:
        """It may be at rest now."""


class User:
    """One user; ``commits_at_ms`` is when it commits next by itself, ``present`` whether it polls."""

    def __init__(self, consumer: Consumer, agenda: Agenda) -> None:
        self._consumer, self._agenda = consumer, agenda
        self._positions = Positions()
        self.present = True
        self.commits_at_ms = 0
        self._commit_overdue = False

    def start(self) -> None:
        """Begin to commit.

        A commit of a member at rest is routine, as heartbeats are: it changes nothing for others. Its own beats stop before it.
        """
        consumer = self._consumer
        self.commits_at_ms = self._agenda.now_ms + consumer.plan.commit_interval_ms
        self._agenda.at(self.commits_at_ms, rank(consumer.slot, MEMBER_COMMITS), self._commit_again, routine=True)

    def stand_still(self) -> None:
        """Nothing is read from now on."""
        self._positions.stop(self._agenda.now_ms)

    def go_on(self) -> None:
        """The process goes on; the user reads if it is there."""
        if self.present:
            self._positions.go_on(self._agenda.now_ms)

    def go_away(self) -> None:
        """It does not poll any more."""
        self.present = False
        self.stand_still()

    def come_back(self) -> None:
        """It polls, and commits what it has not committed in time."""
        if not self.present:
            self.present = True
            self.go_on()
            if self._commit_overdue:
                self._commit_in_time()

    def owns(self, partitions: frozenset[TopicPartition]) -> None:
        """It reads these from now on: it goes on in those it had, and begins in others where the group has left off."""
        self._positions.keep_only(partitions)
        if any(partition not in self._positions for partition in partitions):
            self._consumer.soon(self._begin_where_committed)

    def commit(self, done: Do) -> None:
        """Commit the positions, if the member may; ``done`` is called when that has come to an end, whichever."""
        consumer = self._consumer
        offsets = self._positions.all(self._agenda.now_ms)
        try:
            sent = consumer.membership.commits_as()
        except (RebalanceInProgressError, CommitFailedError):
            offsets = {}
        if not offsets:
            done()
            return
        request = commit_request(GROUP, sent.generation_id, sent.member_id, consumer.plan.instance_id, offsets)

        def answered(response: Any) -> None:
            for code in dict.fromkeys(codes_of(response).values()):
                consumer.feed(consumer.membership.commit_answered(code, sent, self._agenda.now_ms))
            done()

        consumer.ask_coordinator(request, answered, lambda _: done())

    def _commit_again(self) -> None:
        if self._consumer.alive:
            self.start()
            self._consumer.do(self._commit_in_time)

    def _commit_in_time(self) -> None:
        """Whoever polls commits when it is time; who comes back late does it then, at once."""
        self._commit_overdue = not self.present
        if self.present:
            self.commit(lambda: None)

    def _begin_where_committed(self) -> None:
        """Ask where to begin, for partitions of which that is not known."""
        consumer = self._consumer
        missing = [partition for partition in sorted(consumer.owned) if partition not in self._positions]
        if not missing:
            return
        by_topic: dict[str, tuple[int, ...]] = {}
        for topic, number in missing:
            by_topic[topic] = (*by_topic.get(topic, ()), number)
        group = OffsetFetchRequestGroup(
            group_id=GROUP,
            topics=tuple(OffsetFetchRequestTopics(name=topic, partition_indexes=of) for topic, of in by_topic.items()),
        )

        def again() -> None:
            consumer.soon(self._begin_where_committed, _OFFSETS_AGAIN_MS)

        def answered(response: OffsetFetchResponse) -> None:
            (said,) = response.groups
            if said.error_code:
                again()
                return
            for topic in said.topics:
                for each in topic.partitions:
                    self._begin((topic.name, each.partition_index), each.committed_offset)
            consumer.set_timer()

        consumer.ask_coordinator(OffsetFetchRequest(groups=(group,)), answered, lambda _: again())

    def _begin(self, partition: TopicPartition, committed: int) -> None:
        if partition in self._consumer.owned and partition not in self._positions:
            reading = self.present and not self._consumer.is_paused
            self._positions.begin(partition, max(committed, 0), self._agenda.now_ms, reading=reading)
