"""Generates the replication examples in docs/brokers.md: stories of three brokers, drawn from their traces."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import cache

import groupcoord as gc
from groupcoord.core.events import Event
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.broker_and_controller_handles import ClusterBroker

TOPIC = "orders"
_TIMEOUT_MS = 60_000


class _Told:
    """A cluster of three with one partition, and what happens in it as lines of a sequence diagram."""

    def __init__(self, kafka: gc.Cluster) -> None:
        self.kafka = kafka
        self.lines: list[str] = []
        self._seen = kafka.trace.last_seq
        self._writing: set[asyncio.Task[None]] = set()

    @property
    def leader(self) -> int:
        """Who leads now."""
        return self.kafka.core.broker.topics[TOPIC].metadata.leaders[0]

    @property
    def followers(self) -> list[int]:
        """The others."""
        return [one for one in self.kafka.brokers if one != self.leader]

    async def write(self, value: str, acks: int) -> None:
        """A producer writes a record at the leader; what it is answered is told when it comes."""
        to = self.leader
        self.lines.append(f"producer->>b{to}: {value}, acks={'all' if acks == -1 else acks}")
        task = asyncio.ensure_future(self._answered(value, acks, to))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        await self.look()

    async def _answered(self, value: str, acks: int, to: int) -> None:
        records = bytes(build_batch([Record(0, self.kafka.clock.now_ms(), None, value.encode())]))
        data = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=records),))
        request = ProduceRequest(acks=acks, timeout_ms=_TIMEOUT_MS, topic_data=(data,))
        try:
            answer: ProduceResponse = await self.kafka.ask_broker(to, request, version=9)
        except ConnectionResetError:
            answered = f"b{to}--xproducer: {value}: the connection is closed"
        else:
            (partition,) = answer.responses[0].partition_responses
            error = ErrorCode(partition.error_code)
            outcome = f"is at offset {partition.base_offset}" if error is ErrorCode.NONE else error.name
            answered = f"b{to}-->>producer: {value} {outcome}"
        self._take_events()
        self.lines.append(answered)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.lines.append(f"Note over producer,b3: {seconds:g} s pass")
        await self.kafka.clock.advance(seconds)
        await self.look()

    async def act(self, action: Callable[[ClusterBroker], Awaitable[None]], broker: int, text: str) -> None:
        """Something is done to a broker."""
        self.lines.append(f"Note over b{broker}: {text}")
        await action(self.kafka.broker(broker))
        await self.look()

    async def look(self) -> None:
        """Tell what has happened."""
        await self.kafka.settle()
        self._take_events()

    async def read(self) -> None:
        """What consumers are given at the end."""
        values = ", ".join(record.value.decode() for record in await self.kafka.records(TOPIC)) or "nothing"
        self.lines.append(f"Note over producer,b3: consumers read {values}")

    def _take_events(self) -> None:
        for entry in self.kafka.trace.after(self._seen):
            self._seen = entry.seq
            self.lines += _lines_of(entry.event)


def _lines_of(event: Event) -> Iterator[str]:
    match event:
        case gc.events.ReplicaFetched(topic=topic) if topic == TOPIC:
            follower, leader = f"b{event.follower}", f"b{event.leader}"
            yield f"{follower}->>{leader}: Fetch from {event.offset} in epoch {event.epoch}"
            yield f"{leader}-->>{follower}: up to {event.end_offset}, high watermark {event.high_watermark}"
        case gc.events.IsrChanged(topic=topic) if topic == TOPIC:
            yield f"Note over b1,b3: in sync: {_ids(event.isr)}"
        case gc.events.LeaderChanged(topic=topic) if topic == TOPIC:
            who = "nobody leads" if event.leader < 0 else f"broker {event.leader} leads"
            yield f"Note over b1,b3: {who} in epoch {event.epoch}, in sync: {_ids(event.isr)}"
        case gc.events.LogTruncated(topic=topic) if topic == TOPIC:
            yield f"Note over b{event.broker}: gives up {event.lost} from offset {event.offset} on"
        case gc.events.BrokerStateChanged(state="fenced"):
            yield f"Note over b{event.broker}: fenced by the controller"


def _ids(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers)) or "none"


async def _falls_out(told: _Told) -> None:
    slow = told.followers[0]
    await told.act(ClusterBroker.pause_replication, slow, "does not replicate from now on")
    await told.write("espresso", -1)
    await told.pass_time(30)
    await told.write("lungo", -1)
    await told.act(ClusterBroker.resume_replication, slow, "replicates again")


def _leader_dies(acks: int) -> Callable[[_Told], Awaitable[None]]:
    async def story(told: _Told) -> None:
        await told.write("espresso", -1)
        old, followers = told.leader, told.followers
        for follower in followers:
            await told.act(ClusterBroker.pause_replication, follower, "does not replicate from now on")
        await told.write("lungo", acks)
        await told.act(ClusterBroker.kill, old, "dies")
        for follower in followers:
            await told.act(ClusterBroker.resume_replication, follower, "replicates again")
        await told.pass_time(9)
        await told.act(ClusterBroker.start, old, "starts again")

    return story


async def _unclean(told: _Told) -> None:
    slow, other = told.followers
    await told.act(ClusterBroker.pause_replication, slow, "does not replicate from now on")
    await told.write("espresso", -1)
    await told.pass_time(30)
    await told.act(ClusterBroker.kill, other, "dies")
    await told.pass_time(9)
    old = told.leader
    await told.act(ClusterBroker.kill, old, "dies")
    await told.act(ClusterBroker.resume_replication, slow, "replicates again")
    await told.pass_time(9)
    await told.act(ClusterBroker.start, old, "starts again")


@cache
def _drawn(story: Callable[[_Told], Awaitable[None]], *, unclean: bool = False) -> str:
    async def tell() -> list[str]:
        config = {"default.replication.factor": 3, "unclean.leader.election.enable": unclean}
        async with gc.Cluster(brokers=3, topics={TOPIC: 1}, config=config, clock="manual") as kafka:
            told = _Told(kafka)
            await story(told)
            await told.read()
            return told.lines

    participants = ["producer", *(f"b{broker} as broker {broker}" for broker in (1, 2, 3))]
    lines = ["sequenceDiagram", *(f"    participant {name}" for name in participants)]
    lines += [f"    {line}" for line in asyncio.run(tell())]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def follower_falls_out() -> str:
    """A follower falls out of the ISR, and comes back."""
    return _drawn(_falls_out)


def leader_dies_acks_1() -> str:
    """A leader dies after it has acknowledged what nobody else has."""
    return _drawn(_DIES_ACKS_1)


def leader_dies_acks_all() -> str:
    """A leader dies before its followers have a record."""
    return _drawn(_DIES_ACKS_ALL)


def unclean_election() -> str:
    """A replica leads that was not in sync."""
    return _drawn(_unclean, unclean=True)


_DIES_ACKS_1, _DIES_ACKS_ALL = _leader_dies(1), _leader_dies(-1)
