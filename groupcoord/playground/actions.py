"""The actions of the playground: each public method of ``Actions`` is an action, and its arguments are JSON."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from groupcoord.assignors import TopicPartition
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.playground.socketless_cluster import SocketlessCluster
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.faults.api import AsyncRule
from groupcoord.testing.faults.rule import Rule
from groupcoord.testing.manual_producer import ManualProducer
from groupcoord.testing.waiting import WaitTimeoutError

T = TypeVar("T")

MOST_RECORDS = 1_000
"""The most records of one produce action."""
MOST_MEMBERS = 50
MOST_SECONDS = 86_400 * 30
TRIES = 3
"""How often InitProducerId is tried while a transaction of the earlier producer is being aborted."""


class ActionError(ValueError):
    """An action is not possible; the text says what is wrong, and what would be right."""


@dataclasses.dataclass
class MemberProcess:
    """A member, and the status of its process: ``running``, ``not polling``, ``paused``, ``killed`` or ``closed``."""

    member: AutoMember
    protocol: str
    assignors: Sequence[str]
    status: str = "running"


@dataclasses.dataclass
class ProducerProcess:
    """A transactional producer, and the status of its process: ``running`` or ``killed``."""

    producer: ManualProducer
    status: str = "running"


class Actions:
    """The actions on ``cluster``, which has been started. All raise ValueError, which says what would be right.

    Members and producers are named by client id. Actions that send a request return its result, or None if there is no
    response yet.
    """

    def __init__(self, cluster: SocketlessCluster) -> None:
        self._cluster = cluster
        self.members: dict[str, MemberProcess] = {}
        """The members by name, in the order in which they were added."""
        self.producers: dict[str, ProducerProcess] = {}
        """The transactional producers by name."""
        self.rules: dict[str, AsyncRule] = {}
        """The fault rules by name."""

    # Topics and records.

    async def create_topic(self, topic: str, partitions: int = 6) -> None:
        """Create a topic."""
        await self._cluster.create_topic(topic, partitions)

    async def add_partitions(self, topic: str, more: int = 1) -> None:
        """Add partitions to a topic; the leader of a classic group notices when it refreshes its metadata."""
        await self._cluster.add_partitions(topic, more)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic, and the offsets committed for it."""
        await self._cluster.delete_topic(topic)

    async def produce(self, topic: str, partition: int = 0, count: int = 1) -> None:
        """Produce records to a partition."""
        _require(count, 1, MOST_RECORDS, "count", "records")
        await self._cluster.produce(topic, *_values(count), partition=partition)

    # Members.

    async def add_member(
        self,
        group: str,
        topics: list[str],
        protocol: Literal["classic", "consumer"] = "classic",
        assignors: list[Literal["range", "roundrobin", "sticky", "cooperative-sticky"]] | None = None,
        remote_assignor: Literal["uniform", "range"] | None = None,
        instance_id: str | None = None,
        name: str | None = None,
        session_timeout_ms: int | None = None,
        max_poll_interval_ms: int = 300_000,
        auto_commit: bool = True,
    ) -> None:
        """Start a consumer, which joins the group.

        ``assignors`` (partition.assignment.strategy; range unless given) and ``session_timeout_ms`` (45,000) are of the classic
        protocol, ``remote_assignor`` is of the ``consumer`` protocol (KIP-848). With an ``instance_id`` it is a static member
        (KIP-345).
        """
        if len(self.members) >= MOST_MEMBERS:
            raise ActionError(f"there are {MOST_MEMBERS} members already, and a playground has no more")
        self._require_new(name)
        options: dict[str, Any] = {"remote_assignor": remote_assignor, "session_timeout_ms": session_timeout_ms}
        self._cluster.next_name = name
        (member,) = await self._cluster.consumers(
            1,
            group,
            topics,
            protocol=protocol,
            assignors=assignors,
            instance_ids=None if instance_id is None else [instance_id],
            max_poll_interval_ms=max_poll_interval_ms,
            auto_commit=auto_commit,
            **{name: value for name, value in options.items() if value is not None},
        )
        offered = [] if protocol == "consumer" else assignors or ["range"]
        self.members[member.client_id] = MemberProcess(member, protocol, offered)

    async def leave(self, member: str) -> None:
        """Close the consumer: it commits its position, and sends LeaveGroup unless it is a static member."""
        process = self._alive(member)
        process.member.leave("the consumer is being closed")
        process.status = "closed"

    async def kill(self, member: str) -> None:
        """Kill the process of the consumer, as ``kill -9`` does."""
        process = self._alive(member)
        process.member.vanish()
        process.status = "killed"

    async def pause(self, member: str) -> None:
        """Pause the process of the consumer, as a long garbage collection does: it sends nothing and reads no responses."""
        process = self._alive(member)
        process.member.pause()
        process.status = "paused"

    async def resume(self, member: str) -> None:
        """Resume the paused process; it handles the responses that came meanwhile."""
        process = self._alive(member)
        if process.status != "paused":
            raise ActionError(f"member={member!r}: it is {process.status}, and only one that is paused goes on")
        process.member.resume()
        process.status = "running"

    async def stop_polling(self, member: str) -> None:
        """The application stops polling, while the heartbeats of its consumer go on until max.poll.interval.ms."""
        process = self._alive(member)
        process.member.be_busy()
        process.status = "not polling"

    async def poll(self, member: str) -> None:
        """The application polls again."""
        process = self._alive(member)
        process.member.poll()
        process.status = "running"

    async def subscribe(self, member: str, topics: list[str]) -> None:
        """Subscribe the consumer to other topics."""
        self._alive(member).member.subscribe(*topics)

    async def commit(self, member: str, offsets: dict[str, int] | None = None) -> Any:
        """OffsetCommit with its member id and generation; without ``offsets``, it commits the end of each of its partitions."""
        process = self._alive(member)
        said: list[Any] = []
        wanted = self._ends_of(process.member) if offsets is None else partitions_of(offsets)
        process.member.commit(wanted, said.append)
        await self._cluster.settle()
        return _codes(said[0]) if said else None

    # The network.

    async def add_rule(self, rule: dict[str, Any], name: str | None = None) -> None:
        """Add a fault rule, as docs/faults.md describes it."""
        made = Rule.from_dict(rule)
        if made.holds:
            raise ActionError(f"do={made.action.name!r}: needs a program that releases; delay and drop do without")
        name = name or f"rule {len(self.rules) + 1}"
        if name in self.rules:
            raise ActionError(f"name={name!r}: there is a rule of that name already")
        self.rules[name] = self._cluster.faults.add(made, name)

    async def remove_rule(self, name: str) -> None:
        """Remove a fault rule."""
        _found(self.rules, name, "name", "rule").remove()
        del self.rules[name]

    # Time.

    async def advance(self, seconds: float) -> None:
        """Advance the clock; every timer that expires runs at its own time."""
        _require(seconds, 0, MOST_SECONDS, "seconds", "seconds")
        await self._cluster.clock.advance(seconds)

    async def advance_to_next_deadline(self, group: str | None = None) -> None:
        """Advance the clock to the coordinator's next deadline: a session timeout, the end of a join phase …"""
        try:
            await self._cluster.clock.advance_to_next(group=group)
        except WaitTimeoutError as problem:
            raise ActionError(str(problem)) from None

    async def advance_until_stable(self, group: str) -> str | None:
        """Advance the clock until the group is Stable and all its members have their assignments; after ten minutes the answer
        says what is missing."""
        seen = self._cluster.group(group)

        def settled() -> bool:
            now = seen.description()
            number = now.epoch if now.type == "consumer" else now.generation
            assigned = now.assignment
            members = [each.member for each in self.members.values() if each.member.group == group]
            return now.state == "Stable" and all(
                each.member_id not in assigned or (each.generation == number and each.is_stable) for each in members
            )

        try:
            await self._cluster.clock.advance_until(settled, timeout=600)
        except WaitTimeoutError:
            return f"not stable within ten minutes: {seen.description().text()}"
        return None

    # Brokers and coordinators.

    async def kill_broker(self, broker: int) -> None:
        """Kill a broker; when its session expires (9 s), others become leaders of its partitions."""
        await self._cluster.broker(broker).kill()

    async def stop_broker(self, broker: int) -> None:
        """Shut a broker down cleanly: others become leaders of its partitions at once."""
        await self._cluster.broker(broker).stop()

    async def start_broker(self, broker: int) -> None:
        """Start a broker again that was killed or stopped, with its data."""
        await self._cluster.broker(broker).start()

    async def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make another broker the leader of a partition, in the next leader epoch."""
        await self._cluster.move_leader(topic, partition, to)

    async def move_coordinator(self, group: str, to: int) -> None:
        """Make another broker the coordinator of a group: it becomes the leader of the group's partition of
        ``__consumer_offsets`` and loads it."""
        await self._cluster.group(group).move_coordinator(to)

    async def unload_coordinator(self, group: str) -> None:
        """Unload the coordinator of the group: requests get NOT_COORDINATOR until it is loaded again."""
        await self._cluster.group(group).unload_coordinator()

    async def load_coordinator(self, group: str) -> None:
        """Load the coordinator of the group again, from its partition of ``__consumer_offsets``."""
        await self._cluster.group(group).load_coordinator()

    async def compact_offsets(self) -> None:
        """Roll the active segment of ``__consumer_offsets``, which is never compacted, and compact the log."""
        core, now_ms = self._cluster.core, self._cluster.clock.now_ms()
        topic = core.broker.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            raise ActionError(f"there is no {CONSUMER_OFFSETS}: it was deleted")
        for number, log in enumerate(topic.partitions):
            log.roll(now_ms)
            self._cluster.apply(core.compact(number, now_ms), f"compact {CONSUMER_OFFSETS}-{number}")

    # Transactions.

    async def add_producer(self, transactional_id: str, name: str | None = None, timeout_ms: int = 60_000) -> Any:
        """Start a transactional producer, which sends InitProducerId: an earlier producer with that transactional id is fenced.

        Like Kafka's client it retries while a transaction of the earlier producer is being aborted.
        """
        self._require_new(name)
        self._cluster.next_name = name
        producer = self._cluster.manual_producer(transactional_id)
        self.producers[producer.client_id] = ProducerProcess(producer)
        for _ in range(TRIES):
            answer = await self._answer(producer.init(transaction_timeout_ms=timeout_ms))
            if answer != ErrorCode.CONCURRENT_TRANSACTIONS.name:
                break
        return answer

    async def kill_producer(self, producer: str) -> None:
        """Kill the process of the producer; its open transaction stays open until its timeout."""
        found = self._sending(producer)
        found.producer.vanish()
        found.status = "killed"

    async def produce_in_transaction(self, producer: str, topic: str, partition: int = 0, count: int = 1) -> Any:
        """Produce records to a partition, in the producer's transaction."""
        _require(count, 1, MOST_RECORDS, "count", "records")
        sender = self._sending(producer).producer
        return await self._answer(sender.produce(topic, *_values(count), partition=partition))

    async def commit_in_transaction(
        self, producer: str, group: str, offsets: dict[str, int], member: str | None = None
    ) -> Any:
        """TxnOffsetCommit: commit offsets of a group with the producer's transaction, as a member of the group if one is named
        (KIP-447)."""
        sender = self._sending(producer).producer
        own = None if member is None else self._alive(member).member
        of_member = ("", -1) if own is None else (own.member_id, own.generation)
        return await self._answer(sender.commit_offsets(group, partitions_of(offsets), *of_member))

    async def end_transaction(self, producer: str, commit: bool = True) -> Any:
        """EndTxn: commit or abort the producer's transaction."""
        return await self._answer(self._sending(producer).producer.end(commit=commit))

    # Helpers.

    def _require_new(self, name: str | None) -> None:
        if name in self.members or name in self.producers or name == "":
            raise ActionError(f"name={name!r}: a client id that no other has")

    def _alive(self, name: str) -> MemberProcess:
        process = _found(self.members, name, "member", "member")
        if process.status in ("killed", "closed"):
            raise ActionError(f"member={name!r}: it was {process.status}, and does nothing any more")
        return process

    def _sending(self, name: str) -> ProducerProcess:
        found = _found(self.producers, name, "producer", "producer")
        if found.status == "killed":
            raise ActionError(f"producer={name!r}: it was killed")
        return found

    def _ends_of(self, member: AutoMember) -> dict[TopicPartition, int]:
        topics = self._cluster.core.broker.topics
        found = {(topic, number): topics.get(topic) for topic, number in member.assigned}
        return {
            partition: topic.partitions[partition[1]].high_watermark
            for partition, topic in found.items()
            if topic is not None
        }

    async def _answer(self, asked: "asyncio.Future[Any]") -> Any:
        await self._cluster.settle()
        if not asked.done():
            return None
        answer = asked.result()
        if isinstance(answer, Mapping):
            return _codes(answer)
        return ErrorCode(answer.error_code).name


