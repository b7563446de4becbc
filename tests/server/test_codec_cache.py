"""What is remembered is the same as what would be read or written anew."""

import pytest

from groupcoord.broker.log_segment import LogSegment, RecordSlice
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import encode_response, parse_request
from groupcoord.protocol.messages import FetchResponse, HeartbeatResponse, JoinGroupResponse
from groupcoord.server import connection
from groupcoord.server.connection import SHORT_BYTES, RequestCache, ResponseCache
from tests.server.support import HEARTBEAT, JOIN_GROUP, frame, heartbeat

FETCH = APIS[ApiKey.FETCH]


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: object) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *arguments: object) -> object:
        self.calls += 1
        return self.function(*arguments)  # type: ignore[operator]


def call(version: int = 4, correlation_id: int = 1) -> Call:
    return Call(1, correlation_id, HEARTBEAT, version, "client-1", "/127.0.0.1")


def test_a_repeated_request_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = Counted(parse_request)
    monkeypatch.setattr(connection, "parse_request", parse)
    requests = RequestCache(1, "/127.0.0.1")
    for correlation_id in (1, 2, -3, 2**31 - 1):
        asked, message = requests.read(frame(HEARTBEAT, heartbeat(), correlation_id=correlation_id)[4:])
        assert (asked, message) == (call(correlation_id=correlation_id), heartbeat())
        assert type(asked) is Call
    assert parse.calls == 1


@pytest.mark.parametrize("different", [{"message": heartbeat("other")}, {"message": heartbeat(), "version": 3}])
def test_a_different_request_is_parsed(different: dict[str, object]) -> None:
    requests = RequestCache(1, "/127.0.0.1")
    requests.read(frame(HEARTBEAT, heartbeat())[4:])
    again = frame(HEARTBEAT, **different)[4:]  # type: ignore[arg-type]
    asked, message = requests.read(again)
    assert (asked.version, message) == (parse_request(again).version, different["message"])


def test_a_request_that_cannot_be_read_is_not_taken_for_the_last_one() -> None:
    requests = RequestCache(1, "/127.0.0.1")
    whole = frame(HEARTBEAT, heartbeat())[4:]
    for broken in (b"", whole[:4], whole[:8], whole[:-1]):
        with pytest.raises(WireError):
            requests.read(broken)
        assert requests.read(whole)[1] == heartbeat()


def test_long_requests_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = Counted(parse_request)
    monkeypatch.setattr(connection, "parse_request", parse)
    requests = RequestCache(1, "/127.0.0.1")
    for _ in range(3):
        requests.read(frame(HEARTBEAT, heartbeat("m" * SHORT_BYTES))[4:])
    assert parse.calls == 3


def test_a_repeated_response_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Counted(encode_response)
    monkeypatch.setattr(connection, "encode_response", encode)
    responses, alive = ResponseCache(), HeartbeatResponse()
    for correlation_id in (1, 2, -3):
        expected = encode_response(HEARTBEAT, 4, correlation_id, alive)
        assert responses.write(call(correlation_id=correlation_id), alive) == expected
    assert encode.calls == 1


def test_a_different_response_version_or_api_is_written() -> None:
    responses, alive = ResponseCache(), HeartbeatResponse()
    responses.write(call(), alive)
    assert responses.write(call(version=0), alive) == encode_response(HEARTBEAT, 0, 1, alive)
    failed = HeartbeatResponse(error_code=25)
    assert responses.write(call(version=0), failed) == encode_response(HEARTBEAT, 0, 1, failed)
    joined = JoinGroupResponse(protocol_name="range", leader="m" * SHORT_BYTES, member_id="m", members=())
    for correlation_id in (1, 2):
        asked = Call(1, correlation_id, JOIN_GROUP, 9, "client-1", "/127.0.0.1")
        assert responses.write(asked, joined) == encode_response(JOIN_GROUP, 9, correlation_id, joined)


def test_calls_know_the_broker_they_came_to_and_its_listener() -> None:
    requests = RequestCache(1, "/127.0.0.1", broker=2, listener=3)
    data = frame(HEARTBEAT, heartbeat())[4:]
    calls = [requests.read(data)[0] for _ in range(2)]
    assert [(call.broker, call.listener) for call in calls] == [(2, 3), (2, 3)]


def test_a_long_fetch_is_in_parts_and_a_short_one_is_not() -> None:
    segment = LogSegment(0, 0)
    segment.data += b"records"
    asked = Call(1, 7, FETCH, 12, "client-1", "/127.0.0.1")
    for records in (b"records", RecordSlice(segment, 0, 7)):
        data = PartitionData(partition_index=0, high_watermark=0, records=records)
        response = FetchResponse(responses=(FetchableTopicResponse(topic="a", partitions=(data,)),))
        written = ResponseCache().write(asked, response)
        whole = encode_response(FETCH, 12, 7, response)
        assert isinstance(written, bytes) == isinstance(records, bytes)
        assert (written if isinstance(written, bytes) else b"".join(map(bytes, written))) == whole
        assert b"records" in whole
