"""The form of a recording."""

import pytest

from groupcoord.proxy.recording import RecordedFrame, RecordingError, frames_of, header, line_of

FRAME = RecordedFrame(5, 1, "kafka:9092", "client", b"\x00\xff")


def test_what_is_written_is_read() -> None:
    lines = [header(), line_of(FRAME), line_of(FRAME._replace(sender="broker", frame=b""))]
    assert frames_of(lines) == [FRAME, FRAME._replace(sender="broker", frame=b"")]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "there is no frame in it"),
        ([header()], "there is no frame in it"),
        (["hello"], "this is not a recording: its first line does not say so"),
        (["{}"], "this is not a recording: its first line does not say so"),
        (["[]"], "this is not a recording: its first line does not say so"),
        (
            ['{"schema": "groupcoord-recording", "version": 2}'],
            "this is a recording of version 2; version 1 can be read",
        ),
        ([header(), "{"], "line 2 is not a frame of a recording: "),
        ([header(), line_of(FRAME)[:-10]], "line 2 is not a frame of a recording: "),
        (
            [header(), line_of(FRAME).replace("client", "nobody")],
            "line 2 is not a frame of a recording: a frame from 'nobody'",
        ),
        ([header(), line_of(FRAME).replace("AP8=", "!!")], "line 2 is not a frame of a recording: "),
    ],
)
def test_what_is_no_recording_is_refused(lines: list[str], reason: str) -> None:
    with pytest.raises(RecordingError) as refused:
        frames_of(lines)
    assert str(refused.value).startswith(reason)
