"""A synchronous client of the control API::

    with ControlClient("http://127.0.0.1:9093") as control:
        with control.create_broker(topics={"orders": 6}, clock="manual") as kafka:
            ...                                        # any client, at kafka.status().address
            kafka.group("app").wait_stable(3)
            kafka.clock.advance(46)

Its methods are those of ``groupcoord.Cluster``, without ``await``. Needs ``groupcoord[control]``.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from groupcoord.assignors import TopicPartition
from groupcoord.control.client_parts import ControlledClock, ControlledController, ControlledNode
from groupcoord.control.models import (
    AppendRuleState,
    Entries,
    Entry,
    FaultRuleState,
    Group,
    HeldRequest,
    Lag,
    NewBroker,
    Offset,
    Problem,
    Problems,
    RecordAnswer,
    RecordData,
    RecordPlace,
    Status,
    TopicState,
    Transaction,
)
from groupcoord.testing.waiting import TIMEOUT_S, WaitTimeoutError

A = TypeVar("A")

_ENTRY = 'data: {"seq"'
GRACE_S = 30.0
"""How long the client waits for a response beyond the ``timeout`` of a wait (seconds)."""


class ControlError(Exception):
    """The control API refused a request; the text says why, and ``problem`` names the wrong fields."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}")
        self.problem = problem


