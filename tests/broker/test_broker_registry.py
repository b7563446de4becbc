"""Three brokers in one node: what each of them answers. What is expected was asked of a cluster of three Kafka 4.3.1."""

from typing import Any

import pytest

from groupcoord.broker.broker_registry import BrokerRegistry, ClusterBroker
from groupcoord.broker.topic_store import Topic
from groupcoord.config.broker_config import BrokerConfig, load
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, CloseConnection, Reply
from groupcoord.core.events import AdminAction
from groupcoord.partitioners.java_random import JavaRandom
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from groupcoord.protocol.apis.describe_configs import DescribeConfigsResource
from groupcoord.protocol.apis.fetch import LeaderIdAndEpoch, NodeEndpoint, PartitionData, ReplicaState
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    MetadataRequest,
)
from tests.broker import asking
from tests.broker.data_plane import DataPlane, batch, fetch_request, produce_request, reading, wanting

LEADER, FOLLOWER, STRANGER = 1, 2, 3  # of partition 0 of the topic t
NOT_HERE = ErrorCode.NOT_LEADER_OR_FOLLOWER
FENCED, UNKNOWN = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH
PLACED: dict[int, tuple[int, ...]] = {0: (1, 2), 1: (2, 3), 2: (3, 1)}


def three(**properties: object) -> DataPlane:
    """Brokers 1, 2 and 3 in racks a, b and a, with the topic t, whose partitions have two replicas each."""
    plane = DataPlane(brokers=3, racks=("a", "b"), **properties)
    answer = plane.ask(CreateTopicsRequest(topics=(asking.topic("t", assignments=PLACED),)), 7, to=3)
    (created,) = answer.topics
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 3, 2)
    return plane


def topic_of(plane: DataPlane, name: str = "t") -> Topic:
    topic = plane.broker.topics.get(name)
    assert topic is not None
    return topic


def move(plane: DataPlane, partition: int, broker_id: int) -> None:
    """Let another broker lead; answers to fetches are in ``later``."""
    ctx = HandlerContext(plane.now_ms, AdminAction("a move"))
    plane.broker.move_leader(ctx, topic_of(plane), partition, broker_id)
    plane.later += ctx.effects


class TestBrokers:
    def test_a_cluster_has_brokers_enough(self) -> None:
        with pytest.raises(ValueError, match="0 brokers is none"):
            BrokerRegistry(1, 0)
        with pytest.raises(ValueError, match=r"more racks \(3\) than brokers \(2\)"):
            BrokerRegistry(1, 2, racks=("a", "b", "c"), random=JavaRandom(1))
        with pytest.raises(ValueError, match="need chance"):
            BrokerRegistry(1, 2)

    def test_all_are_named_with_their_places(self) -> None:
        plane = three(listeners="PLAINTEXT://kafka:19092")
        plane.broker.cluster.listening_at(1, "kafka", 20000)
        expected = [(1, "kafka", 19092, "a"), (2, "kafka", 20000, "b"), (3, "kafka", 19094, "a")]
        for to in (1, 2, 3):
            metadata = plane.ask(MetadataRequest(), 12, to=to)
            assert [(one.node_id, one.host, one.port, one.rack) for one in metadata.brokers] == expected
            described = plane.ask(DescribeClusterRequest(), 2, to=to)
            assert [(one.broker_id, one.host, one.port, one.rack) for one in described.brokers] == expected
            assert (metadata.controller_id, described.controller_id) == (1, 1)

    def test_what_is_advertised_has_a_port_for_each(self) -> None:
        config = load(["listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://example:7000", "broker.rack=r"])
        cluster = BrokerRegistry(1, 2, random=JavaRandom(1))
        cluster.listening_at(1, "0.0.0.0", 9093)
        assert cluster.brokers(config) == (
            ClusterBroker(1, "example", 7000, "r"),
            ClusterBroker(2, "example", 7001, "r"),
        )

    @pytest.mark.parametrize(
        ("first", "size", "order"),
        [(1, 3, [1, 2, 3]), (3, 3, [4, 5, 3]), (6, 4, [8, 9, 6, 7]), (7, 1, [7]), (1, 2, [1, 2])],
    )
    def test_they_come_in_the_order_of_a_java_map(self, first: int, size: int, order: list[int]) -> None:
        """A cluster of the nodes 3, 4 and 5 names 4, 5 and 3."""
        cluster = BrokerRegistry(first, size, random=JavaRandom(1))
        assert [broker.id for broker in cluster.brokers(BrokerConfig.of())] == order


