"""Codecs."""

import subprocess
import sys

import kio.static.primitive
import pytest

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.codec import message_codec
from groupcoord.protocol.codec.message_codec import codec_for
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.messages import HeartbeatRequest, HeartbeatResponse, JoinGroupResponse

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def test_there_is_one_codec_per_message_and_version() -> None:
    first = codec_for(HeartbeatRequest, "heartbeat", 4, "request")
    assert codec_for(HeartbeatRequest, "heartbeat", 4, "request") is first
    assert codec_for(HeartbeatRequest, "heartbeat", 3, "request") is not first
    assert first.flexible
    assert APIS[ApiKey.HEARTBEAT].request_codec(4) is first


def test_a_message_is_read_as_it_was_written() -> None:
    beat = codec_for(HeartbeatRequest, "heartbeat", 4, "request")
    assert beat.encode(BEAT).hex() == "0267" + "00000001" + "026d" + "00" + "00"
    assert beat.decode(beat.encode(BEAT)) == BEAT
    assert beat.decode_from(b"xx" + beat.encode(BEAT), 2) == (BEAT, 12)


def test_it_is_written_in_pieces() -> None:
    pieces: list[bytes] = []
    codec_for(HeartbeatResponse, "heartbeat", 1, "response").write(
        HeartbeatResponse(error_code=27, throttle_time_ms=5), pieces.append
    )
    assert b"".join(pieces).hex() == "00000005001b"


def test_what_follows_a_message_is_ignored() -> None:
    beat = codec_for(HeartbeatRequest, "heartbeat", 0, "request")
    assert beat.decode(beat.encode(BEAT) + b"more") == BEAT


def test_a_version_without_a_field_leaves_it_at_its_default() -> None:
    static = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i")
    beat = codec_for(HeartbeatRequest, "heartbeat", 2, "request")
    assert beat.decode(beat.encode(static)) == BEAT


def test_a_version_without_null_says_the_empty_string() -> None:
    """JoinGroup: no protocol was chosen."""
    turned_away = JoinGroupResponse(error_code=25, member_id="m")
    before, after = (codec_for(JoinGroupResponse, "join_group", version, "response") for version in (6, 7))
    assert before.decode(before.encode(turned_away)).protocol_name == ""
    assert after.decode(after.encode(turned_away)).protocol_name is None


def test_kio_does_not_find_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing it would take half a second, wherever it is installed."""
    for name in ("hypothesis", "kio.static.primitive", "kio.static._phantom"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("primitive", "_phantom"):
        monkeypatch.setattr(kio.static, name, getattr(kio.static, name))
    message_codec._import_kio()
    assert "kio.static.primitive" in sys.modules
    assert "hypothesis" not in sys.modules


@pytest.mark.slow
def test_it_is_imported_before_another_thread_can_look_for_hypothesis() -> None:
    program = "import sys, groupcoord.testing; print(*({'kio.static.primitive', 'hypothesis'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout == "kio.static.primitive\n"


def test_an_error_says_where() -> None:
    with pytest.raises(WireError) as caught:
        codec_for(HeartbeatRequest, "heartbeat", 4, "request").decode(b"xx\x02g\x00\x00\x00\x01\x00", 2)
    problem = caught.value
    assert (problem.api, problem.version, problem.field, problem.offset) == ("Heartbeat", 4, "member_id", 8)
    assert str(problem) == "Heartbeat v4, field member_id, offset 8: null where there must be a value"
