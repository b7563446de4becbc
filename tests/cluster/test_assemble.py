"""A cluster with its first topics and its layers, and what goes through a layer."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from groupcoord.cluster.assemble import Assembly, InvalidTopicError, assemble
from groupcoord.cluster.layer import Layer, ServedCluster, earlier
from groupcoord.config.broker_config import load
from groupcoord.core.background_work import BackgroundWork, OnWorkDone, SubmitWork
from groupcoord.core.effects import Call, Effect, NoReply, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.storage.file_storage_backend import DataDirectory
from tests.testing.trace.stage import Counting

HEARTBEAT = APIS[ApiKey.HEARTBEAT]
CALL = Call(1, 1, HEARTBEAT, 4, "a", "/127.0.0.1")


def assembled(**settings: Any) -> Assembly:
    return assemble(load(dev=True), random=Counting(), now_ms=0, **settings)


class Marking(Layer):
    """Notes its name on every answer that it lets out."""

    def __init__(self, inner: Any, name: str) -> None:
        super().__init__(inner)
        self.name = name

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        return [
            effect._replace(response=f"{effect.response} {self.name}@{now_ms}") if isinstance(effect, Reply) else effect
            for effect in effects
        ]


class FakeCore:
    """Answers in every way there is."""

    def __init__(self) -> None:
        self.config = load(dev=True)
        self.address: tuple[str, int, int] | None = None
        self.submit: SubmitWork | None = None
        self.put_off: list[Effect] = []

    def listening_at(self, host: str, port: int, listener: int = 0) -> None:
        self.address = host, port, listener

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        return [Reply(call, "handled")]

    def expire(self, now_ms: int) -> list[Effect]:
        return [Reply(CALL, "expired")]

    def flush(self, now_ms: int) -> list[Effect]:
        return self.put_off

    def next_deadline(self) -> int | None:
        return 7

    def deadline_lower_bound(self) -> int | None:
        return 6

    def batch_rounds(self, *, batches: bool) -> None:
        self.batches = batches

    def use_worker(self, submit: SubmitWork | None) -> None:
        self.submit = submit


def answers(effects: list[Effect]) -> list[str]:
    return [effect.response for effect in effects if isinstance(effect, Reply)]


def test_a_layer_passes_everything_on_and_sees_every_effect() -> None:
    core = FakeCore()
    layer = Marking(Marking(core, "inner"), "outer")
    assert layer.config is core.config
    layer.listening_at("h", 1, 2)
    assert core.address == ("h", 1, 2)
    assert (layer.next_deadline(), layer.deadline_lower_bound()) == (7, 6)
    assert answers(layer.handle(CALL, None, 1)) == ["handled inner@1 outer@1"]
    assert answers(layer.expire(2)) == ["expired inner@2 outer@2"]
    assert layer.flush(3) == []
    core.put_off = [Reply(CALL, "flushed")]
    assert answers(layer.flush(3)) == ["flushed inner@3 outer@3"]

    done: list[OnWorkDone] = []

    def submit(call: Call | None, work: BackgroundWork[Any], then: OnWorkDone) -> None:
        done.append(then)

    layer.use_worker(submit)
    assert core.submit is not None
    core.submit(CALL, iter(()), lambda result, now_ms: [Reply(CALL, result)])  # type: ignore[arg-type] # never run
    assert answers(done[0]("worked", 4)) == ["worked inner@4 outer@4"]
    layer.use_worker(None)
    assert core.submit is None


def test_a_layer_that_changes_nothing() -> None:
    effects: list[Effect] = [NoReply(CALL)]
    assert Layer(FakeCore()).outgoing(effects, 0) is effects


def test_the_first_topics_are_there() -> None:
    assembly = assembled(topics=[("orders", 6)])
    assert assembly.core.broker.topics.partition_count("orders") == 6
    with pytest.raises(InvalidTopicError, match="already exists") as raised:
        assembled(topics=[("orders", 6), ("orders", 6)])
    assert raised.value.topic == "orders"


def test_a_topic_has_as_many_partitions_as_kafka_creates_at_once() -> None:
    with pytest.raises(InvalidTopicError, match="no topic of 10000 partitions at once, but 9999 at most"):
        assembled(topics=[("orders", 10_000)])
    configs = {"orders": {"retention.ms": "1"}}
    with pytest.raises(InvalidTopicError, match="no topic of 9999 partitions at once, but 9998 at most"):
        assembled(topics=[("orders", 9_999)], topic_configs=configs)


@pytest.mark.slow
def test_a_topic_that_is_kept_stays_and_another_count_of_partitions_is_refused(tmp_path: Path) -> None:
    def kept(*topics: tuple[str, int]) -> Assembly:
        with closing(DataDirectory(tmp_path, load(dev=True), new_uuid=Counting().uuid, now_ms=0)) as storage:
            return assembled(topics=topics, storage=storage)

    kept(("orders", 6), ("one", 1))
    assert kept(("orders", 6)).core.broker.topics.partition_count("one") == 1
    with pytest.raises(InvalidTopicError, match="kept with 6 partitions and asked for with 7; ask for 6 to take it"):
        kept(("orders", 7))
    with pytest.raises(InvalidTopicError, match="kept with 1 partition and asked for with 2"):
        kept(("one", 2))


def test_layers_stand_in_the_order_in_which_they_are_added() -> None:
    assembly = assembled(brokers=1)
    first: ServedCluster = assembly.core
    assert assembly.served is first
    inner = assembly.add(lambda core: Marking(core, "inner"))
    outer = assembly.add(lambda core: Marking(core, "outer"))
    assert outer.inner is inner
    assert assembly.served is outer
    effects: list[Effect] = [Reply(CALL, "moved")]
    assert answers(assembly.outgoing(effects, 5)) == ["moved inner@5 outer@5"]
    assert answers(assembly.outgoing(effects, 5, after=inner)) == ["moved outer@5"]
    assert assembly.outgoing(effects, 5, after=outer) is effects
    assert assembly.brokers is assembly.core.broker.cluster


def test_the_earlier_of_two_deadlines() -> None:
    assert (earlier(1, 2), earlier(2, 1), earlier(None, 2), earlier(1, None), earlier(None, None)) == (1, 1, 2, 1, None)
