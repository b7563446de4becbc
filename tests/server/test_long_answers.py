"""Long answers are read from the log while their peer takes them, whatever happens to either meanwhile."""

import asyncio

import pytest

from groupcoord.broker.log_segment import LogSegment, RecordSlice
from groupcoord.core.effects import Call, Effect, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.framing import encode_response
from groupcoord.protocol.messages import FetchRequest, FetchResponse
from groupcoord.server.connection import CHUNK_BYTES, READ_AHEAD_BYTES, TURN_BYTES, in_chunks
from tests.server.sockets import Client, Run, running
from tests.server.support import HEARTBEAT, FakeCluster, Peer, Shell, frame, heartbeat

FETCH = APIS[ApiKey.FETCH]
LONG = 3 * TURN_BYTES + 1000


class Fetching:
    """Answers every Fetch with all of a segment of ``size`` bytes."""

    def __init__(self, size: int = LONG) -> None:
        self.segment = LogSegment(0, 0)
        self.segment.data += bytes(range(256)) * (size // 256 + 1)
        self.size = size

    def __call__(self, call: Call, _: object = None) -> list[Effect]:
        return [Reply(call, self.response())]

    def response(self) -> FetchResponse:
        data = PartitionData(partition_index=0, high_watermark=7, records=RecordSlice(self.segment, 0, self.size))
        return FetchResponse(responses=(FetchableTopicResponse(partitions=(data,)),))

    def frame(self, correlation_id: int = 1) -> bytes:
        return encode_response(FETCH, FETCH.max_version, correlation_id, self.response())


@pytest.fixture
def shell() -> Shell:
    return Shell()


@pytest.fixture
def fetching(shell: Shell) -> Fetching:
    made = Fetching()
    shell.cluster.on[ApiKey.FETCH] = made
    return made


def fetch() -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=0)


def written(peer: Peer) -> bytes:
    return b"".join(peer.transport.writes)


def read_all(peer: Peer) -> None:
    peer.read()
    peer.shell.loop.settle()


def test_who_reads_gets_all_of_it_in_order(shell: Shell, fetching: Fetching) -> None:
    peer = shell.peer()
    peer.send(frame(HEARTBEAT, heartbeat()) + frame(FETCH, fetch(), correlation_id=2) + frame(HEARTBEAT, heartbeat()))
    assert peer.correlation_ids() == [1, 2, 1]
    assert fetching.frame(2) in written(peer)
    assert max(map(len, peer.transport.writes)) <= CHUNK_BYTES
    assert fetching.segment.slices == 0


def test_who_does_not_read_has_one_piece_in_memory(shell: Shell, fetching: Fetching) -> None:
    peer = shell.slow_peer(FETCH, fetch())
    assert (len(written(peer)), peer.transport.unread) == (CHUNK_BYTES, CHUNK_BYTES)
    assert fetching.segment.slices == 1
    peer.read_on()
    assert (len(written(peer)), peer.transport.unread) == (2 * CHUNK_BYTES, CHUNK_BYTES)
    read_all(peer)
    assert written(peer) == fetching.frame()


def test_it_waits_for_the_answers_before_it(shell: Shell, fetching: Fetching) -> None:
    peer = shell.peer()
    peer.transport.full = True
    peer.send(frame(HEARTBEAT, heartbeat()) + frame(FETCH, fetch(), correlation_id=2))
    assert len(written(peer)) < 100
    peer.read_on()
    assert peer.transport.unread == CHUNK_BYTES
    read_all(peer)
    assert written(peer).endswith(fetching.frame(2))


def test_nobody_has_the_loop_for_all_of_a_long_answer(shell: Shell, fetching: Fetching) -> None:
    peer = shell.peer()
    peer.connection.data_received(frame(FETCH, fetch()))
    shell.loop.ctx()
    assert len(written(peer)) == TURN_BYTES
    shell.loop.ctx()
    assert len(written(peer)) == 2 * TURN_BYTES


def test_the_next_request_waits_until_all_is_written(shell: Shell, fetching: Fetching) -> None:
    peer = shell.slow_peer(FETCH, fetch())
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=2)
    peer.read_on()
    assert len(shell.cluster.calls) == 1
    while peer.transport.is_reading():
        peer.ask(HEARTBEAT, heartbeat(), correlation_id=2)
    assert len(peer.connection._frames) <= READ_AHEAD_BYTES + 100
    read_all(peer)
    assert peer.correlation_ids()[:2] == [1, 2]


def test_the_last_piece_may_fill_the_transport_too(shell: Shell, fetching: Fetching) -> None:
    fetching.size = CHUNK_BYTES
    peer = shell.slow_peer(FETCH, fetch())
    peer.read_on()
    peer.ask(HEARTBEAT, heartbeat(), correlation_id=2)
    assert (written(peer), len(shell.cluster.calls)) == (fetching.frame(), 1)
    peer.read_on()
    assert peer.correlation_ids() == [1, 2]


