"""What our schemas take from kio."""

import uuid

import pytest
from kio.schema.fetch.v12.request import FetchRequest as KioFetchRequest
from kio.schema.offset_commit.v2.request import OffsetCommitRequest as KioOffsetCommitRequest
from kio.schema.produce.v9.response import ProduceResponse as KioProduceResponse

from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequest
from groupcoord.protocol.apis.produce import PartitionProduceResponse, ProduceResponse
from groupcoord.protocol.codec.schema import ParsedAnnotation, SchemaField, field_name_of, parse_annotation, schema_of


@pytest.mark.parametrize(
    ("annotation", "parts"),
    [
        (int, (int, False, False)),
        (str | None, (str, False, True)),
        (tuple[str, ...], (str, True, False)),
        (tuple[FetchPartition, ...] | None, (FetchPartition, True, True)),
        (uuid.UUID | None, (uuid.UUID, False, True)),
    ],
)
def test_an_annotation_is_taken_apart(annotation: object, parts: tuple[object, bool, bool]) -> None:
    assert parse_annotation(annotation) == ParsedAnnotation(*parts)


@pytest.mark.parametrize(
    ("kio_name", "kafka_type", "name"),
    [
        ("timeout", "timedelta_i32", "timeout_ms"),
        ("retention_time", "timedelta_i64", "retention_time_ms"),
        ("log_append_time", "datetime_i64", "log_append_time_ms"),
        ("timestamp", "int64", "timestamp"),
        ("members", "struct", "members"),
    ],
)
def test_times_keep_their_unit(kio_name: str, kafka_type: str, name: str) -> None:
    assert field_name_of(kio_name, kafka_type) == name


def test_a_layout_is_in_wire_order() -> None:
    schema = schema_of(OffsetCommitRequest, KioOffsetCommitRequest)
    assert (schema.name, schema.version, schema.flexible) == ("OffsetCommit", 2, False)
    *plain, topics = schema.fields
    assert plain == [
        SchemaField("group_id", "string"),
        SchemaField("generation_id_or_member_epoch", "int32"),
        SchemaField("member_id", "string"),
        SchemaField("retention_time_ms", "int64"),
    ]
    assert topics.struct is not None
    assert (topics.name, topics.kind, topics.is_array, topics.struct.flexible) == ("topics", "struct", True, False)
    assert [field.name for field in topics.struct.fields] == ["name", "partitions"]


def test_dates_and_errors_are_plain_integers() -> None:
    schema = schema_of(ProduceResponse, KioProduceResponse)
    topics = schema.fields[0].struct
    assert schema.name == "ProduceResponse"
    assert topics is not None
    partitions = topics.fields[1].struct
    assert partitions is not None
    assert partitions.message is PartitionProduceResponse
    kinds = {field.name: (field.kind, field.is_nullable) for field in partitions.fields}
    assert kinds["error_code"] == ("int16", False)
    assert kinds["log_append_time_ms"] == ("int64", False)
    assert kinds["error_message"] == ("string", True)


def test_tagged_fields_have_their_tag() -> None:
    schema = schema_of(FetchRequest, KioFetchRequest)
    assert [(field.name, field.tag, field.is_nullable) for field in schema.fields if field.tag is not None] == [
        ("cluster_id", 0, True)
    ]


def test_defaults_and_what_may_be_none() -> None:
    schema = schema_of(FetchRequest, KioFetchRequest)
    assert "max_wait_ms" not in schema.defaults()
    assert schema.defaults()["max_bytes"] == 2**31 - 1
    assert schema.may_hold_none() == {"cluster_id"}
