"""What is sent when and why, what is sent again, and what is given up."""

from uuid import UUID

import pytest

from groupcoord.client.client_errors import BrokerError, ClientError, DisconnectedError
from groupcoord.client.producer import producer_events as e
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.producer_errors import DeliveryTimeoutError
from groupcoord.client.producer.sender import answers_by_partition, produce_request
from groupcoord.client.trouble_log import TroubleBegan, TroubleEnded
from groupcoord.core.events import AdminAction, Answered, TimerFired
from groupcoord.protocol.apis.produce import ProduceResponse, TopicProduceResponse
from groupcoord.protocol.errors import ErrorCode
from tests.client.producer.sending import Sending, answered, sequences

E = ErrorCode


def test_the_life_of_a_batch_step_by_step() -> None:
    it = Sending(linger_ms=5)
    it.append(None, records=2)
    assert it.poll() == []
    assert it.sender.next_deadline() == 5
    (sent,) = it.poll(5)
    it.answer(sent, base_offset=7)
    assert it.texts() == [
        "records of t without a key go to t-0 from now on",
        "batch 1 of t-0 is opened, for 16,384 bytes",
        "is producer 5 with epoch 0",
        "batch 1 of t-0 is sent to broker 1 because it has waited for linger_ms: 2 records, 77 bytes, sequence 0",
        "batch 1 of t-0 is acknowledged: 2 records from offset 7 on",
    ]
    causes = [event.cause for event in it.events]
    assert causes == [
        AdminAction("send"),
        AdminAction("send"),
        Answered("InitProducerId", "NONE"),
        TimerFired("lingered", "p", "t-0", 5),
        Answered("Produce", "NONE"),
    ]
    ((batch, offset, append_time_ms, error),) = it.done
    assert (batch.promises, offset, append_time_ms, error) == ([0, 1], 7, -1, None)
    assert it.sender.next_deadline() is None


def test_what_is_flushed_is_sent_because_of_that() -> None:
    it = Sending(linger_ms=5)
    it.append()
    it.sender.accumulator.flush()
    it.poll()
    assert it.events[-1].cause == AdminAction("somebody waits for all that was sent")


def test_without_a_trouble_log_what_is_lost_is_sent_again_too() -> None:
    it = Sending()
    it.sender._troubles = None
    it.append()
    (sent,) = it.poll()
    it.lose(sent)
    it.answer(it.poll(200)[0])
    assert not [event for event in it.events if isinstance(event, (TroubleBegan, TroubleEnded))]
    assert len(it.done) == 1


def test_who_listens_to_nothing_is_told_of_troubles_only() -> None:
    it = Sending(enable_idempotence=False)
    it.sender._tells_steps = False
    it.append()
    (sent,) = it.poll()
    it.lose(sent)
    it.answer(it.poll(200)[0])
    assert it.texts() == [
        "p: trouble with broker 1: it is gone",
        "p: trouble with t-0: NETWORK_EXCEPTION: it is gone",
        "p: no more trouble with broker 1, after 200 ms",
        "p: no more trouble with t-0, after 200 ms",
    ]


def test_as_many_requests_are_in_flight_as_may_be() -> None:
    it = Sending(max_in_flight_requests_per_connection=2)
    sent = []
    for _ in range(3):
        it.append()
        sent += it.poll()
    assert len(sent) == 2
    (third,) = it.answer(sent[0])
    assert sequences([third]) == [(0, 2, 1)]


def test_with_one_request_in_flight_a_partition_waits_for_its_answer() -> None:
    it = Sending(partitions=2, max_in_flight_requests_per_connection=1, enable_idempotence=False)
    it.append(0)
    (sent,) = it.poll()
    assert it.sender.accumulator.muted == {("t", 0)}
    it.append(0)
    assert it.answer(sent) != []


