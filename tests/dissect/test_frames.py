"""Frames, dissected: every byte belongs to one field, and every field says what it is."""

import random
import uuid
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.index import api_key_map, schema_name_map

from groupcoord.dissect import DissectedField, Dissection, dissect_request, dissect_response
from groupcoord.dissect.dissection import UNREADABLE
from groupcoord.dissect.message_schemas import request_layout, response_layout
from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.apis.describe_groups import DescribedGroup, DescribedGroupMember
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.framing import encode_request, encode_response
from groupcoord.protocol.messages import (
    DescribeGroupsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatResponse,
    JoinGroupRequest,
    ProduceRequest,
    SyncGroupResponse,
)
from tests.protocol.samples import EVERY_VERSION, make, name_of

EVERY_KAFKA_VERSION = [
    (key, version) for key, name in sorted(api_key_map.items()) for version in sorted(schema_name_map[name])
]
SUBSCRIPTION = write_subscription(ConsumerProtocolSubscription(topics=("orders",)))


def assert_no_byte_is_left_out(dissection: Dissection) -> None:
    places = [(field.start, field.end) for field in dissection.fields if not field.inside]
    assert all(before[1] == behind[0] for before, behind in pairwise(places))
    assert not places or (places[0][0], places[-1][1]) == (0, dissection.size)


def assert_all_is_read(dissection: Dissection) -> None:
    """But for record batches, which samples do not have."""
    assert_no_byte_is_left_out(dissection)
    assert [field for field in dissection.fields if field.type == UNREADABLE and "records." not in field.path] == []


def at(dissection: Dissection, path: str) -> DissectedField:
    (found,) = (field for field in dissection.fields if field.path == path)
    return found


@pytest.mark.untraced
@pytest.mark.parametrize(("api", "version"), EVERY_VERSION, ids=name_of)
def test_every_message_of_this_server_is_dissected_whole(api: Api, version: int) -> None:
    chance = random.Random(version)
    request = make(api.request_codec(version).schema, chance)
    frame = encode_request(api, version, 7, "me", request)
    dissected = dissect_request(frame, sized=True)
    assert dissected.title == f"{api.name} v{version} request"
    assert_all_is_read(dissected)
    codec = api.response_codec(version)
    has_tags = codec.flexible and api.key != ApiKey.API_VERSIONS
    body = codec.encode(make(codec.schema, chance))
    if api.key == ApiKey.API_VERSIONS:
        body = bytes(2) + body[2:]
    dissected = dissect_response(bytes(4) + (b"\0" if has_tags else b"") + body, api.key, version)
    assert dissected.title == f"{api.name} v{version} response"
    assert_all_is_read(dissected)


@pytest.mark.untraced
@pytest.mark.parametrize(("key", "version"), EVERY_KAFKA_VERSION)
def test_every_field_of_every_api_of_kafka_is_described(key: int, version: int) -> None:
    for layout in (request_layout(key, version), response_layout(key, version)):
        assert {field.name for field in layout.schema.fields} == {path for path in layout.notes if "." not in path}
        undescribed = {path for path, note in layout.notes.items() if not note.description}
        assert undescribed <= {"groups.topics.partitions", "responses.partitions"}  # in three of Kafka's definitions


def test_values_have_their_meaning_and_kafkas_description() -> None:
    request = JoinGroupRequest(group_id="g", session_timeout_ms=45_000, member_id="", protocol_type="consumer")
    dissected = dissect_request(encode_request(APIS[ApiKey.JOIN_GROUP], 9, 7, "me", request), sized=True)
    assert at(dissected, "request_api_key") == DissectedField(4, 6, "request_api_key", "int16", 11, "JoinGroup")
    assert at(dissected, "session_timeout_ms") == DissectedField(
        19,
        23,
        "session_timeout_ms",
        "int32",
        45_000,
        "45 s",
        "The coordinator considers the consumer dead if it receives no heartbeat after this timeout in milliseconds.",
    )
    assert at(dissected, "group_instance_id").value is None
    refused = encode_response(APIS[ApiKey.HEARTBEAT], 0, 7, HeartbeatResponse(error_code=27))[4:]
    assert at(dissect_response(refused, ApiKey.HEARTBEAT, 0), "error_code").meaning.startswith(
        "REBALANCE_IN_PROGRESS: "
    )


def test_tagged_fields_show_their_tags_and_sizes() -> None:
    dissected = dissect_request(bytes.fromhex("000c0004 00000007 ffff 01 05 02 aabb 0267 00000001 026d 00 01 07 01 ff"))
    assert [(field.path, field.type, field.value) for field in dissected.fields[4:]] == [
        ("header tagged fields", "uvarint", 1),
        ("header tag", "uvarint", 5),
        ("header tag 5 size", "uvarint", 2),
        ("header tag 5", "unknown tagged field", b"\xaa\xbb"),
        ("group_id", "compact string", "g"),
        ("generation_id", "int32", 1),
        ("member_id", "compact string", "m"),
        ("group_instance_id", "compact nullable string", None),
        ("tagged fields", "uvarint", 1),
        ("tag", "uvarint", 7),
        ("tag 7 size", "uvarint", 1),
        ("tag 7", "unknown tagged field", b"\xff"),
    ]