class TestPlacement:
    def test_leaders_are_the_first_replicas_and_all_are_in_sync(self) -> None:
        plane = three()
        (answer,) = plane.ask(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 12).topics
        told = {
            one.partition_index: (one.leader_id, one.leader_epoch, one.replica_nodes, one.isr_nodes)
            for one in answer.partitions
        }
        assert told == {index: (ids[0], 0, ids, ids) for index, ids in PLACED.items()}

    def test_replicas_are_spread_by_chance(self) -> None:
        plane = DataPlane(brokers=3, default_replication_factor=2)
        plane.ask(CreateTopicsRequest(topics=(asking.topic("x", 6, 3), asking.topic("y", -1, -1))), 7)
        placed = topic_of(plane, "x").metadata.replicas
        assert all(sorted(ids) == [1, 2, 3] for ids in placed)
        assert {ids[0] for ids in placed} == {1, 2, 3}
        assert [len(ids) for ids in topic_of(plane, "y").metadata.replicas] == [2]
        again = DataPlane(brokers=3)
        again.ask(CreateTopicsRequest(topics=(asking.topic("x", 6, 3),)), 7)
        assert topic_of(again, "x").metadata.replicas == placed

    def test_two_replicas_are_in_two_racks(self) -> None:
        plane = DataPlane(brokers=4, racks=("a", "b"))
        plane.ask(CreateTopicsRequest(topics=(asking.topic("x", 12, 2),)), 7)
        assert all({id_ % 2 for id_ in ids} == {0, 1} for ids in topic_of(plane, "x").metadata.replicas)

    @pytest.mark.parametrize(
        ("topic", "error", "text"),
        [
            (
                asking.topic("b1", assignments=((1, 2), (2,))),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                (
                    "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with "
                    "previous partitions, which have 2 replica(s)."
                ),
            ),
            (
                asking.topic("b2", assignments=((1, 1),)),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes the broker 1 more than once.",
            ),
            (
                asking.topic("b3", assignments=((9, 1),)),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes broker 9, but no such broker is registered.",
            ),
            (
                asking.topic("b4", assignments=((),)),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes an empty replica list.",
            ),
            (
                asking.topic("b5", 2, 4),
                ErrorCode.INVALID_REPLICATION_FACTOR,
                (
                    "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because "
                    "only 3 broker(s) are registered or some brokers have all their log directories cordoned."
                ),
            ),
            (
                asking.topic("b7", assignments={0: (1,), 2: (2,)}),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "partitions should be a consecutive 0-based integer sequence",
            ),
        ],
    )
    def test_what_cannot_be(self, topic: CreatableTopic, error: ErrorCode, text: str) -> None:
        (result,) = three().ask(CreateTopicsRequest(topics=(topic,)), 7).topics
        assert (result.error_code, result.error_message) == (error, text)

    def test_a_lone_broker_is_asked_for_no_chance(self) -> None:
        alone = BrokerRegistry(7)
        assert alone.place(BrokerConfig.of(), 3, 1) == [(7,)] * 3
        with pytest.raises(ApiError, match=r"factor of 2 cannot be reached because only 1 broker\(s\)"):
            alone.place(BrokerConfig.of(), 3, 2)

    @pytest.mark.parametrize(
        ("brokers", "text"),
        [
            (
                (1,),
                (
                    "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with "
                    "previous partitions, which have 2 replica(s)."
                ),
            ),
            ((1, 5), "The manual partition assignment includes broker 5, but no such broker is registered."),
            ((), "The manual partition assignment includes an empty replica list."),
        ],
    )
    def test_partitions_on_top_that_cannot_be(self, brokers: tuple[int, ...], text: str) -> None:
        plane = three()
        asked = CreatePartitionsTopic(name="t", count=4, assignments=(CreatePartitionsAssignment(broker_ids=brokers),))
        (result,) = plane.ask(CreatePartitionsRequest(topics=(asked,), timeout_ms=1), 3).results
        assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        assert len(topic_of(plane).partitions) == 3

    def test_partitions_on_top_have_as_many_replicas(self) -> None:
        plane = three()
        by_hand = CreatePartitionsTopic(name="t", count=4, assignments=(CreatePartitionsAssignment(broker_ids=(3, 2)),))
        plane.ask(CreatePartitionsRequest(topics=(by_hand,), timeout_ms=1), 3)
        assert (topic_of(plane).metadata.replicas[3], topic_of(plane).metadata.leaders[3]) == ((3, 2), 3)
        more = CreatePartitionsTopic(name="t", count=9, assignments=None)
        (result,) = plane.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=1), 3, to=2).results
        assert result.error_code == 0
        assert [len(ids) for ids in topic_of(plane).metadata.replicas] == [2] * 9
        assert topic_of(plane).metadata.leaders == tuple(ids[0] for ids in topic_of(plane).metadata.replicas)