def test_there_is_no_answer_to_wait_for_with_acks_0() -> None:
    it = Sending(acks=0)
    it.append()
    (sent,) = it.poll()
    it.sender.produced(sent, None, 0)
    it.poll()
    assert it.done[0].base_offset == -1
    assert it.texts(e.BatchAcknowledged) == ["batch 1 of t-0 is acknowledged: 1 record"]
    assert it.texts(e.BatchSent)[0].endswith("1 record, 69 bytes")


# --- brokers and leaders


def test_a_broker_that_cannot_be_reached_is_tried_again_and_told_of_once() -> None:
    it = Sending()
    it.connects = False
    it.append()
    it.poll()
    it.sender.connection_failed(1, DisconnectedError("127.0.0.1:1 cannot be reached"), 0)
    it.poll()
    assert it.sender.next_deadline() == 50
    it.poll(50)
    it.sender.connection_failed(1, DisconnectedError("127.0.0.1:1 cannot be reached"), 60)
    it.poll(60)
    assert it.sender.next_deadline() == 160
    assert it.connecting == [1, 1]
    it.connects = True
    assert len(it.poll(160)) == 1
    assert it.texts(TroubleBegan, TroubleEnded) == [
        "p: trouble with broker 1: 127.0.0.1:1 cannot be reached",
        "p: no more trouble with broker 1, after 160 ms",
    ]
    assert it.refreshes == [frozenset("t"), frozenset("t")]


def test_a_broker_that_does_not_speak_the_protocol_ends_the_producer() -> None:
    it = Sending()
    it.connects = False
    it.append()
    it.poll()
    it.sender.connection_failed(1, ClientError("too old"), 0)
    it.poll()
    assert str(it.done[0].error) == "too old"


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_partition_without_a_leader_waits_and_metadata_is_asked_for(idempotent: bool) -> None:
    it = Sending(enable_idempotence=idempotent)
    it.lead({0: -1})
    it.append()
    assert it.poll() == []
    assert set(it.refreshes) == {frozenset("t")}
    assert it.sender.next_deadline() == 120_000
    it.poll(120_000)
    (done,) = it.done
    assert isinstance(done.error, DeliveryTimeoutError)
    assert str(done.error) == "1 record(s) for t-0 were not acknowledged in 120000 ms: the partition has no leader"
    assert it.texts(e.BatchExpired) == [
        "batch 1 of t-0 is given up 120000 ms after it was opened: 1 record, they are not stored"
    ]


def test_partitions_of_a_broker_that_is_not_ready_get_nothing_without_a_key() -> None:
    it = Sending(partitions=2, partitioner_availability_timeout_ms=100)
    it.connects = False
    it.lead({0: 1, 1: 2})
    it.append(0)
    it.append(1)
    it.poll(0)
    it.sender.connected(2, 0)
    it.poll(200)
    it.append(1)
    it.poll(201)
    assert it.sender.accumulator.topics["t"].sticky.cumulative == [1]
    it.append(None)
    assert [batch.partition[1] for batch in it.sender.accumulator.incomplete][-1] == 1


# --- what is sent again


def test_a_refused_batch_is_sent_again_after_the_back_off_until_its_retries_are_used_up() -> None:
    it = Sending(retries=1)
    it.append()
    (sent,) = it.poll()
    assert it.answer(sent, E.NOT_ENOUGH_REPLICAS) == []
    assert it.refreshes == []
    assert it.sender.next_deadline() == 100
    (again,) = it.poll(100)
    assert it.events[-1].cause == TimerFired("backed_off", "p", "t-0", 100)
    assert it.texts(e.BatchSent)[1].startswith(
        "batch 1 of t-0 is sent to broker 1, for the 2. time because the back-off"
    )
    it.answer(again, E.NOT_ENOUGH_REPLICAS)
    assert isinstance(it.done[0].error, BrokerError)
    assert it.texts(e.BatchRetried)[0].startswith(
        "batch 1 of t-0 is put back and sent again in 100 ms: NOT_ENOUGH_REPL"
    )
    assert it.texts(e.BatchFailed)[0].startswith(
        "batch 1 of t-0 has failed, 1 record: Produce to t-0: NOT_ENOUGH_REPLICAS"
    )