@pytest.mark.parametrize(("protocol_type", "is_opened"), [("consumer", True), ("connect", False)])
def test_subscriptions_are_opened_for_consumers_alone(protocol_type: str, is_opened: bool) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1,
        member_id="",
        protocol_type=protocol_type,
        protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )
    dissected = dissect_request(encode_request(APIS[ApiKey.JOIN_GROUP], 5, 7, "me", request), sized=True)
    assert_no_byte_is_left_out(dissected)
    metadata = at(dissected, "protocols[0].metadata")
    if is_opened:
        assert metadata.value == len(SUBSCRIPTION)
        topic = at(dissected, "protocols[0].metadata.topics[0]")
        assert (topic.value, topic.description) == ("orders", "The topics that the member wants to consume.")
    else:
        assert metadata.value == SUBSCRIPTION


@pytest.mark.parametrize(
    "said",
    [b"", b"\0", b"\xff\xff" + bytes(8), write_assignment(ConsumerProtocolAssignment()) + b"more"],
    ids=["nothing", "no version", "version -1", "bytes behind"],
)
def test_what_is_no_assignment_stays_bytes(said: bytes) -> None:
    response = encode_response(APIS[ApiKey.SYNC_GROUP], 3, 7, SyncGroupResponse(assignment=said))[4:]
    dissected = dissect_response(response, ApiKey.SYNC_GROUP, 3)
    assert (at(dissected, "assignment").value, dissected.problem) == (said, None)


def test_a_version_of_the_consumer_protocol_that_is_to_come_is_read_as_the_highest() -> None:
    member = DescribedGroupMember(
        member_id="m",
        client_id="c",
        client_host="h",
        member_metadata=b"\x00\x09" + SUBSCRIPTION[2:],
        member_assignment=b"",
    )
    group = DescribedGroup(
        group_id="g", group_state="Stable", protocol_type="consumer", protocol_data="range", members=(member,)
    )
    response = encode_response(APIS[ApiKey.DESCRIBE_GROUPS], 5, 7, DescribeGroupsResponse(groups=(group,)))[4:]
    dissected = dissect_response(response, ApiKey.DESCRIBE_GROUPS, 5)
    version = at(dissected, "groups[0].members[0].member_metadata.version")
    assert (version.value, version.meaning) == (9, "read as 3, the highest that is known")


TOPIC_ID = uuid.UUID(int=5)
BATCH = build_batch([Record(0, 0, b"\x00\x02\x00\x01g", None)])


@pytest.mark.parametrize("version", [12, 13])
def test_records_of_a_known_topic_are_opened_by_name_and_by_id(version: int) -> None:
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=1000,
        topic_data=(
            TopicProduceData(
                name="__consumer_offsets",
                topic_id=TOPIC_ID,
                partition_data=(PartitionProduceData(index=0, records=BATCH),),
            ),
        ),
    )
    frame = encode_request(APIS[ApiKey.PRODUCE], version, 7, "me", request)
    dissected = dissect_request(frame, sized=True, topic_names={TOPIC_ID: "__consumer_offsets"})
    assert_no_byte_is_left_out(dissected)
    group = at(dissected, "topic_data[0].partition_data[0].records.batches[0].records[0].key.group")
    assert (group.value, frame[group.start : group.end]) == ("g", b"\x00\x01g")
    assert at(dissected, "acks").meaning == "all in-sync replicas"
    unnamed = dissect_request(frame, sized=True)
    assert any(field.path.endswith("key.group") for field in unnamed.fields) is (version == 12)


def test_a_batch_that_a_fetch_cuts_off_is_no_problem() -> None:
    partition = PartitionData(partition_index=0, high_watermark=1, records=BATCH + BATCH[:-1])
    response = FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=(partition,)),))
    dissected = dissect_response(encode_response(APIS[ApiKey.FETCH], 11, 7, response)[4:], ApiKey.FETCH, 11)
    assert at(dissected, "responses[0].partitions[0].records.batches[1]").type == "incomplete batch"
    assert dissected.problem is None


def test_an_answer_to_a_version_that_the_server_does_not_have_is_read_as_version_0() -> None:
    dissected = dissect_response(bytes.fromhex("00000007 0023 00000001 0012 0000 0004"), ApiKey.API_VERSIONS, 4)
    assert dissected.problem is None
    assert at(dissected, "api_keys[0].api_key").meaning == "ApiVersions"