class ControlClient:
    """Controls the broker at ``base_url``, such as ``http://127.0.0.1:9093`` or ``http://127.0.0.1:9093/brokers/a``.

    Every wait takes ``timeout`` (seconds; 10 unless given) and raises WaitTimeoutError, which says what the broker waits for.
    Every method raises ControlError if the request is refused, and httpx.TransportError if the server cannot be reached.
    """

    def __init__(self, base_url: str, token: str | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self._token = token
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=self.base_url, headers=headers, timeout=GRACE_S)
        self.clock = ControlledClock(self)
        self.controller = ControlledController(self)
        self.faults = ControlledFaults(self)
        self.appends = ControlledAppends(self)
        self.trace = ControlledTrace(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self, method: str, path: str, body: Any = None, *, timeout: float | None = None, **query: Any
    ) -> httpx.Response:
        """Send any request. Query parameters that are None are left out; ``timeout`` is that of a wait (seconds)."""
        if timeout is not None:
            query["timeout"] = f"{timeout:f}s"
        given = {name: _parameter(value) for name, value in query.items() if value is not None}
        patience_s = GRACE_S + (TIMEOUT_S if timeout is None else timeout)
        answer = self._http.request(method, path, params=given, json=body, timeout=patience_s)
        _raise_problem(answer)
        return answer

    def read(self, kind: type[A], method: str, path: str, body: Any = None, **options: Any) -> A:
        """As ``request``, with the JSON of the response parsed as a ``kind``."""
        return TypeAdapter(kind).validate_json(self.request(method, path, body, **options).content)

    @contextmanager
    def stream(self, path: str, query: Mapping[str, Any]) -> Iterator[Iterator[str]]:
        """The lines of a streamed response, as they come."""
        with self._http.stream("GET", path, params=dict(query), timeout=httpx.Timeout(GRACE_S)) as answer:
            if not answer.is_success:
                answer.read()
            _raise_problem(answer)
            yield answer.iter_lines()

    # Brokers.

    def status(self) -> Status:
        """The broker's addresses, clock, topics and groups."""
        return self.read(Status, "GET", "/status")

    @property
    def address(self) -> str:
        """``host:port``: the bootstrap server for Kafka's clients."""
        return self.status().address

    def list_brokers(self) -> list[Status]:
        """All brokers of the server process."""
        return self.read(list[Status], "GET", "/brokers")

    def broker(self, name: str) -> "ControlClient":
        """A client for the broker of that name. Call it on the client of the first broker."""
        return ControlClient(f"{self.base_url}/brokers/{quote(name, safe='')}", self._token)

    @contextmanager
    def create_broker(self, **settings: Any) -> "Iterator[ControlClient]":
        """A client for one more broker, which exists while the block runs; ``settings`` are the fields of NewBroker.

        The end of the block raises an AssertionError for what ``check`` would return; it is a note if the block has failed.
        """
        body = NewBroker(**settings).model_dump(exclude_unset=True)
        made = self.read(Status, "POST", "/brokers", body)
        with self.broker(made.name) as client:
            try:
                yield client
            except BaseException as error:
                for problem in self.delete_broker(made.name):
                    error.add_note(problem)
                raise
            if problems := self.delete_broker(made.name):
                raise AssertionError("\n".join(problems))

    def delete_broker(self, name: str) -> list[str]:
        """End that broker; returns what ``check`` would have returned."""
        return self.read(Problems, "DELETE", f"/brokers/{quote(name, safe='')}").problems

    def check(self) -> list[str]:
        """What should fail a test: unexpected errors of the server, and rules that never acted."""
        return self.read(Problems, "POST", "/check").problems

    def reset(self) -> list[str]:
        """Replace it by a fresh broker at the same address; returns what ``check`` would have returned."""
        return self.read(Problems, "POST", "/reset").problems

    def stop(self) -> None:
        """Stop the broker: close its port and all connections."""
        self.request("POST", "/stop")

    def restart(self) -> Status:
        """Stop the broker, and start it again on the same port."""
        return self.read(Status, "POST", "/restart")

    def report(self, *, after: int = 0) -> str:
        """The report that a failed test shows, as text."""
        return self.request("GET", "/report", after=after).text

    def node(self, node_id: int) -> ControlledNode:
        """The broker of this cluster with that id."""
        return ControlledNode(self, node_id)

    # Topics.

    def list_topics(self, *, internal: bool = False) -> list[TopicState]:
        """All topics; with ``internal`` also Kafka's internal ones."""
        return self.read(list[TopicState], "GET", "/topics", internal=internal)

    def topic(self, name: str) -> TopicState:
        """The topic of that name, with its partitions."""
        return self.read(TopicState, "GET", _path("topics", name))

    def create_topic(
        self, name: str, partitions: int = 1, *, configs: Mapping[str, object] | None = None
    ) -> TopicState:
        """Create a topic; ``configs`` are topic configs."""
        body = {"name": name, "partitions": partitions, "configs": dict(configs or {})}
        return self.read(TopicState, "POST", "/topics", body)

    def add_partitions(self, topic: str, more: int) -> TopicState:
        """Add ``more`` partitions to ``topic``."""
        return self.read(TopicState, "POST", _path("topics", topic, "partitions"), {"more": more})

    def delete_topic(self, topic: str) -> None:
        """Delete ``topic``, and the offsets committed for it."""
        self.request("DELETE", _path("topics", topic))

    def move_leader(self, topic: str, partition: int, to: int) -> TopicState:
        """Make the broker with the id ``to`` the leader of a partition."""
        return self.read(TopicState, "POST", _path("topics", topic, "leader"), {"partition": partition, "to": to})

    def produce(
        self,
        topic: str,
        *values: str,
        key: str | None = None,
        partition: int | None = None,
        records: Iterable[RecordData] = (),
    ) -> list[RecordPlace]:
        """Append ``values``, and ``records`` with keys, headers and so on of their own; returns the offset of each."""
        given = [RecordData(value=value, key=key, partition=partition) for value in values]
        body = {"records": [each.model_dump(exclude_none=True) for each in (*given, *records)]}
        return self.read(list[RecordPlace], "POST", _path("topics", topic, "records"), body)

    def records(
        self, topic: str, partition: int | None = None, *, isolation: str = "read_committed"
    ) -> list[RecordAnswer]:
        """The records of ``topic`` that a consumer of that isolation level can read now."""
        path = _path("topics", topic, "records")
        return self.read(list[RecordAnswer], "GET", path, partition=partition, isolation=isolation)

    def wait_records(
        self,
        topic: str,
        count: int,
        partition: int | None = None,
        *,
        isolation: str = "read_committed",
        timeout: float | None = None,
    ) -> list[RecordAnswer]:
        """Wait until ``records`` returns at least ``count``; returns them."""
        path, asked = _path("topics", topic, "wait"), {"partition": partition, "isolation": isolation}
        return self.read(list[RecordAnswer], "GET", path, timeout=timeout, count=count, **asked)

    # Groups and transactions.

    def list_groups(self) -> list[Group]:
        """All groups that exist."""
        return self.read(list[Group], "GET", "/groups")

    def group(self, name: str) -> "ControlledGroup":
        """The group of that name, whether it exists or not."""
        return ControlledGroup(self, name)

    def list_transactions(self) -> list[Transaction]:
        """All transactional ids that exist."""
        return self.read(list[Transaction], "GET", "/transactions")

    def transaction(self, transactional_id: str) -> "ControlledTransaction":
        """The transactional id and its transaction, whether it exists or not."""
        return ControlledTransaction(self, transactional_id)


