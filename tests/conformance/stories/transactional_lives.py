"""Randomly generated stories of transactional producers, which write, commit and abort, and of consumers of their records.

Each step is drawn while the story runs, from the same seed each time: it depends on the responses, so after a
different response the story continues differently.
"""

import random
from collections.abc import Callable
from typing import Any

from groupcoord.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from groupcoord.protocol.messages import DeleteRecordsRequest
from tests.conformance.actors import Stagehand
from tests.conformance.data import DataClient
from tests.conformance.producers import Producer
from tests.conformance.stories.transaction_markers import Operator, marker
from tests.conformance.stories.transactional_data import plain
from tests.conformance.stories.transactional_offsets import shows_batches
from tests.conformance.story import Story, story

MOVES = 60
NUMBERS = (0, 1, 4, 7, 14, 16, 20, 22)
"""Of two dozen lives those that show most."""


class Life:
    """One life of two transactional ids, each with two incarnations, and of a producer that is only idempotent."""

    def __init__(self, s: Story, chance: random.Random) -> None:
        self.s, self.chance, stage = s, chance, Stagehand(s)
        sizes = {"orders": 2, "payments": 1}
        topics = {stage.topic(suffix, partitions=count): count for suffix, count in sizes.items()}
        self.partitions = [(topic, index) for topic, count in topics.items() for index in range(count)]
        self.groups = [s.group("one"), s.group("two")]
        ids = {topic: stage.topic_id(topic) for topic in topics}
        self.producers = [Producer(s, name, ids=ids) for name in ("a", "a", "b", "b")]
        self.idempotent = Producer(s, "i", transactional_id=None)
        self.op, self.reader = Operator(s, "op"), DataClient(s, "reader", ids=ids)

    def goes_on(self, moves: int = MOVES) -> None:
        """So many moves, and a last look at everything."""
        for producer in (self.producers[0], self.producers[2], self.idempotent):
            producer.init()
        kinds: dict[Callable[[], Any], int] = {
            self._produces: 30,
            self._commits_offsets: 14,
            self._ends: 18,
            self._adds: 6,
            self._starts: 8,
            self._reads: 18,
            self._looks_at_offsets: 6,
            self._writes_something_else: 6,
            self._meddles: 3,
        }
        for _ in range(moves):
            (move,) = self.chance.choices([*kinds], [*kinds.values()])
            move()
        for producer in self.producers:
            producer.aborts(does="gives up")
        for where in self.partitions:
            start = self.reader.lists_offsets({where: -2}).topics[0].partitions[0].offset
            self.reader.fetches({where: start}, isolation_level=1, does="fetches at last")
            self.op.describes_producers({where[0]: [where[1]]})
        for group in self.groups:
            self.op.fetches(group, None, stable=True)
            shows_batches(self.s, group, *self.producers)

    def _someone(self) -> Producer:
        """Mostly the newer incarnation, once it has an id."""
        one = self.chance.choice((0, 2))
        old, new = self.producers[one : one + 2]
        return new if new.producer_id >= 0 and not self._now(0.1) else old

    def _now(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _produces(self) -> None:
        producer = self._someone()
        version = self.chance.choice((9, 11, 12, 12, 12, 13))
        said: dict[str, Any] = {}
        if self._now(0.15):
            said["attributes"] = 0
        elif self._now(0.1):
            said["producer_epoch"] = producer.epoch + self.chance.choice((-1, 1))
        if self._now(0.2):
            said["sequence"] = self.chance.randrange(6)
        values = [
            b"%s%d" % (producer.name.encode(), self.chance.randrange(100)) for _ in range(self.chance.randint(1, 3))
        ]
        places = self.chance.sample(self.partitions, self.chance.choice((1, 1, 1, 2)))
        producer.produces(dict.fromkeys(places, values), version, **said)

    def _commits_offsets(self) -> None:
        said: dict[str, Any] = {"generation_id": self.chance.choice((0, 1))} if self._now(0.1) else {}
        places = self.chance.sample(self.partitions, self.chance.choice((1, 1, 2)))
        commits = {where: (self.chance.randrange(1_000), "pending") for where in places}
        version = self.chance.choice((3, 4, 5, 5, 5))
        self._someone().commits_offsets(self.chance.choice(self.groups), commits, version, **said)

    def _ends(self) -> None:
        version = self.chance.choice((2, 4, 5, 5, 5))
        self._someone().ends(committed=self._now(0.6), version=version)

    def _adds(self) -> None:
        producer = self._someone()
        if self._now(0.4):
            producer.adds_offsets(self.chance.choice(self.groups))
        else:
            topic, index = self.chance.choice(self.partitions)
            producer.adds_partitions({topic: [index]})

    def _starts(self) -> None:
        producer = self.chance.choice(self.producers)
        if producer.producer_id >= 0 and self._now(0.4):
            producer.goes_on()
        else:
            producer.init()

    def _reads(self) -> None:
        where, isolation = self.chance.choice(self.partitions), self.chance.choice((0, 1, 1, 1))
        kind = self.chance.randrange(5)
        if kind < 3:
            size = self.chance.choice((1, 200, 1 << 20))
            offset, version = self.chance.randrange(12), self.chance.choice((4, 12, 18))
            self.reader.fetches({where: offset}, version, partition_max_bytes=size, isolation_level=isolation)
        elif kind == 3:
            self.reader.lists_offsets({where: self.chance.choice((-1, -2))}, isolation_level=isolation)
        else:
            self.op.describes_producers({where[0]: [where[1]]})

    def _looks_at_offsets(self) -> None:
        wanted: dict[str, list[int]] = {}
        for topic, index in self.partitions:
            wanted.setdefault(topic, []).append(index)
        self.op.fetches(self.chance.choice(self.groups), wanted, stable=self._now(0.7))

    def _writes_something_else(self) -> None:
        where, kind = self.chance.choice(self.partitions), self.chance.randrange(3)
        if kind == 0:
            self.reader.produces({where: plain(self.s, b"plain")})
        elif kind == 1:
            self.idempotent.produces({where: [b"idempotent"]}, attributes=0)
        else:
            self.op.commits(self.chance.choice(self.groups), {where: (self.chance.randrange(1_000), "plain")})

    def _meddles(self) -> None:
        """An operator's marker, with the epoch that the producer thinks it has; records or offsets are deleted."""
        (topic, index), kind = self.chance.choice(self.partitions), self.chance.randrange(4)
        producer = self._someone()
        if kind == 0 and producer.producer_id >= 0:
            made = marker({topic: [index]}, producer.producer_id, producer.epoch, committed=self._now(0.5))
            self.op.writes(made, does="ends the transaction of another in one partition")
        elif kind == 1:
            part = DeleteRecordsPartition(partition_index=index, offset=self.chance.choice((1, 2, 4, -1)))
            request = DeleteRecordsRequest(
                topics=(DeleteRecordsTopic(name=topic, partitions=(part,)),), timeout_ms=5_000
            )
            self.reader.asks(request, 2, does="deletes records")
        elif kind == 2:
            self.op.deletes_offsets(self.chance.choice(self.groups), {topic: [index]})
        else:
            self.op.deletes(self.chance.choice(self.groups))


def _drawn(number: int) -> None:
    """Registers the life with this number."""

    def tells(s: Story) -> None:
        Life(s, random.Random(number)).goes_on()

    tells.__name__ = f"transactions_by_chance_{number}"
    tells.__doc__ = f"Two transactional ids write, commit and abort, and consumers read: random story {number}."
    story(sections=["transactions"])(tells)


for _number in NUMBERS:
    _drawn(_number)
