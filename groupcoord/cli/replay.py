"""``groupcoord replay``: replays a recording of ``groupcoord proxy`` against groupcoord, and shows responses that differ."""

import argparse
from pathlib import Path

from groupcoord.cli.main import complain
from groupcoord.proxy.recording import RecordingError, frames_of
from groupcoord.proxy.replay import replay


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``replay``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Send the requests that groupcoord proxy --record has recorded to a groupcoord cluster in this
process, with the times of the recording as its clock, and show each response that differs from
the recorded one. The exit code is 0 if all are equal, 1 if some differ, 2 if the file is not a
recording."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the recording")


def run(arguments: argparse.Namespace) -> int:
    """Replay the recording; returns the exit code."""
    try:
        text = arguments.file.read_text(encoding="utf-8")
        found = replay(frames_of(text.splitlines()))
    except OSError as problem:
        return complain("replay", f"cannot read {arguments.file}: {problem.strerror}", 2)
    except (RecordingError, UnicodeDecodeError) as problem:
        reason = str(problem) if isinstance(problem, RecordingError) else "this is not a recording: it is not text"
        return complain("replay", f"{arguments.file}: {reason}", 2)
    for step in found.different:
        print(step.text())
    for left_out in found.left_out:
        print(f"left out: {left_out}")
    differ = len(found.different)
    print(f"{len(found.steps)} answers compared, {differ or 'none'} {'differs' if differ == 1 else 'differ'}")
    return 1 if differ else 0