class ControlledGroup:
    """``control.group(name)``."""

    def __init__(self, client: ControlClient, name: str) -> None:
        self.name = name
        self._client = client

    def describe(self) -> Group:
        """The group as it is now; its state is Dead if it does not exist."""
        return self._client.read(Group, "GET", _path("groups", self.name))

    def offsets(self) -> list[Offset]:
        """All committed offsets."""
        return self._client.read(list[Offset], "GET", _path("groups", self.name, "offsets"))

    def lag(self) -> list[Lag]:
        """The lag of each partition."""
        return self._client.read(list[Lag], "GET", _path("groups", self.name, "lag"))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> list[Offset]:
        """Commit ``offsets`` as an administrator does, for a group without members: ``{("orders", 0): 5}``."""
        each = [{"topic": topic, "partition": number, "offset": at} for (topic, number), at in offsets.items()]
        return self._client.read(list[Offset], "PUT", _path("groups", self.name, "offsets"), {"offsets": each})

    def delete_offsets(self, *partitions: TopicPartition) -> None:
        """Delete the committed offsets of ``partitions``, such as ``("orders", 0)``."""
        named = [f"{topic}:{number}" for topic, number in partitions]
        self._client.request("DELETE", _path("groups", self.name, "offsets"), partition=named)

    def delete(self) -> None:
        """Delete the group, and its offsets."""
        self._client.request("DELETE", _path("groups", self.name))

    # Waiting.

    def wait_stable(
        self,
        members: int | None = None,
        *,
        generation: int | None = None,
        epoch: int | None = None,
        timeout: float | None = None,
    ) -> Group:
        """Wait until it is Stable; if given, with so many ``members``, in that ``generation`` or ``epoch`` or a later one."""
        stable = "any" if members is None else members
        return self._wait(timeout, stable=stable, generation=generation, epoch=epoch)

    def wait_generation(self, number: int, *, timeout: float | None = None) -> Group:
        """Wait for the beginning of that generation or a later one."""
        return self._wait(timeout, generation=number)

    def wait_epoch(self, number: int, *, timeout: float | None = None) -> Group:
        """Wait until a consumer group is at that epoch or a later one."""
        return self._wait(timeout, epoch=number)

    def wait_reconciled(self, *members: str, epoch: int | None = None, timeout: float | None = None) -> Group:
        """Wait until ``members`` of a consumer group, or all, have reached their target assignment."""
        return self._wait(timeout, reconciled=",".join(members) or "all", epoch=epoch)

    def wait_rebalancing(self, *, timeout: float | None = None) -> Group:
        """Wait until it rebalances."""
        return self._wait(timeout, rebalancing=True)

    def wait_empty(self, *, timeout: float | None = None) -> Group:
        """Wait until it exists and has no members."""
        return self._wait(timeout, empty=True)

    def wait_dead(self, *, timeout: float | None = None) -> Group:
        """Wait until there is no such group."""
        return self._wait(timeout, dead=True)

    def wait_committed(self, topic: str, partition: int, offset: int, *, timeout: float | None = None) -> Group:
        """Wait until that offset or a later one is committed."""
        return self._wait(timeout, committed=f"{topic}:{partition}:{offset}")

    def _wait(self, timeout: float | None, **condition: Any) -> Group:
        return self._client.read(Group, "GET", _path("groups", self.name, "wait"), timeout=timeout, **condition)

    # Acting.

    def remove_member(self, member: str) -> Group:
        """Remove a member, as an administrator does."""
        return self._act("remove-member", {"member": member})

    def expire_member(self, member: str) -> Group:
        """Let the session of a member time out now."""
        return self._act("expire-member", {"member": member})

    def fence_member(self, instance_id: str) -> Group:
        """Let another member take over that group.instance.id, so that the static member is fenced."""
        return self._act("fence-member", {"instance_id": instance_id})

    def force_rebalance(self, reason: str = "the test wants it") -> Group:
        """Start a rebalance: the members of the classic group have to join again."""
        return self._act("force-rebalance", {"reason": reason})

    def unload_coordinator(self) -> Group:
        """Unload the coordinator of the group, until ``load_coordinator``."""
        return self._act("unload-coordinator")

    def load_coordinator(self) -> Group:
        """Load the coordinator of the group again."""
        return self._act("load-coordinator")

    def move_coordinator(self, to: int) -> Group:
        """Move the coordinator of the group to the broker with the id ``to``."""
        return self._act("move-coordinator", {"to": to})

    def _act(self, verb: str, body: Any = None) -> Group:
        return self._client.read(Group, "POST", _path("groups", self.name, verb), body)