@pytest.mark.parametrize(
    ("frame", "title", "offset", "reason"),
    [
        ("", "request without a header", 0, "request_api_key: 2 bytes do not fit in the 0 that are left"),
        ("0063 0001 00000007 ffff 11", "API 99 v1 request", 10, "request_api_key: 99 is no API of Kafka 4.3"),
        (
            "000b 0032 00000007 ffff",
            "JoinGroup v50 request",
            10,
            "request_api_version: JoinGroup has no version 50 in Kafka 4.3; 0 to 9 are known",
        ),
        ("000c 0004 00000007 ffff", "Heartbeat v4 request", 10, "tagged fields: the bytes end here"),
        (
            "000c 0000 00000007 ffff 0003 6161",
            "Heartbeat v0 request",
            10,
            "group_id: 3 bytes do not fit in the 2 that are left",
        ),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(frame: str, title: str, offset: int, reason: str) -> None:
    dissected = dissect_request(bytes.fromhex(frame))
    assert dissected.title == title
    assert dissected.problem == (offset, reason)
    assert_no_byte_is_left_out(dissected)


def test_a_response_of_an_unknown_api_shows_its_correlation_id() -> None:
    dissected = dissect_response(bytes.fromhex("00000007 11"), 99, 0)
    assert [field.value for field in dissected.fields] == [7, b"\x11"]
    assert dissected.problem == (4, "request_api_key: 99 is no API of Kafka 4.3")


def test_a_cut_frame_is_read_as_far_as_it_goes() -> None:
    request = JoinGroupRequest(group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer")
    frame = encode_request(APIS[ApiKey.JOIN_GROUP], 0, 7, "me", request)
    cut = "the frame is cut: 35 bytes should follow its length, {} are here"
    inside = dissect_request(frame[:-18], sized=True)
    assert at(inside, "group_id").value == "g"
    assert inside.problem == (19, cut.format(17) + "; session_timeout_ms: 4 bytes do not fit in the 2 that are left")
    longer = (36).to_bytes(4) + frame[4:]
    assert dissect_request(longer, sized=True).problem == (
        39,
        "the frame is cut: 36 bytes should follow its length, 35 are here",
    )
    assert dissect_request(frame[:3], sized=True).problem == (
        0,
        "frame_length_bytes: 4 bytes do not fit in the 3 that are left",
    )


def test_bytes_behind_the_message_are_shown() -> None:
    dissected = dissect_response(bytes.fromhex("00000007 0000 ffff"), ApiKey.HEARTBEAT, 0)
    assert dissected.fields[-1] == DissectedField(6, 8, "rest", "bytes", b"\xff\xff", "behind the end; ignored")
    assert dissected.problem is None


def test_json_has_bytes_as_hex_and_ids_as_kafka_writes_them() -> None:
    fields = [
        DissectedField(0, 2, "data", "bytes", b"\x01\xff"),
        DissectedField(2, 18, "id", "uuid", TOPIC_ID),
        DissectedField(18, 34, "no_id", "uuid", None),
    ]
    dissection = Dissection("t", 34, tuple(fields), None)
    said = dissection.as_json()
    assert [field["value"] for field in said["fields"]] == ["01ff", "AAAAAAAAAAAAAAAAAAAABQ", "A" * 22]
    assert said["problem"] is None
    assert dissect_request(b"").as_json()["problem"] == {
        "offset": 0,
        "reason": "request_api_key: 2 bytes do not fit in the 0 that are left",
    }


@pytest.mark.slow
@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_can_be_dissected(data: bytes, sized: bool) -> None:
    assert_no_byte_is_left_out(dissect_request(data, sized=sized))
    for key, version in ((ApiKey.FETCH, 17), (ApiKey.JOIN_GROUP, 9), (ApiKey.PRODUCE, 9), (ApiKey.API_VERSIONS, 4)):
        assert_no_byte_is_left_out(dissect_response(data, key, version, sized=sized))


@pytest.mark.slow
@given(st.sampled_from(EVERY_KAFKA_VERSION), st.binary(max_size=80))
def test_any_body_of_any_api_can_be_dissected(which: tuple[int, int], data: bytes) -> None:
    key, version = which
    assert_no_byte_is_left_out(dissect_request(key.to_bytes(2) + version.to_bytes(2) + bytes(4) + b"\xff\xff" + data))
    assert_no_byte_is_left_out(dissect_response(bytes(4) + data, key, version))


def fetched_from_consumer_offsets() -> tuple[bytes, bytes]:
    """A request and a response of Fetch v13, which names topics by id."""
    fetch = APIS[ApiKey.FETCH]
    partition = PartitionData(partition_index=0, high_watermark=1, records=BATCH)
    answer = FetchResponse(responses=(FetchableTopicResponse(topic="", topic_id=TOPIC_ID, partitions=(partition,)),))
    request = encode_request(fetch, 13, 2, "c", FetchRequest(max_wait_ms=0, min_bytes=0, topics=()))
    return request, encode_response(fetch, 13, 2, answer)