class TestProduce:
    @pytest.mark.parametrize("version", [7, 9, 10, 13])
    @pytest.mark.parametrize("to", [FOLLOWER, STRANGER])
    def test_only_the_leader_takes_records(self, version: int, to: int) -> None:
        plane = three()
        response = plane.ask(produce_request(plane, "t", {0: batch(b"v")}, version), version, to=to)
        ((outcome,),) = (topic.partition_responses for topic in response.responses)
        assert (outcome.error_code, outcome.base_offset, outcome.log_start_offset) == (NOT_HERE, -1, -1)
        assert outcome.error_message is None
        if version < 10:
            assert (outcome.current_leader, response.node_endpoints) == (LeaderIdAndEpoch(), ())
        else:
            assert outcome.current_leader == LeaderIdAndEpoch(leader_id=LEADER, leader_epoch=0)
            assert response.node_endpoints == (NodeEndpoint(node_id=1, host="127.0.0.1", port=9092, rack="a"),)
        assert plane.log("t").log_end_offset == 0

    def test_the_leader_takes_them(self) -> None:
        plane = three()
        response = plane.ask(produce_request(plane, "t", dict.fromkeys(range(3), batch(b"v"))), 12, to=2)
        ((first, second, third),) = (topic.partition_responses for topic in response.responses)
        assert [one.error_code for one in (first, second, third)] == [NOT_HERE, 0, NOT_HERE]
        assert [one.node_id for one in response.node_endpoints] == [1, 3]

    def test_other_mistakes_come_first(self) -> None:
        """A wrong acks is seen before, a wrong checksum behind."""
        plane = three()
        assert plane.produced("t", batch(b"v"), acks=5, to=STRANGER).error_code == ErrorCode.INVALID_REQUIRED_ACKS
        broken = batch(b"v")[:-1] + b"\xff"
        assert plane.produced("t", broken, to=STRANGER).error_code == NOT_HERE

    def test_without_acks_the_connection_is_closed(self) -> None:
        plane = three()
        call = plane.send(produce_request(plane, "t", {0: batch(b"v")}, acks=0), 12, to=FOLLOWER)
        assert isinstance(plane.answer_to(call), CloseConnection)