class ControlledTransaction:
    """``control.transaction(transactional_id)``."""

    def __init__(self, client: ControlClient, name: str) -> None:
        self.name = name
        self._client = client

    def describe(self) -> Transaction:
        """The transactional id as it is now; its state is Dead if it does not exist."""
        return self._client.read(Transaction, "GET", _path("transactions", self.name))

    def wait_state(self, *states: str, timeout: float | None = None) -> Transaction:
        """Wait until it is in one of ``states``."""
        return self._wait(timeout, state=states)

    def wait_ongoing(self, *topics: str, timeout: float | None = None) -> Transaction:
        """Wait until a transaction is open, with a partition of each of ``topics`` in it."""
        return self._wait(timeout, ongoing=",".join(topics) or "any")

    def wait_committed(self, *, timeout: float | None = None) -> Transaction:
        """Wait until its last transaction is committed, with a transaction marker in every partition."""
        return self._wait(timeout, committed=True)

    def wait_aborted(self, *, timeout: float | None = None) -> Transaction:
        """Wait until its last transaction is aborted, with a transaction marker in every partition."""
        return self._wait(timeout, aborted=True)

    def _wait(self, timeout: float | None, **condition: Any) -> Transaction:
        path = _path("transactions", self.name, "wait")
        return self._client.read(Transaction, "GET", path, timeout=timeout, **condition)

    def abort(self) -> Transaction:
        """Make the coordinator abort the open transaction."""
        return self._act("abort")

    def unload_coordinator(self) -> Transaction:
        """Unload the transaction coordinator of the id, until ``load_coordinator``."""
        return self._act("unload-coordinator")

    def load_coordinator(self) -> Transaction:
        """Load the transaction coordinator of the id again."""
        return self._act("load-coordinator")

    def move_coordinator(self, to: int) -> Transaction:
        """Move the transaction coordinator of the id to the broker with the id ``to``."""
        return self._act("move-coordinator", {"to": to})

    def _act(self, verb: str, body: Any = None) -> Transaction:
        return self._client.read(Transaction, "POST", _path("transactions", self.name, verb), body)


class ControlledFaults:
    """``control.faults``; a rule is named by its ``id``."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def add(self, when: str, do: str, **more: Any) -> FaultRuleState:
        """Add a rule, as docs/faults.md says: ``add("Heartbeat", "refuse", group="app", code="REBALANCE_IN_PROGRESS")``."""
        return self._client.read(FaultRuleState, "POST", "/faults", {"when": when, "do": do, **more})

    @property
    def rules(self) -> list[FaultRuleState]:
        """All rules that were added, in order."""
        return self._client.read(list[FaultRuleState], "GET", "/faults")

    def rule(self, rule: int) -> FaultRuleState:
        """The state of a rule, and how often it has acted."""
        return self._client.read(FaultRuleState, "GET", _path("faults", rule))

    def remove(self, rule: int) -> None:
        """Remove a rule; the requests that it holds go on."""
        self._client.request("DELETE", _path("faults", rule))

    def remove_all(self) -> None:
        """Remove all rules; the requests that they hold go on."""
        self._client.request("DELETE", "/faults")

    def acted(self, rule: int, count: int = 1, *, timeout: float | None = None) -> FaultRuleState:
        """Wait until the rule has acted ``count`` times in all."""
        return self._client.read(FaultRuleState, "GET", _path("faults", rule, "wait"), timeout=timeout, acted=count)

    def wait(self, rule: int, count: int = 1, *, timeout: float | None = None) -> list[HeldRequest]:
        """Wait until the rule has held ``count`` requests in all; returns those that it holds now."""
        path = _path("faults", rule, "wait")
        return self._client.read(FaultRuleState, "GET", path, timeout=timeout, held=count).waiting

    def waiting(self, rule: int) -> list[HeldRequest]:
        """The requests and responses that the rule holds now."""
        return self._client.read(list[HeldRequest], "GET", _path("faults", rule, "waiting"))

    def release(self, rule: int, order: Sequence[int] | None = None) -> FaultRuleState:
        """Release what the rule holds: in the order in which it came, or in the ``order`` of these indexes into ``waiting``."""
        body = {"order": None if order is None else list(order)}
        return self._client.read(FaultRuleState, "POST", _path("faults", rule, "release"), body)

    def explain(self, api: str, request: Mapping[str, Any], **more: Any) -> str:
        """What each rule would do with that request if it were sent now, and why."""
        return self._client.request("POST", "/faults/explain", {"api": api, "request": dict(request), **more}).text


class ControlledAppends:
    """``control.appends``: rules that fail or hold the appends of coordinators; a rule is named by its ``id``."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def fail(
        self, error: str, *, group: str | None = None, transactional_id: str | None = None, times: int = 1
    ) -> AppendRuleState:
        """Add a rule that fails the next appends with ``error``."""
        about = {"group": group, "transactional_id": transactional_id, "times": times}
        return self._client.read(AppendRuleState, "POST", "/appends", {"do": "fail", "error": error, **about})

    def hold(self, *, group: str | None = None, transactional_id: str | None = None, times: int = 1) -> AppendRuleState:
        """Add a rule that holds the next appends until ``release`` or ``fail_held``."""
        about = {"group": group, "transactional_id": transactional_id, "times": times}
        return self._client.read(AppendRuleState, "POST", "/appends", {"do": "hold", **about})

    @property
    def rules(self) -> list[AppendRuleState]:
        """All rules that were added, in order."""
        return self._client.read(list[AppendRuleState], "GET", "/appends")

    def rule(self, rule: int) -> AppendRuleState:
        """The state of a rule, and how often it has acted."""
        return self._client.read(AppendRuleState, "GET", _path("appends", rule))

    def remove(self, rule: int) -> None:
        """It applies to no more appends."""
        self._client.request("DELETE", _path("appends", rule))

    def acted(self, rule: int, count: int = 1, *, timeout: float | None = None) -> AppendRuleState:
        """Wait until the rule has applied to ``count`` appends in all."""
        return self._client.read(AppendRuleState, "GET", _path("appends", rule, "wait"), timeout=timeout, acted=count)

    def wait(self, rule: int, count: int = 1, *, timeout: float | None = None) -> AppendRuleState:
        """Wait until the rule holds ``count`` appends."""
        return self._client.read(AppendRuleState, "GET", _path("appends", rule, "wait"), timeout=timeout, held=count)

    def release(self, rule: int) -> AppendRuleState:
        """Store all appends that the rule holds."""
        return self._client.read(AppendRuleState, "POST", _path("appends", rule, "release"))

    def fail_held(self, rule: int, error: str) -> AppendRuleState:
        """Fail all appends that the rule holds with ``error``."""
        return self._client.read(AppendRuleState, "POST", _path("appends", rule, "fail"), {"error": error})