def test_closing_writes_the_rest_first(shell: Shell, fetching: Fetching) -> None:
    peer = shell.slow_peer(FETCH, fetch())
    peer.connection.close()
    assert not peer.transport.is_closing()
    assert not peer.transport.is_reading()
    read_all(peer)
    assert written(peer) == fetching.frame()
    assert (peer.transport.is_closing(), peer.transport.aborted) == (True, False)


def test_closing_leaves_a_peer_that_is_not_read_from_as_it_is(shell: Shell, fetching: Fetching) -> None:
    peer = shell.slow_peer(FETCH, fetch())
    while peer.transport.is_reading():
        peer.ask(HEARTBEAT, heartbeat())
    peer.connection.close()
    read_all(peer)
    assert peer.transport.is_closing()
    assert len(shell.cluster.calls) == 1


def test_the_end_of_the_peers_requests_does_not_end_its_answer(shell: Shell, fetching: Fetching) -> None:
    peer = shell.slow_peer(FETCH, fetch())
    peer.end()
    read_all(peer)
    assert written(peer) == fetching.frame()
    assert peer.transport.is_closing()


@pytest.mark.parametrize("way", ["abort", "vanish"])
def test_an_end_at_once_lets_go_of_the_log(shell: Shell, fetching: Fetching, way: str) -> None:
    peer = shell.peer()
    peer.connection.data_received(frame(FETCH, fetch()))
    shell.loop.ctx()
    assert fetching.segment.slices == 1
    if way == "abort":
        peer.connection.abort()
    else:
        peer.vanish()
    assert fetching.segment.slices == 0
    shell.loop.settle()
    assert len(written(peer)) == TURN_BYTES


def test_an_answer_whose_records_are_gone_ends_the_connection(
    shell: Shell, fetching: Fetching, caplog: pytest.LogCaptureFixture
) -> None:
    peer = shell.slow_peer(FETCH, fetch())
    fetching.segment.forget()
    read_all(peer)
    assert peer.transport.aborted
    assert len(written(peer)) == CHUNK_BYTES
    assert "closing 127.0.0.1:50001: the rest of its answer cannot be read: <LogSegment" in caplog.text
    assert shell.serving_loop.unexpected_errors == []


def test_each_piece_that_is_read_is_activity(fetching: Fetching) -> None:
    shell = Shell(connections_max_idle_ms=10_000)
    shell.cluster.on[ApiKey.FETCH] = fetching
    reading, stuck = shell.slow_peer(FETCH, fetch()), shell.slow_peer(FETCH, fetch())
    shell.loop.advance(9)
    reading.read_on()
    shell.loop.advance(9)
    assert (reading.transport.aborted, stuck.transport.aborted) == (False, True)


@pytest.mark.slow
def test_a_shutdown_loses_nothing_of_an_answer_that_is_being_read(run: Run) -> None:
    fetching = Fetching(16 << 20)

    async def story() -> bytes:
        node = FakeCluster()
        node.on[ApiKey.FETCH] = fetching
        async with running(node) as server:
            client = await Client.connect(server)
            client.send(FETCH, fetch())
            begun = await client.reader.readexactly(4)
            assert fetching.segment.slices == 1
            shutting_down = asyncio.create_task(server.shutdown())
            rest = await client.reader.read(-1)
            await shutting_down
            await client.close()
        return begun + rest

    assert run(story()) == fetching.frame()
    assert fetching.segment.slices == 0


@pytest.mark.parametrize(
    ("parts", "chunks"),
    [
        ([], []),
        ([b""], []),
        ([b"a", b"", b"b"], [b"ab"]),
        ([b"ab", b"cd"], [b"abcd"]),
        ([b"abc", b"def", b"g"], [b"abcd", b"efg"]),
        ([b"abcdefghij"], [b"abcd", b"efgh", b"ij"]),
    ],
)
def test_parts_become_chunks_of_one_size(parts: list[bytes], chunks: list[bytes]) -> None:
    assert list(in_chunks(parts, 4)) == chunks


def test_a_part_is_read_when_its_chunk_is_due() -> None:
    asked: list[slice] = []

    class Run(bytes):
        def __getitem__(self, where: slice) -> bytes:  # type: ignore[override] # nobody asks for one byte
            asked.append(where)
            return super().__getitem__(where)

    chunks = in_chunks([b"head", Run(CHUNK_BYTES)])
    assert asked == []
    next(chunks)
    assert asked == [slice(0, CHUNK_BYTES - 4)]