def test_another_leader_gets_it_at_once() -> None:
    it = Sending()
    it.append()
    (sent,) = it.poll()
    assert it.answer(sent, E.NOT_LEADER_OR_FOLLOWER) == []
    assert it.refreshes == [frozenset("t")]
    it.lead({0: 2}, epoch=1)
    (again,) = it.poll(1)
    assert again.node_id == 2
    assert "because its partition has another leader" in it.texts(e.BatchSent)[1]


def test_what_was_given_up_is_not_acknowledged_any_more() -> None:
    it = Sending(partitions=2, delivery_timeout_ms=30_000)
    it.append(0)
    (sent,) = it.poll()
    it.append(1)
    (other,) = it.poll()
    it.poll(30_000)
    assert len(it.done) == 2
    assert it.texts(e.BatchExpired)[0].endswith("1 record, it is not known whether they are stored")
    it.answer(sent)
    it.answer(other, E.NOT_LEADER_OR_FOLLOWER)
    assert len(it.done) == 2
    assert it.texts(e.BatchAcknowledged) == []


def test_an_expired_batch_is_not_sent_again() -> None:
    it = Sending(delivery_timeout_ms=30_000)
    it.append()
    (sent,) = it.poll()
    it.now_ms = 30_000
    it.answer(sent, E.NOT_ENOUGH_REPLICAS)
    assert [type(each.error) for each in it.done] == [BrokerError]


def test_a_batch_that_waits_to_be_sent_again_expires_too() -> None:
    it = Sending(delivery_timeout_ms=30_000)
    it.append()
    (sent,) = it.poll()
    it.lose(sent)
    it.connects = False
    it.poll(30_000)
    assert str(it.done[0].error).endswith("in 30000 ms: there is no connection to its leader, broker 1")


def test_what_is_too_large_for_the_broker_goes_on_in_parts() -> None:
    it = Sending()
    it.append(records=300)
    (sent,) = it.poll()
    it.sender.accumulator._config = ProducerConfig(batch_size=2_000)
    resent = it.answer(sent, E.MESSAGE_TOO_LARGE)
    while resent:
        resent = it.answer(resent[0])
    assert [done.error for done in it.done] == [None] * len(it.done)
    assert [promise for done in it.done for promise in done.batch.promises] == list(range(300))
    numbers = sequences(it.sent)[1:]
    assert [base for _, base, _ in numbers] == [sum(count for *_, count in numbers[:at]) for at in range(len(numbers))]
    assert it.texts(e.BatchSplit) == ["batch 1 of t-0 is too large for the broker and goes on as batches 2, 3"]


def test_a_record_that_is_too_large_has_failed() -> None:
    it = Sending(enable_idempotence=False)
    it.append(records=2)
    (sent,) = it.poll()
    resent = it.answer(sent, E.MESSAGE_TOO_LARGE)
    while resent:
        resent = it.answer(resent[0], E.MESSAGE_TOO_LARGE) + resent[1:]
    assert [promise for done in it.done for promise in done.batch.promises] == [0, 1]
    assert all("MESSAGE_TOO_LARGE" in str(done.error) for done in it.done)


def test_an_answer_that_says_nothing_of_a_batch_is_an_error() -> None:
    it = Sending(enable_idempotence=False)
    it.append()
    (sent,) = it.poll()
    it.sender.produced(sent, {}, 0)
    it.poll()
    assert "UNKNOWN_SERVER_ERROR: the answer does not say" in str(it.done[0].error)


# --- the producer id


