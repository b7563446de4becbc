"""Transactions of clients in other languages: committed, aborted, fenced, timed out, and through kills of client and server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache

import confluent_kafka
import pytest
from confluent_kafka import IsolationLevel
from confluent_kafka.admin import OffsetSpec

from tests.clients.cluster import Cluster
from tests.clients.program_members import NoClient
from tests.clients.program_transactions import COMMANDS, Failed, TransactionalProgram
from tests.clients.restartable import PARAMETERS, Restartable, started
from tests.clients.support import PATIENCE_S, eventually, unique

pytestmark = [pytest.mark.slow, pytest.mark.minutes(2)]

LONG_MS = 600_000
SHORT_MS = 2000
"""Long enough for the records to be written that are then not committed."""

FENCED = {"java": "ProducerFencedException", "franz-go": "PRODUCER_FENCED", "kafkajs": "INVALID_PRODUCER_EPOCH"}
"""What a client says of a commit when its producer has a successor. kafkajs speaks EndTxn v1, which knows no other word."""

TOO_LATE = {"java": "InvalidTxnStateException", "franz-go": "INVALID_TXN_STATE", "kafkajs": "INVALID_PRODUCER_EPOCH"}
"""What a client says of a commit when its transaction has been aborted. Before KIP-890 this was not told from a successor."""

Start = Callable[[str], TransactionalProgram]


@pytest.fixture(scope="module", params=PARAMETERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restartable]:
    """A server that runs."""
    with started(request.param, tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def cluster(server: Restartable) -> Iterator[Cluster]:
    """The server, to look at."""
    cluster = Cluster(server.bootstrap)
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sequence[str]]:
    """The program of a client, which is built once. Raises NoClient where it cannot be."""
    return cache(lambda client: COMMANDS[client](tmp_path_factory.mktemp(client)))


@pytest.fixture(scope="module")
def start(server: Restartable, commands: Callable[[str], Sequence[str]]) -> Iterator[Start]:
    """Starts the program of a client; those that still run in the end are killed. Raises NoClient."""
    with ExitStack() as running:

        def starts(client: str) -> TransactionalProgram:
            program = TransactionalProgram([*commands(client), server.bootstrap])
            running.callback(program.kill)
            return program

        yield starts


@pytest.fixture(scope="module")
def program_of(start: Start) -> Start:
    """A program that all tests of a client speak to. Raises NoClient."""
    return cache(start)


@pytest.fixture(scope="module", params=COMMANDS)
def client(request: pytest.FixtureRequest) -> str:
    """Which client."""
    return str(request.param)


@pytest.fixture(scope="module")
def program(program_of: Start, client: str) -> TransactionalProgram:
    """The program of the client; skips where it cannot be run."""
    try:
        return program_of(client)
    except NoClient as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def programs(program_of: Start) -> dict[str, TransactionalProgram]:
    """Those of all clients that can be run here; skips where none can."""
    found = {}
    for client in COMMANDS:
        with suppress(NoClient):  # tests of that client alone say that they skip it
            found[client] = program_of(client)
    return found or pytest.skip("none of the clients can be run here")


def writes(program: TransactionalProgram, producer: str, topic: str, *values: str) -> None:
    """A transaction with records, which is not ended."""
    program(producer, "begin")
    for value in values:
        program(producer, "send", topic, value)


def ends(cluster: Cluster, topic: str) -> tuple[int, int]:
    """Where partition 0 ends for readers of what is committed, and for others."""
    place = confluent_kafka.TopicPartition(topic, 0)

    def end(isolation: IsolationLevel) -> int:
        asked = cluster.admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=isolation)
        return int(asked[place].result(PATIENCE_S).offset)

    return end(IsolationLevel.READ_COMMITTED), end(IsolationLevel.READ_UNCOMMITTED)


def read(program: TransactionalProgram, topic: str, last: str) -> tuple[list[str], list[str]]:
    """What the client finds up to ``last`` if it reads what is committed, and if it reads everything."""
    return (
        program("reader", "read", "read_committed", topic, last),
        program("reader", "read", "read_uncommitted", topic, last),
    )


def has_committed(cluster: Cluster, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Wait for it: a commit is answered before the groups of the transaction have its marker."""
    eventually(lambda: cluster.committed(group) == offsets, saying=f"{group} has committed {offsets}")


def test_readers_of_what_is_committed_see_no_more(cluster: Cluster, program: TransactionalProgram) -> None:
    topic, producer = cluster.topic(), unique("producer")
    program(producer, "open", unique("id"), LONG_MS)
    writes(program, producer, topic, "a", "b")
    assert ends(cluster, topic) == (0, 2)
    assert program("reader", "read", "read_uncommitted", topic, "b") == ["a", "b"]
    program(producer, "commit")
    writes(program, producer, topic, "c")
    program(producer, "abort")
    writes(program, producer, topic, "d")
    program(producer, "commit")
    assert read(program, topic, "d") == (["a", "b", "d"], ["a", "b", "c", "d"])