class TestFetch:
    @pytest.mark.parametrize("version", [4, 10, 11, 12, 15, 16, 18])
    @pytest.mark.parametrize("to", [LEADER, FOLLOWER, STRANGER])
    def test_followers_are_read_from_since_kip_392(self, version: int, to: int) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        named = "t" if version < 13 else plane.broker.topics.topic_id("t")
        response = plane.fetch(reading(named, wanting(0)), version=version, to=to)
        ((data,),) = (topic.partitions for topic in response.responses)
        if to == LEADER or (to == FOLLOWER and version >= 11):
            assert (data.error_code, data.high_watermark, len(data.records or b"")) == (0, 1, len(batch(b"v")))
        else:
            assert (data.error_code, data.high_watermark, data.records) == (NOT_HERE, -1, b"")
        pointed = to == STRANGER and version >= 16
        assert data.current_leader == (LeaderIdAndEpoch(leader_id=1, leader_epoch=0) if pointed else LeaderIdAndEpoch())
        endpoint = NodeEndpoint(node_id=1, host="127.0.0.1", port=9092, rack="a")
        assert response.node_endpoints == ((endpoint,) if pointed else ())

    @pytest.mark.parametrize("version", [12, 16])
    def test_epochs_after_a_move(self, version: int) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        move(plane, 0, FOLLOWER)
        named = "t" if version < 13 else plane.broker.topics.topic_id("t")
        for to, expected in {
            1: (FENCED, 0, UNKNOWN),
            2: (FENCED, 0, UNKNOWN),
            3: (NOT_HERE, NOT_HERE, NOT_HERE),
        }.items():
            for epoch, error in enumerate(expected):
                response = plane.fetch(reading(named, wanting(0, current_leader_epoch=epoch)), version=version, to=to)
                ((data,),) = (topic.partitions for topic in response.responses)
                assert data.error_code == error
                pointed = version >= 16 and error in (FENCED, NOT_HERE)
                leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=1) if pointed else LeaderIdAndEpoch()
                assert data.current_leader == leader
                assert [one.node_id for one in response.node_endpoints] == ([2] if pointed else [])

    def test_brokers_read_from_the_leader_alone(self) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))

        def error(to: int, replica: int, epoch: int = -1, version: int = 12) -> int:
            who: dict[str, Any] = (
                {"replica_id": replica} if version < 15 else {"replica_state": ReplicaState(replica_id=replica)}
            )
            named = "t" if version < 13 else plane.broker.topics.topic_id("t")
            request = reading(named, wanting(0, current_leader_epoch=epoch))
            response = plane.fetch(request, version=version, to=to, **who)
            assert response.node_endpoints == ()
            return response.responses[0].partitions[0].error_code

        assert (error(LEADER, FOLLOWER), error(LEADER, FOLLOWER, 0)) == (0, 0)
        assert (error(LEADER, STRANGER), error(LEADER, STRANGER, 0)) == (NOT_HERE, UNKNOWN)
        assert (error(FOLLOWER, STRANGER), error(FOLLOWER, LEADER)) == (NOT_HERE, NOT_HERE)
        assert error(STRANGER, FOLLOWER, version=16) == NOT_HERE

    def test_a_session_is_one_brokers(self) -> None:
        plane = three()
        first = plane.fetch(reading("t", wanting(0)), session_epoch=0, to=1)
        assert first.session_id
        assert plane.broker.fetch_sessions[first.session_id].owner.is_broker is False
        known = [plane.fetch(session_id=first.session_id, session_epoch=1, to=to).error_code for to in (2, 3, 1)]
        assert known == [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0]

    def parked(self, plane: DataPlane, to: int, version: int, epoch: int = -1) -> Call:
        named = "t" if version < 13 else plane.broker.topics.topic_id("t")
        request = fetch_request(reading(named, wanting(1, current_leader_epoch=epoch)), wait_ms=15_000)
        return plane.send(request, version, to=to)

    def told(self, plane: DataPlane, call: Call) -> PartitionData | None:
        answer = plane.answer_to(call)
        return None if answer is None else answer.responses[0].partitions[0]

    def test_who_waits_when_the_leader_moves(self) -> None:
        """At the old leader those are told who may not wait on; at the new one nobody looks before the next record."""
        plane = three()
        plane.produced("t", batch(b"v"))
        at_old, at_old_knowing, at_old_long_ago = (
            self.parked(plane, LEADER, version, epoch) for version, epoch in ((18, -1), (18, 0), (10, -1))
        )
        at_new_knowing, at_new = self.parked(plane, FOLLOWER, 18, 0), self.parked(plane, FOLLOWER, 12)
        move(plane, 0, FOLLOWER)
        fenced, refused = self.told(plane, at_old_knowing), self.told(plane, at_old_long_ago)
        assert fenced is not None
        assert refused is not None
        assert (fenced.error_code, fenced.current_leader) == (FENCED, LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
        assert (refused.error_code, refused.current_leader) == (NOT_HERE, LeaderIdAndEpoch())
        assert [self.told(plane, call) for call in (at_old, at_new_knowing, at_new)] == [None] * 3

        plane.produced("t", batch(b"w"), to=FOLLOWER)
        answers = [self.told(plane, call) for call in (at_old, at_new_knowing, at_new)]
        assert [(one.error_code, bool(one.records)) for one in answers if one] == [
            (0, True),
            (FENCED, False),
            (0, True),
        ]

    def test_who_waits_when_the_partition_leaves(self) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        move(plane, 0, FOLLOWER)
        waiting = [self.parked(plane, FOLLOWER, 18), self.parked(plane, FOLLOWER, 18, 1)]
        move(plane, 0, STRANGER)
        assert topic_of(plane).metadata.replicas[0] == (1, 3)
        for call in waiting:
            told = self.told(plane, call)
            assert told is not None
            assert (told.error_code, told.current_leader) == (NOT_HERE, LeaderIdAndEpoch(leader_id=3, leader_epoch=2))

    def test_a_topic_that_goes_while_somebody_waits(self) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        call = self.parked(plane, LEADER, 12)
        topic = plane.broker.topics.delete("t")
        ctx = HandlerContext(plane.now_ms, AdminAction("a move"))
        plane.broker.fetch_purgatory.leader_moved(ctx, topic.partitions[0], 1)
        assert ctx.effects == []
        plane.broker.topics_deleted(ctx, [topic])
        (reply,) = ctx.effects
        assert isinstance(reply, Reply)
        assert reply.call == call


class TestOffsets:
    def list_offset(self, plane: DataPlane, to: int, *, epoch: int = -1, replica: int = -1, at: int = -1) -> Any:
        part = ListOffsetsPartition(partition_index=0, timestamp=at, current_leader_epoch=epoch)
        request = ListOffsetsRequest(replica_id=replica, topics=(ListOffsetsTopic(name="t", partitions=(part,)),))
        return plane.ask(request, 7, to=to).topics[0].partitions[0]

    def end_of_epoch(self, plane: DataPlane, to: int, epoch: int, known: int = -1) -> tuple[int, int, int]:
        part = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=known)
        topic = OffsetForLeaderTopic(topic="t", partitions=(part,))
        found = plane.ask(OffsetForLeaderEpochRequest(topics=(topic,)), 4, to=to).topics[0].partitions[0]
        return found.error_code, found.leader_epoch, found.end_offset

    def test_offsets_are_the_leaders_to_tell(self) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        found = self.list_offset(plane, LEADER)
        assert (found.error_code, found.offset, found.leader_epoch) == (0, 1, 0)
        errors = {to: [self.list_offset(plane, to, epoch=epoch).error_code for epoch in (-1, 0, 1)] for to in (1, 2, 3)}
        assert errors == {1: [0, 0, UNKNOWN], 2: [NOT_HERE, NOT_HERE, UNKNOWN], 3: [NOT_HERE] * 3}

    def test_a_debugger_asks_followers_too(self) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        found = self.list_offset(plane, FOLLOWER, replica=-2)
        assert (found.error_code, found.offset, found.leader_epoch) == (0, 1, 0)
        assert self.list_offset(plane, STRANGER, replica=-2).error_code == NOT_HERE
        assert self.list_offset(plane, FOLLOWER, replica=2).error_code == NOT_HERE

    def test_so_are_epochs(self) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        assert self.end_of_epoch(plane, LEADER, 0) == (0, 0, 1)
        assert self.end_of_epoch(plane, LEADER, 0, known=3) == (UNKNOWN, -1, -1)
        assert [self.end_of_epoch(plane, FOLLOWER, 0, known)[0] for known in (-1, 0, 3)] == [
            NOT_HERE,
            NOT_HERE,
            UNKNOWN,
        ]
        assert [self.end_of_epoch(plane, STRANGER, 0, known)[0] for known in (-1, 0, 3)] == [NOT_HERE] * 3

    def test_each_leader_begins_an_epoch(self) -> None:
        """Also one that has written nothing yet."""
        plane = three()
        plane.produced("t", batch(b"v"))
        move(plane, 0, FOLLOWER)
        assert self.end_of_epoch(plane, FOLLOWER, 0) == (0, 0, 1)
        plane.produced("t", batch(b"w"), to=FOLLOWER)
        move(plane, 0, STRANGER)
        latest, earliest = self.list_offset(plane, STRANGER), self.list_offset(plane, STRANGER, at=-2)
        assert (latest.offset, latest.leader_epoch, earliest.offset, earliest.leader_epoch) == (2, 2, 0, 0)
        ends = [self.end_of_epoch(plane, STRANGER, epoch) for epoch in (0, 1, 2, 3)]
        assert ends == [(0, 0, 1), (0, 1, 2), (0, 2, 2), (0, -1, -1)]

    def test_only_the_leader_deletes_records(self) -> None:
        plane = three()
        plane.produced("t", batch(b"v"))
        plane.topic("__consumer_offsets")

        def delete(to: int, name: str = "t") -> tuple[int, int]:
            topic = DeleteRecordsTopic(name=name, partitions=(DeleteRecordsPartition(partition_index=0, offset=1),))
            request = DeleteRecordsRequest(topics=(topic,), timeout_ms=1)
            (result,) = plane.ask(request, 2, to=to).topics[0].partitions
            return result.error_code, result.low_watermark

        assert [delete(to) for to in (STRANGER, FOLLOWER, LEADER)] == [(NOT_HERE, -1), (NOT_HERE, -1), (0, 1)]
        assert delete(STRANGER, "__consumer_offsets")[0] == ErrorCode.INVALID_TOPIC_EXCEPTION