def test_nothing_is_sent_without_an_id() -> None:
    it = Sending()
    it.gives_ids = False
    it.append()
    assert it.poll() == []
    assert it.sender.next_deadline() == 120_000
    it.give_id(-1, E.COORDINATOR_LOAD_IN_PROGRESS)
    it.poll()
    assert it.sender.next_deadline() == 100
    assert it.poll(100) == []
    it.sender.producer_id_failed(DisconnectedError("it is gone"), 100)
    it.poll()
    assert it.sender.next_deadline() == 300
    it.gives_ids = True
    assert sequences(it.poll(300)) == [(0, 0, 1)]
    assert len(it.texts(TroubleBegan)) == 1
    assert it.texts(TroubleEnded) == ["p: no more trouble with producer id, after 300 ms"]


@pytest.mark.parametrize("disconnected", [True, False])
def test_an_id_that_is_refused_ends_the_producer(disconnected: bool) -> None:
    it = Sending()
    it.gives_ids = False
    it.append()
    it.poll()
    if disconnected:
        it.sender.producer_id_failed(ClientError("it is too old"), 0)
    else:
        it.give_id(-1, E.CLUSTER_AUTHORIZATION_FAILED)
    it.poll()
    assert it.done[0].error is it.sender.failure is not None
    assert it.sender.next_deadline() is None
    assert it.poll(200) == []


def test_what_cannot_be_gone_on_with_ends_the_producer() -> None:
    it = Sending()
    it.append()
    (sent,) = it.poll()
    it.append()
    it.answer(sent, E.CLUSTER_AUTHORIZATION_FAILED)
    assert [done.error for done in it.done] == [it.sender.failure] * 2


def test_requests_of_versions_that_the_broker_does_not_have_fail() -> None:
    it = Sending()
    it.append()
    (sent,) = it.poll()
    it.lose(sent, ClientError("there is no common version"))
    assert "UNSUPPORTED_VERSION: there is no common version" in str(it.sender.failure)


def test_closing_gives_up_what_is_not_acknowledged() -> None:
    it = Sending()
    it.append()
    (sent,) = it.poll()
    it.append()
    error = ClientError("it was stopped")
    it.sender.close(error, 5)
    it.answer(sent, E.NOT_LEADER_OR_FOLLOWER)
    assert it.sender.accumulator.incomplete == {}
    assert it.texts(TroubleBegan) == ["p: trouble with t-0: it was stopped"]


# --- the wire


def test_a_request_has_all_topics_and_its_answer_may_name_their_ids() -> None:
    it = Sending(partitions=2)
    it.append(0)
    it.append(1)
    (sent,) = it.poll()
    topic_id = UUID(int=7)
    request = produce_request(ProducerConfig(), sent.batches, {"t": topic_id}.get)
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 30_000, None)
    (topic,) = request.topic_data
    assert (topic.name, topic.topic_id, [each.index for each in topic.partition_data]) == ("t", topic_id, [0, 1])
    answers = tuple(answered(("t", number), E.NONE) for number in (0, 1))
    named = ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=answers),))
    unnamed = ProduceResponse(responses=(TopicProduceResponse(topic_id=topic_id, partition_responses=answers),))
    for response in (named, unnamed):
        assert answers_by_partition(request, response) == {("t", 0): answers[0], ("t", 1): answers[1]}


def test_every_other_event_in_words() -> None:
    how = {"at_ms": 0, "cause": AdminAction("test"), "producer": "p"}
    assert e.SendBlocked(free_bytes=7, **how).text() == "send waits for memory: 7 bytes of buffer_memory are free"  # type: ignore[arg-type]
    steps = [e.TransactionStep(state="Ready", error=error, **how).text() for error in ("", "fenced")]  # type: ignore[arg-type]
    assert steps == ["its transaction is in state Ready", "its transaction is in state Ready: fenced"]
    bumped = [e.EpochBumped(epoch=epoch, partitions=(("t", 0),), **how).text() for epoch in (1, -1)]  # type: ignore[arg-type]
    assert bumped == [
        "goes on with epoch 1, in which the sequence numbers of t-0 begin at 0",
        "needs another id: the sequence numbers of t-0 begin at 0",
    ]
