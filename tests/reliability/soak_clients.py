"""What the clients of a soak do, one thing after the other, each with groups, members and producers that nobody had before."""

import random
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from groupcoord.protocol.apis.consumer_group_heartbeat import TopicPartitions
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListGroupsRequest,
    TxnOffsetCommitRequest,
)
from tests.conformance.batches import Rec, batch
from tests.reliability.requests import (
    NEWEST_JOIN,
    Membership,
    commit,
    commit_errors,
    create,
    delete,
    fetch,
    fetched,
    join,
    joined,
    produce,
    refused,
    stored,
)
from tests.reliability.talk import Address, Talk, frame_of

TOPIC, QUIET = "orders", "quiet"
PARTITIONS = 4
_SESSION_MS = 10_000  # longer than a busy machine lets a client wait
_NEVER_MS = 1 << 30
_LEAVE_EPOCH = -1
_OF_TRANSACTIONS = 1
_TRANSACTION_MS = 10_000
_PATIENCE_S = 30.0
_TRY_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Unexpected(AssertionError):
    """A request was answered with another error than it should be."""


class Clients:
    """They come and go; some do not come back."""

    def __init__(self, address: Address, chance: random.Random) -> None:
        self.answers = 0
        """How many requests have been answered."""
        self._address = address
        self._chance = chance
        self._number = 0
        self._topics: list[str] = []
        self._talk = self._connected()
        self._deeds: tuple[Callable[[str], object], ...] = (
            self.lives,
            self.vanishes,
            self.never_comes_back,
            self.lives_in_a_consumer_group,
            self.vanishes_from_a_consumer_group,
            self.commits_once,
            self.commits_again,
            self.deletes_its_group,
            self.looks_around,
            self.produces,
            self.fetches,
            self.waits_and_vanishes,
            self.transacts,
            self.leaves_a_transaction_open,
            self.is_refused,
            self.is_no_client,
            self.makes_topics,
        )

    @property
    def kinds(self) -> int:
        """How many kinds of deeds there are."""
        return len(self._deeds)

    def act(self) -> None:
        """One of them does something. Raises OSError and Unexpected."""
        self._number += 1
        self._chance.choice(self._deeds)(f"new-{self._number}")

    def groups(self) -> int:
        """How many groups there are."""
        return len(self._talk.ask(ListGroupsRequest()).groups)

    def close(self) -> None:
        """Close the connection that they share."""
        self._talk.close()

    # --- classic groups

    def lives(self, name: str) -> None:
        """Joins a group that nobody has heard of, and leaves it."""
        member = self._joins(self._talk, name)
        _expect(self._talk.ask(member.leave()).error_code)

    def vanishes(self, name: str) -> None:
        """Joins, commits, and is not heard of any more."""
        with self._connected() as talk:
            member = self._joins(talk, name)
            commits = replace(
                commit(name, TOPIC, {0: 1}),
                member_id=member.member_id,
                generation_id_or_member_epoch=member.generation,
            )
            _expect(*commit_errors(talk.ask(commits)))

    def never_comes_back(self, name: str) -> None:
        """Is given a member id, and that was all."""
        answer = self._talk.ask(join(name, 30_000, rebalance_ms=_NEVER_MS), NEWEST_JOIN)
        _expect(answer.error_code, wanted=ErrorCode.MEMBER_ID_REQUIRED)

    def _joins(self, talk: Talk, group: str) -> Membership:
        """As its client would, it joins anew if the group was cleaned away before it came back with its id."""
        member = joined(talk, group, _SESSION_MS, _NEVER_MS)
        if (error := talk.ask(member.heartbeat()).error_code) == ErrorCode.UNKNOWN_MEMBER_ID:
            member = joined(talk, group, _SESSION_MS, _NEVER_MS)
            error = talk.ask(member.heartbeat()).error_code
        _expect(error)
        return member

    # --- consumer groups (KIP-848)

    def lives_in_a_consumer_group(self, name: str) -> None:
        """Joins, has its partitions, and leaves."""
        member_id, _ = self._joins_consumer_group(self._talk, name)
        leaves = ConsumerGroupHeartbeatRequest(group_id=name, member_id=member_id, member_epoch=_LEAVE_EPOCH)
        _expect(self._talk.ask(leaves).error_code)

    def vanishes_from_a_consumer_group(self, name: str) -> None:
        """Joins, commits, and is not heard of any more."""
        with self._connected() as talk:
            member_id, epoch = self._joins_consumer_group(talk, name)
            commits = replace(commit(name, TOPIC, {0: 1}), member_id=member_id, generation_id_or_member_epoch=epoch)
            _expect(*commit_errors(talk.ask(commits)))

    def _joins_consumer_group(self, talk: Talk, group: str) -> tuple[str, int]:
        """The member id and its epoch. It names the topic, or finds it by a regular expression that is its own."""
        names = self._chance.random() < 0.5
        joins = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=str(uuid.UUID(int=self._chance.getrandbits(128))),
            member_epoch=0,
            rebalance_timeout_ms=_NEVER_MS,
            subscribed_topic_names=(TOPIC,) if names else None,
            subscribed_topic_regex=None if names else f"{TOPIC}|of-{group}",
            topic_partitions=(),
        )
        answer = talk.ask(joins)
        _expect(answer.error_code)
        given = answer.assignment.topic_partitions if answer.assignment is not None else ()
        owned = tuple(TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions) for topic in given)
        has = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=joins.member_id, member_epoch=answer.member_epoch, topic_partitions=owned
        )
        answer = talk.ask(has)
        _expect(answer.error_code)
        return joins.member_id, answer.member_epoch

    # --- offsets, and groups of any kind

    def commits_once(self, name: str) -> None:
        """Commits for a group that nobody joins."""
        self._commits(name, dict.fromkeys(range(PARTITIONS), 7))

    def commits_again(self, _: str) -> None:
        """Commits for one of a few groups that stay."""
        self._commits(f"stays-{self._chance.randrange(20)}", {0: self._chance.randrange(1 << 40)})

    def deletes_its_group(self, name: str) -> None:
        """Commits for a group that nobody joins, and deletes it."""
        self._commits(name, {0: 1})
        deletes = DeleteGroupsRequest(groups_names=(name,))
        _expect(*(result.error_code for result in self._talk.ask(deletes).results))

    def looks_around(self, name: str) -> None:
        """Describes groups that there are, and one that there is not."""
        self._talk.ask(DescribeGroupsRequest(groups=("stays-0", name)))
        self._talk.ask(ConsumerGroupDescribeRequest(group_ids=("stays-0", name)))

    def _commits(self, group: str, offsets: dict[int, int]) -> None:
        _expect(*commit_errors(self._talk.ask(commit(group, TOPIC, offsets))))

    # --- records

    def produces(self, _: str) -> None:
        """Writes one batch with a producer id of its own."""
        producer = self._talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000))
        _expect(producer.error_code)
        data = batch([self._record()], producer=(producer.producer_id, producer.producer_epoch, 0))
        _expect(stored(self._talk.ask(produce(TOPIC, {self._partition(): data}))).error_code)

    def fetches(self, _: str) -> None:
        """Opens a session, reads in it, and forgets it."""
        partition = self._partition()
        answer = self._talk.ask(fetch(TOPIC, partition, session=(0, 0)))
        _expect(fetched(answer).error_code, wanted=(ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE))
        self._talk.ask(fetch(TOPIC, partition, session=(answer.session_id, 1)))

    def waits_and_vanishes(self, _: str) -> None:
        """Asks for more than comes, and does not wait for it."""
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
        topics = (FetchTopic(topic=QUIET, partitions=(wanted,)),)
        with self._connected() as talk:
            talk.send(FetchRequest(max_wait_ms=20_000, min_bytes=1 << 30, topics=topics))

    def _record(self) -> Rec:
        return Rec(self._chance.randbytes(1_000), b"k", time.time_ns() // 1_000_000)

    def _partition(self) -> int:
        return self._chance.randrange(PARTITIONS)

    # --- transactions

    def transacts(self, name: str) -> None:
        """Writes a record and an offset of a group in a transaction, and commits or aborts it."""
        producer_id, epoch = self._begins(name)
        ends = EndTxnRequest(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self._chance.random() < 0.5,
        )
        self._until_done(ends)

    def leaves_a_transaction_open(self, name: str) -> None:
        """The same, but it does not end it: the coordinator does when its time is over."""
        self._begins(name)

    def _begins(self, name: str) -> tuple[int, int]:
        """The producer's id and epoch."""
        finds = FindCoordinatorRequest(key_type=_OF_TRANSACTIONS, coordinator_keys=(name,))
        self._until_done(finds, lambda answer: answer.coordinators[0].error_code)
        asks = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=_TRANSACTION_MS)
        answer = self._until_done(asks)
        producer = answer.producer_id, answer.producer_epoch
        data = batch([self._record()], attributes=TRANSACTIONAL, producer=(*producer, 0))
        writes = replace(produce(TOPIC, {self._partition(): data}), transactional_id=name)
        self._until_done(writes, lambda answer: stored(answer).error_code)
        offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        commits = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(offset,)),),
        )
        self._until_done(commits, lambda answer: answer.topics[0].partitions[0].error_code)
        return producer

    def _until_done(self, request: Any, error_of: Callable[[Any], int] = lambda answer: answer.error_code) -> Any:
        """Ask until the answer is another than that it has to wait. Raises Unexpected if that is an error."""
        deadline = time.monotonic() + _PATIENCE_S
        while (error := error_of(answer := self._talk.ask(request))) in _TRY_AGAIN and time.monotonic() < deadline:
            pass
        _expect(error)
        return answer

    # --- the others

    def is_refused(self, name: str) -> None:
        """Is no member of any group."""
        for group in (name, "stays-0"):
            _expect(refused(self._talk, group, name), wanted=ErrorCode.UNKNOWN_MEMBER_ID)

    def is_no_client(self, _: str) -> None:
        """Sends something else, or half of a request."""
        frame = frame_of(Membership("g", 1, "m").heartbeat())
        broken = self._chance.choice((b"GET / HTTP/1.1\r\n\r\n", frame[:-3], b"\0\0\0\4\x7f\xff\0\0"))
        with socket.create_connection(self._address) as stranger:
            stranger.sendall(broken)

    def makes_topics(self, name: str) -> None:
        """Creates a topic, and deletes the one before the last."""
        _expect(self._talk.ask(create(name, 2)).topics[0].error_code)
        self._topics.append(name)
        if len(self._topics) > 2:
            _expect(self._talk.ask(delete(self._topics.pop(0))).responses[0].error_code)

    def _connected(self) -> Talk:
        return _CountedTalk(self._address, self)


class _CountedTalk(Talk):
    """A connection whose answers are counted."""

    def __init__(self, address: Address, clients: Clients) -> None:
        super().__init__(address)
        self._clients = clients

    def answer(self) -> Any:
        answer = super().answer()
        self._clients.answers += 1
        return answer


def _expect(*errors: int, wanted: ErrorCode | tuple[ErrorCode, ...] = ErrorCode.NONE) -> None:
    """Raises Unexpected unless each of ``errors`` is ``wanted``, or one of these."""
    may_be = wanted if isinstance(wanted, tuple) else (wanted,)
    for error in errors:
        if error not in may_be:
            names = " or ".join(one.name for one in may_be)
            raise Unexpected(f"the error is {ErrorCode(error).name}, and not {names}")