def test_a_successor_fences_its_predecessor(cluster: Cluster, program: TransactionalProgram, client: str) -> None:
    topic, transactional_id = cluster.topic(), unique("id")
    zombie, successor = unique("zombie"), unique("successor")
    program(zombie, "open", transactional_id, LONG_MS)
    writes(program, zombie, topic, "of-a-zombie")
    program(successor, "open", transactional_id, LONG_MS)
    writes(program, successor, topic, "of-its-successor")
    with pytest.raises(Failed, match=f"^{FENCED[client]}$"):
        program(zombie, "commit")
    program(successor, "commit")
    assert read(program, topic, "of-its-successor") == (["of-its-successor"], ["of-a-zombie", "of-its-successor"])


def test_a_transaction_that_takes_too_long_is_aborted(
    cluster: Cluster, program: TransactionalProgram, client: str
) -> None:
    topic, transactional_id = cluster.topic(), unique("id")
    slow, successor = unique("slow"), unique("successor")
    program(slow, "open", transactional_id, SHORT_MS)
    writes(program, slow, topic, "late")
    eventually(lambda: ends(cluster, topic) == (2, 2), saying="it has an end")
    with pytest.raises(Failed, match=f"^{TOO_LATE[client]}$"):
        program(slow, "commit")
    program(successor, "open", transactional_id, LONG_MS)
    writes(program, successor, topic, "in-time")
    program(successor, "commit")
    assert read(program, topic, "in-time") == (["in-time"], ["late", "in-time"])


def test_offsets_of_a_group_count_with_the_transaction(
    cluster: Cluster, group: str, program: TransactionalProgram
) -> None:
    source, target, member = cluster.topic(), cluster.topic(), unique("member")
    program(member, "open", unique("id"), LONG_MS, group, source)
    cluster.produce(source, ["a", "b", "c"])
    program(member, "transform", target, 3, "commit")
    has_committed(cluster, group, {(source, 0): 3})
    cluster.produce(source, ["d"])
    program(member, "transform", target, 1, "abort")
    assert cluster.committed(group) == {(source, 0): 3}
    cluster.produce(source, ["e"])
    program(member, "transform", target, 2, "commit")
    has_committed(cluster, group, {(source, 0): 5})
    assert read(program, target, "E") == (["A", "B", "C", "D", "E"], ["A", "B", "C", "D", "D", "E"])


def leaves_open(cluster: Cluster, doomed: TransactionalProgram, program: TransactionalProgram) -> Iterator[None]:
    """A program is killed in a transaction, and then it yields; its successor waits until the group knows."""
    source, target, group, member = cluster.topic(), cluster.topic(), unique("group"), unique("member")
    opening = ("open", unique("id"), LONG_MS, group, source)
    doomed(member, *opening)
    cluster.produce(source, ["a", "b"])
    doomed(member, "transform", target, 2, "commit")
    cluster.produce(source, ["c"])
    doomed(member, "transform", target, 1, "leave")
    doomed.kill()

    yield

    program(member, *opening)
    cluster.produce(source, ["d"])
    program(member, "transform", target, 2, "commit")
    has_committed(cluster, group, {(source, 0): 4})
    assert read(program, target, "D") == (["A", "B", "C", "D"], ["A", "B", "C", "C", "D"])


def test_what_killed_programs_left_open_is_done_once_by_their_successors(
    cluster: Cluster, start: Start, programs: dict[str, TransactionalProgram]
) -> None:
    lives = [leaves_open(cluster, start(client), program) for client, program in programs.items()]
    for life in lives:
        next(life)
    for life in lives:  # the groups miss the dead by then, or soon
        assert list(life) == []


def lives_through_a_restart(cluster: Cluster, program: TransactionalProgram) -> Iterator[None]:
    """Transactions of a client before a restart of the server, which is where it yields, and after it."""
    topic, source, target = cluster.topic(), cluster.topic(), cluster.topic()
    group, producer, member = unique("group"), unique("producer"), unique("member")
    program(producer, "open", unique("id"), LONG_MS)
    writes(program, producer, topic, "aborted")
    program(producer, "abort")
    writes(program, producer, topic, "before")
    program(member, "open", unique("id"), LONG_MS, group, source)
    cluster.produce(source, ["a", "b"])
    program(member, "transform", target, 2, "commit")

    yield

    newcomer = unique("newcomer")  # waits until what was open is known again, as kafkajs does with no commit
    program(newcomer, "open", unique("id"), LONG_MS)
    writes(program, newcomer, topic, "of-a-newcomer")
    program(newcomer, "commit")
    program(producer, "send", topic, "after")
    program(producer, "commit")
    cluster.produce(source, ["c"])
    program(member, "transform", target, 1, "commit")
    has_committed(cluster, group, {(source, 0): 3})
    # franz-go aborts, and takes its records once more, if it could not reach its group meanwhile.
    assert program("reader", "read", "read_committed", target, "C") == ["A", "B", "C"]
    assert read(program, topic, "after") == (
        ["before", "of-a-newcomer", "after"],
        ["aborted", "before", "of-a-newcomer", "after"],
    )


def test_transactions_go_on_when_the_server_was_restarted(
    cluster: Cluster, server: Restartable, programs: dict[str, TransactionalProgram]
) -> None:
    lives = [lives_through_a_restart(cluster, program) for program in programs.values()]
    for life in lives:
        next(life)
    server.end()
    server.start()
    for life in lives:
        assert list(life) == []
