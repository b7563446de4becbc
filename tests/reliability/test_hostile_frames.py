"""A small version of the attack with hostile frames, and what a real Kafka makes of the same frames."""

import itertools
import socket
import struct
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from groupcoord.protocol.apis import APIS
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import parse_request
from tests.real_kafka import Broker
from tests.reliability.hostile import LAST, LAST_CORRELATION_ID, MOST_PARTITIONS, Frames, partitions_in
from tests.reliability.hostile_frames import SERVE, attack, topic_id_at
from tests.reliability.served import served
from tests.reliability.talk import Address

ID = uuid.UUID(int=1)
BESIDE_KAFKA = 5_000
PATIENCE_SECONDS = 1.0
LONGER_PATIENCE_SECONDS = 10.0
"""For frames of which the two servers differ: each is sent again by itself, because 64 at once wait long on a busy machine."""
MOST_DIFFERENCES = 50
"""More are no matter of patience, and not asked again."""
GLANCE_SECONDS = 0.05
"""What was not served by then waits for others, and the next frame is sent meanwhile."""
AT_ONCE = 64
LARGE_BYTES = 1_000_000
"""A broker sets aside what a frame announces, up to a hundred megabytes: of such frames one at a time is enough for it."""


@pytest.mark.slow
def test_a_case_follows_from_seed_and_number() -> None:
    assert Frames(1, ID).case(7) == Frames(1, ID).case(7)
    assert Frames(1, ID).case(7) != Frames(2, ID).case(7)


@pytest.mark.slow
def test_frames_are_spoiled_and_sound_and_none_creates_thousands_of_partitions() -> None:
    made = Frames(1, ID)
    frames = [frame for number in range(300) for frame in made.case(number).frames]
    sound = sum(_is_sound(frame) for frame in frames)
    assert len(frames) / 3 < sound < len(frames)
    assert max(map(partitions_in, frames)) <= MOST_PARTITIONS


def _is_sound(frame: bytes) -> bool:
    try:
        parse_request(frame[4:])
    except WireError:
        return False
    (size,) = struct.unpack_from(">i", frame)
    return bool(size == len(frame) - 4)


@pytest.mark.slow
@pytest.mark.clients
def test_the_server_lives_on_and_answers_the_others() -> None:
    outcome = attack(3_000, seed=11)
    assert outcome.problems == ()


def verdict(address: Address, frame: bytes, patience_seconds: float = PATIENCE_SECONDS) -> str:
    """What becomes of a connection that sends ``frame`` and a valid request behind it."""
    with socket.create_connection(address, patience_seconds) as connection:
        try:
            connection.sendall(frame + LAST)
            received = b""
            while not _answered(received):
                data = connection.recv(1 << 20)
                if not data:
                    return "closed"
                received += data
        except TimeoutError:
            return "waiting"
        except OSError:
            return "closed"
    return "answered"


def _answered(data: bytes) -> bool:
    at = 0
    while at + 8 <= len(data):
        size, correlation_id = struct.unpack_from(">ii", data, at)
        if correlation_id == LAST_CORRELATION_ID and at + 4 + size <= len(data):
            return True
        at += 4 + size
    return False


def single_frames(frames: Frames) -> Iterator[bytes]:
    """All frames that are sent whole, one by one."""
    for number in itertools.count():
        case = frames.case(number)
        if not case.leaves:
            yield from case.frames


@pytest.mark.real_kafka
@pytest.mark.slow
def test_connections_are_closed_where_a_real_kafka_closes_them(real_kafka: Broker, tmp_path: Path) -> None:
    host, _, port = real_kafka.bootstrap_servers.rpartition(":")
    kafka: Address = (host, int(port))
    with served(*SERVE, f"--data-dir={tmp_path}/data") as server, ThreadPoolExecutor(AT_ONCE) as askers:
        ours = server.address
        theirs_id, our_id = topic_id_at(kafka), topic_id_at(ours)
        asked = []
        for frame in itertools.islice(single_frames(Frames(5, theirs_id)), BESIDE_KAFKA):
            if int.from_bytes(frame[4:6], signed=True) not in APIS:
                continue  # a real Kafka serves some more
            expected = askers.submit(verdict, kafka, frame)
            found = askers.submit(verdict, ours, frame.replace(theirs_id.bytes, our_id.bytes))
            large = int.from_bytes(frame[:4], signed=True) > LARGE_BYTES
            wait((expected, found), None if large else GLANCE_SECONDS)
            asked.append((frame, expected, found))
        differing = [frame for frame, expected, found in asked if _differ(found.result(), expected.result())]
        differences = []
        for frame in differing[:MOST_DIFFERENCES]:
            expected_again = verdict(kafka, frame, LONGER_PATIENCE_SECONDS)
            found_again = verdict(ours, frame.replace(theirs_id.bytes, our_id.bytes), LONGER_PATIENCE_SECONDS)
            if _differ(found_again, expected_again):
                differences.append(f"{found_again} and not {expected_again}: {frame.hex()}")
    assert differences == []
    assert len(differing) <= MOST_DIFFERENCES


def _differ(found: str, expected: str) -> bool:
    """Whether one server closes what the other does not. Who waits for how long is a matter of groups and transactions."""
    return (found == "closed") != (expected == "closed")