class TestProducerIds:
    def test_each_broker_has_a_thousand(self) -> None:
        plane = three()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        ids = [plane.ask(request, 4, to=to).producer_id for to in (1, 2, 3, 2, 2, 1, 3)]
        assert ids == [0, 1000, 2000, 1001, 1002, 1, 2001]


class TestConfigs:
    NAMES = ("node.id", "broker.id", "broker.rack", "listeners", "advertised.listeners")

    def described(self, plane: DataPlane, name: str, to: int, *keys: str) -> tuple[int, str, dict[str, str]]:
        resource = DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=keys or self.NAMES)
        (result,) = plane.ask(DescribeConfigsRequest(resources=(resource,)), 4, to=to).results
        return result.error_code, result.error_message, {one.name: one.value for one in result.configs}

    def test_each_broker_describes_itself(self) -> None:
        plane = three()
        plane.broker.cluster.listening_at(1, "127.0.0.1", 4711)
        for to, rack, port in ((1, "a", 9092), (2, "b", 4711)):
            error, _, told = self.described(plane, str(to), to)
            assert error == 0
            assert told == {
                "node.id": str(to),
                "broker.id": str(to),
                "broker.rack": rack,
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "advertised.listeners": None,
            }
        expected = "Unexpected broker id, expected 2 or empty string, but received 1"
        assert self.described(plane, "1", 2)[:2] == (ErrorCode.INVALID_REQUEST, expected)
        assert self.described(plane, "", 2) == (0, "", {})

    def test_what_is_advertised_is_each_brokers_own(self) -> None:
        plane = DataPlane(brokers=2, advertised_listeners="PLAINTEXT://example:7000")
        told = self.described(plane, "2", 2)[2]
        assert told["advertised.listeners"] == "PLAINTEXT://example:7001"
        assert told["broker.rack"] is None

    def test_a_change_to_one_broker_is_its_own(self) -> None:
        plane = three()

        def alter(to: int, *names: str) -> list[tuple[int, str | None]]:
            change = AlterableConfig(name="log.cleaner.threads", config_operation=0, value="2")
            resources = tuple(
                AlterConfigsResource(resource_type=4, resource_name=name, configs=(change,)) for name in names
            )
            responses = plane.ask(IncrementalAlterConfigsRequest(resources=resources), 1, to=to).responses
            return [(one.error_code, one.error_message) for one in responses]

        wrong = "Unexpected broker id, expected 2, but received 1"
        assert alter(2, "1", "2") == [(ErrorCode.INVALID_REQUEST, wrong), (0, None)]
        threads = [self.described(plane, str(to), to, "log.cleaner.threads")[2] for to in (1, 2, 3)]
        assert [one["log.cleaner.threads"] for one in threads] == ["1", "2", "1"]
        assert plane.broker.config.node_id == 1


def test_a_call_that_says_nothing_came_to_the_first_broker() -> None:
    call = Call(1, 1, APIS[ApiKey.METADATA], 12, "me", "/127.0.0.1")
    assert BrokerRegistry(5, 3, random=JavaRandom(1)).id_of(call) == 5