def partitions_of(offsets: Mapping[str, int]) -> dict[TopicPartition, int]:
    """``{"orders-0": 5}`` as ``{("orders", 0): 5}``."""
    found = {}
    for name, offset in offsets.items():
        topic, _, number = name.rpartition("-")
        if not topic or not number.isdecimal():
            raise ActionError(f'offsets={dict(offsets)!r}: offsets by partition, such as {{"orders-0": 5}}')
        if offset < 0:
            raise ActionError(f"offsets={dict(offsets)!r}: an offset is 0 or more")
        found[topic, int(number)] = offset
    return found


def _codes(codes: Mapping[TopicPartition, ErrorCode]) -> dict[str, str]:
    return {f"{topic}-{number}": code.name for (topic, number), code in sorted(codes.items())}


def _values(count: int) -> list[bytes]:
    return [b"record %d" % number for number in range(count)]


def _require(value: float, least: int, most: int, name: str, what: str) -> None:
    if not least <= value <= most:
        raise ActionError(f"{name}={value!r}: {least:,} to {most:,} {what}")


def _found(named: Mapping[str, T], name: str, argument: str, what: str) -> T:
    found = named.get(name)
    if found is None:
        there = f"there is {', '.join(named)}" if named else "there is none yet"
        raise ActionError(f"{argument}={name!r}: no {what} is called so; {there}")
    return found
