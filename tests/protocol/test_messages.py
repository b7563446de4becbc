"""Every message at every version against kafka-python, which has it from Kafka's definitions, as we have it through kio."""

import dataclasses
import random
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupcoord.protocol.apis import APIS, Api
from groupcoord.protocol.codec.schema import parse_annotation
from tests.protocol import kafka_python
from tests.protocol.kafka_python import Definition
from tests.protocol.samples import EVERY_VERSION, codecs_of, make
from tools import messages

MESSAGES = [message for api in APIS.values() for message in (api.request, api.response)]

# Where Kafka's class would hold "" and Kafka's code always says null when there is nothing.
NULL_BY_DEFAULT = {
    "AlterConfigsResponse.responses.error_message",
    "AlterPartitionReassignmentsResponse.error_message",
    "AlterPartitionReassignmentsResponse.responses.partitions.error_message",
    "CreateTopicsResponse.topics.configs.value",
    "CreateTopicsResponse.topics.error_message",
    "DescribeConfigsResponse.results.configs.documentation",
    "DescribeConfigsResponse.results.error_message",
    "ElectLeadersResponse.replica_election_results.partition_result.error_message",
    "IncrementalAlterConfigsResponse.responses.error_message",
    "JoinGroupResponse.protocol_name",
    "LeaveGroupResponse.members.group_instance_id",
    "ListPartitionReassignmentsResponse.error_message",
    "UpdateFeaturesResponse.error_message",
    "UpdateFeaturesResponse.results.error_message",
}

# One class where Kafka has one for old versions and one with more fields for new ones, by the name of Kafka's old one.
ONE_CLASS = {
    "OffsetFetchRequestTopic": "OffsetFetchRequestTopics",
    "OffsetFetchResponsePartition": "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic": "OffsetFetchResponseTopics",
}
NEW_FIELDS = {"OffsetFetchRequest.topics": {"topic_id"}, "OffsetFetchResponse.topics": {"topic_id"}}


@pytest.mark.untraced
@pytest.mark.slow
def test_kafka_python_reads_what_we_write_and_writes_what_we_read() -> None:
    for api, version in EVERY_VERSION:
        for codec in codecs_of(api, version):
            _compare(codec, random.Random(version))


@pytest.mark.untraced
@pytest.mark.slow
@given(st.sampled_from(EVERY_VERSION), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_so_it_is_with_any_values(which: tuple[Api, int], is_response: bool, chance: random.Random) -> None:
    _compare(codecs_of(*which)[is_response], chance)


def _compare(codec: Any, chance: random.Random) -> None:
    ours = make(codec.schema, chance)
    name, version = codec.schema.message.__name__, codec.schema.version
    written = codec.encode(ours)
    theirs = kafka_python.read(name, version, written)
    assert not list(kafka_python.differences(codec.schema, ours, theirs))
    assert kafka_python.write(theirs, version) == written
    assert codec.decode_from(written, 0) == (ours, len(written))


def test_fields_and_defaults_are_kafkas() -> None:
    for api in APIS.values():
        fields = [
            field
            for message in (api.request, api.response)
            for field in _fields(api, message, Definition.of(message.__name__))
        ]
        differing = {path for path, ours, kafkas in fields if ours not in (kafkas, dataclasses.MISSING)}
        assert differing == {path for path in NULL_BY_DEFAULT if path.startswith(f"{api.name}Re")}


def _fields(
    api: Api, message: type[Any], definition: Definition, path: str = ""
) -> Iterator[tuple[str, object, object]]:
    """(path, our default, Kafka's default) of every field, and that is all of them."""
    path = path or message.__name__
    ours = {field.name: field for field in dataclasses.fields(message)}
    for kafkas in definition.fields():
        if not kafkas.is_in(api):
            continue
        name = kafkas.name
        if name == "authorized_operations":  # kafka-python leaves out whose they are
            (name,) = (longer for longer in ours if longer.endswith(name))
        field = ours.pop(name)
        is_struct = kafkas.item_type[0].isupper()
        if is_struct:
            yield from _fields(api, parse_annotation(field.type).inner, kafkas, f"{path}.{name}")
        if not is_struct or parse_annotation(field.type).is_array:
            yield f"{path}.{name}", field.default, kafkas.default
    assert ours.keys() == NEW_FIELDS.get(path, set())


def test_every_class_says_what_it_is() -> None:
    for message in MESSAGES:
        for cls in _classes(message):
            assert cls.__doc__
            assert cls.__doc__[0].isupper()


def _classes(message: type[Any]) -> Iterator[type[Any]]:
    yield message
    for field in dataclasses.fields(message):
        inner = parse_annotation(field.type).inner
        if isinstance(inner, type) and dataclasses.is_dataclass(inner):
            yield from _classes(inner)


@pytest.mark.untraced
@pytest.mark.slow
def test_the_tool_that_writes_messages_would_write_these_fields() -> None:
    for api in APIS.values():
        package = messages.package_of(api.name)
        versions = [version for version in messages.versions_of(package) if api.serves(version)]
        for kind, message in (("request", api.request), ("response", api.response)):
            written = {each.name: each for each in messages.message_classes(package, kind, versions)}
            # The tool puts the name of the message before a name that its request and its response both have.
            ours = {_short(cls.__name__, message, written): cls for cls in _classes(message)}
            assert set(ours) == set(written) - ONE_CLASS.keys()
            for name, cls in ours.items():
                types = {field.name: parse_annotation(field.type) for field in dataclasses.fields(cls)}
                assert {
                    field.name: (ONE_CLASS.get(field.type_name, field.type_name), field.is_array, field.is_nullable)
                    for field in written[name].fields.values()
                } == {
                    field: (
                        _short(kind.inner.__name__, message, written),
                        kind.is_array,
                        kind.is_nullable,
                    )
                    for field, kind in types.items()
                }


def _short(name: str, message: type[Any], written: Collection[str]) -> str:
    return _KIO_NAMES.get(name) or (name if name in written else name.removeprefix(message.__name__))


_KIO_NAMES = {"UUID": "uuid.UUID", "LazyBytes": "bytes"}


def test_the_tool_writes_an_api_that_is_not_there() -> None:
    source = messages.formatted(messages.draft("ShareGroupHeartbeat"))
    assert "class ShareGroupHeartbeatRequest:" in source
    assert "ShareGroupHeartbeatResponse(\n        error_code=error, member_epoch=0" in source
    assert "groups=(GROUP_ID,)" in source


def test_the_index_of_messages_is_fresh() -> None:
    assert messages.formatted(messages.index()) == (messages.PROTOCOL / "messages.py").read_text(encoding="utf-8")
