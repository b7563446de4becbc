"""A producer's Sender without a network; the test sees its requests and chooses their results."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import ClientError, DisconnectedError
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.record_accumulator import PartitionLeader
from groupcoord.client.producer.sender import (
    Action,
    BatchDone,
    Connect,
    GetProducerId,
    RefreshMetadata,
    SendBatches,
    Sender,
)
from groupcoord.client.producer.transaction_manager import TransactionManager
from groupcoord.client.trouble_log import TroubleLog
from groupcoord.core.events import Event
from groupcoord.protocol.apis.init_producer_id import InitProducerIdResponse
from groupcoord.protocol.apis.produce import PartitionProduceResponse
from groupcoord.protocol.errors import ErrorCode


class Sending:
    """A sender for topic ``t``. Brokers can be connected to and give producer id 5, unless told otherwise."""

    def __init__(
        self,
        *,
        partitions: int = 1,
        transactions: TransactionManager | None = None,
        chance: Callable[[], float] = lambda: 0.5,
        **settings: Any,
    ) -> None:
        self.events: list[Event] = []
        self.now_ms = 0
        self.connects = self.gives_ids = True
        self.refreshes: list[frozenset[str]] = []
        self.done: list[BatchDone] = []
        self.sent: list[SendBatches] = []
        self.asked_for_id: list[GetProducerId] = []
        self.connecting: list[int] = []
        self._values = count()
        self.sender = Sender(
            ProducerConfig.of({"linger_ms": 0, **settings}),
            client_id="p",
            chance=chance,
            emit=self.events.append,
            transactions=transactions,
            troubles=TroubleLog("p", now_ms=lambda: self.now_ms, listen=self.events.append),
        )
        self.lead(dict.fromkeys(range(partitions), 1))

    def lead(self, leaders: Mapping[int, int], epoch: int = 0) -> None:
        self.sender.accumulator.set_leaders(
            "t", {number: PartitionLeader(node, epoch) for number, node in leaders.items()}
        )

    def append(self, partition: int | None = 0, records: int = 1) -> int:
        """Add that many records; the number of the last one, which is its promise."""
        number = -1
        for _ in range(records):
            number = next(self._values)
            value = b"%d" % number
            assert self.sender.append("t", partition, 0, None, value, (), number, self.now_ms) is not None
        return number

    def poll(self, now_ms: int | None = None) -> list[SendBatches]:
        """Let time pass; what is sent then."""
        self.now_ms = self.now_ms if now_ms is None else now_ms
        sent: list[SendBatches] = []
        going_on = True
        while going_on:
            actions = self.sender.poll(self.now_ms)
            for action in actions:
                self._act(action, sent)
            going_on = any(not isinstance(action, RefreshMetadata) for action in actions)
        self.sent += sent
        return sent

    def _act(self, action: Action, sent: list[SendBatches]) -> None:
        match action:
            case SendBatches():
                sent.append(action)
            case Connect(node_id):
                self.connecting.append(node_id)
                if self.connects:
                    self.sender.connected(node_id, self.now_ms)
            case GetProducerId():
                self.asked_for_id.append(action)
                if self.gives_ids:
                    self.give_id(5)
            case RefreshMetadata(topics):
                self.refreshes.append(topics)
            case BatchDone():
                self.done.append(action)

    def give_id(self, producer_id: int, code: ErrorCode = ErrorCode.NONE) -> None:
        response = InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=0)
        self.sender.producer_id_given(response, self.now_ms)

    def answer(
        self, sent: SendBatches, code: ErrorCode = ErrorCode.NONE, *, base_offset: int = 0, log_start_offset: int = -1
    ) -> list[SendBatches]:
        """All batches of ``sent`` are answered so; what is sent then."""
        answers = {
            batch.partition: answered(batch.partition, code, base_offset, log_start_offset) for batch in sent.batches
        }
        self.sender.produced(sent, answers, self.now_ms)
        return self.poll()

    def lose(self, sent: SendBatches, error: ClientError | None = None) -> list[SendBatches]:
        """The answer to ``sent`` does not come; what is sent then."""
        self.sender.request_failed(sent, error or DisconnectedError("it is gone"), self.now_ms)
        return self.poll()

    def texts(self, *kinds: type[Event]) -> list[str]:
        """The texts of the events of these kinds, or all."""
        return [event.text() for event in self.events if not kinds or isinstance(event, kinds)]


def answered(
    partition: TopicPartition, code: ErrorCode, base_offset: int = 0, log_start_offset: int = -1
) -> PartitionProduceResponse:
    """What a broker says of a partition."""
    return PartitionProduceResponse(
        index=partition[1],
        error_code=code,
        base_offset=-1 if code else base_offset,
        log_start_offset=log_start_offset,
        error_message=None,
    )


def sequences(sent: list[SendBatches]) -> list[tuple[int, int, int]]:
    """(epoch, base sequence, records) of each batch."""
    return [(batch.producer_epoch, batch.base_sequence, batch.record_count) for each in sent for batch in each.batches]