class ControlledTrace:
    """``control.trace``."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def entries(self, **asked: Any) -> Entries:
        """The entries of the trace; ``asked`` are ``event``, ``group``, ``member``, ``transaction``, ``where``, ``since``,
        ``until``, ``after`` and ``limit``."""
        return self._client.read(Entries, "GET", "/trace", **asked)

    def text(self, **asked: Any) -> str:
        """The trace as text; ``asked`` are ``group``, ``transaction``, ``since``, ``until``, ``limit`` and ``fold``."""
        return self._client.request("GET", "/trace/text", **asked).text

    def mermaid(self, **asked: Any) -> str:
        """A sequence diagram in Mermaid's language."""
        return self._client.request("GET", "/trace/mermaid", **asked).text

    def file(self) -> str:
        """The trace in its file format, which ``groupcoord.Trace.load`` reads."""
        return self._client.request("GET", "/trace/file").text

    def why(
        self,
        group: str | None = None,
        generation: int | None = None,
        *,
        lost: TopicPartition | None = None,
        got: TopicPartition | None = None,
        **more: Any,
    ) -> str:
        """Why something happened, in words, as ``groupcoord.Trace.why``; ``cause`` is the number of an entry."""
        partitions = {name: f"{each[0]}:{each[1]}" for name, each in (("lost", lost), ("got", got)) if each}
        asked = {"group": group, "generation": generation, **partitions, **more}
        return self._client.request("GET", "/trace/why", **asked).text

    def follow(self, **asked: Any) -> Generator[Entry, None, None]:
        """Every entry of the trace: those that exist, then new ones as they come, until the broker ends."""
        with self._client.stream("/trace/stream", asked) as lines:
            for line in lines:
                if line.startswith(_ENTRY):
                    yield Entry.model_validate_json(line.removeprefix("data: "))


def _path(*names: str | int) -> str:
    return "".join(f"/{quote(str(name), safe='')}" for name in names)


def _parameter(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _raise_problem(answer: httpx.Response) -> None:
    """Raises WaitTimeoutError for a wait that timed out (504), and ControlError for any other error response."""
    if answer.is_success:
        return
    problem = Problem.model_validate_json(answer.content)
    if problem.status == httpx.codes.GATEWAY_TIMEOUT:
        raise WaitTimeoutError("\n  ".join([problem.detail, *problem.reasons]))
    raise ControlError(problem)
