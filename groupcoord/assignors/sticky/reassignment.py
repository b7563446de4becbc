"""Moving partitions from members that have much to members that have less. Source: ``performReassignments`` of
``AbstractStickyAssignor.GeneralAssignmentBuilder``.

Kafka looks before every step whether the whole is balanced, and asks for every partition all subscribers of its topic whether
one has less. Here the subscriber that has least comes from a heap, one per set of subscribers, and a partition whose owner
does not have two more than that is passed over: the same moves in the same order.
"""

from collections.abc import Mapping, Sequence

from groupcoord.assignors.model import JavaFailure
from groupcoord.assignors.pools import Pool
from groupcoord.assignors.sticky.board import Board
from groupcoord.assignors.sticky.movements import Movements


class Reassignment:
    """Moves partitions on ``board`` among the members ``in_play``.

    ``previous`` says of a partition who had it in an older generation: it goes back there if that makes for balance. With
    ``strict`` a previous owner that is not in play is the failure that it is in Kafka; otherwise it is passed over.
    """

    def __init__(self, board: Board, in_play: Sequence[int], previous: Mapping[int, int], strict: bool) -> None:
        self._board = board
        self._in_play = in_play
        self._playing = frozenset(in_play)
        self._previous = previous
        self._strict = strict
        # Whether all is balanced decides nothing that the sizes of a partition's owner and of the subscriber that has least
        # do not, unless a partition can go to somebody who does not want its topic or to nobody.
        self._must_ask = board.has_phantoms or any(
            member not in self._playing or self._topic_of(partition) not in board.wants[member]
            for partition, member in previous.items()
        )
        self._pools: dict[tuple[int, ...], Pool] = {}
        self._pools_of_topic: dict[int, Pool] = {}
        self._pools_of_member: list[list[Pool]] = [[] for _ in board.ids]
        self._movements: dict[int, Movements] = {}
        self.before: dict[int, list[int]] = {}
        """What those held, whose holdings changed, before anything moved."""

    def run(self, by_topic: Sequence[tuple[int, Sequence[int]]]) -> bool:
        """Go through these partitions again and again until nothing moves; says whether anything did."""
        moved = False
        while self._pass(by_topic):
            moved = True
        return moved

    def _pass(self, by_topic: Sequence[tuple[int, Sequence[int]]]) -> bool:
        board, previous, modified = self._board, self._previous, False
        owner, sizes = board.owner, board.sizes
        largest = max([sizes[member] for member in self._in_play], default=0)
        for topic, partitions in by_topic:
            pool = self._pool(topic)
            enough = sizes[pool.least()] + 1
            if enough >= largest and not previous:
                continue  # nobody has so much that a subscriber of this topic should have some of it
            for partition in partitions:
                if sizes[owner[partition]] <= enough and partition not in previous:
                    continue
                if self._must_ask and self.is_balanced():
                    return modified
                receiver = self._receiver(partition, pool, enough)
                if receiver is not None:
                    self._move(topic, partition, receiver)
                    modified = True
                    enough = sizes[pool.least()] + 1
        return modified

    def _receiver(self, partition: int, pool: Pool, enough: int) -> int | None:
        """Who should have ``partition`` instead of its owner, if anybody."""
        size = self._board.sizes[self._board.owner[partition]]
        back = self._previous.get(partition)
        if back is not None and back not in self._playing:
            if self._strict:
                raise JavaFailure(
                    "NullPointerException",
                    f"{self._board.partitions[partition]} was once owned by {self._board.ids[back]}, "
                    "which has been set aside as unable to give or take anything",
                )
        elif back is not None and size > self._board.sizes[back] + 1:
            return back
        return pool.least() if size > enough else None

    def _move(self, topic: int, partition: int, receiver: int) -> None:
        board = self._board
        if topic not in self._movements:
            self._movements[topic] = Movements(board.topics[topic])
        movements, start = self._movements[topic], board.ranges[topic].start
        index = movements.instead_of(partition - start, board.owner[partition], receiver)
        giver = board.owner[start + index]
        for member in (giver, receiver):
            if member not in self.before:
                self.before[member] = list(board.held[member])
        movements.record(index, giver, receiver)
        board.move(start + index, receiver)
        for pool in self._pools_of_member[giver]:
            pool.shrunk(giver)

    def is_balanced(self) -> bool:
        """Can no partition move to a member that has two less than its owner? (``isBalanced``)"""
        board, sizes = self._board, self._board.sizes
        playing = [sizes[member] for member in self._in_play]
        if min(playing) >= max(playing) - 1:
            return True
        owner = dict(enumerate(board.owner))
        for member_id in board.hash_order if board.has_phantoms else ():
            member = board.rank[member_id]
            if member in self._playing:
                owner.update(dict.fromkeys(board.held[member], member))
        largest = [max([sizes[owner[partition]] for partition in of_topic]) for of_topic in board.ranges]
        return not any(
            sizes[member] != board.most_possible(member)
            and any(
                sizes[member] + 1 < largest[topic]
                and any(
                    sizes[member] + 1 < sizes[owner[partition]] and partition not in board.held[member]
                    for partition in board.ranges[topic]
                )
                for topic in board.wants[member]
            )
            for member in self._in_play
        )

    def _topic_of(self, partition: int) -> int:
        return self._board.topic_number[self._board.partitions[partition][0]]

    def _pool(self, topic: int) -> Pool:
        """Those of the members in play that want ``topic``; topics with the same subscribers share one pool."""
        if topic not in self._pools_of_topic:
            members = tuple([member for member in self._board.subscribers[topic] if member in self._playing])
            if members not in self._pools:
                self._pools[members] = pool = Pool(members, self._board.sizes)
                for member in dict.fromkeys(members):
                    self._pools_of_member[member].append(pool)
            self._pools_of_topic[topic] = self._pools[members]
        return self._pools_of_topic[topic]
