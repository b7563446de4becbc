"""What bodies and answers have in them. Times are in the unit that ends a name."""

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from groupcoord.assignors import TopicPartition
from groupcoord.testing.cluster_clock import A_YEAR_S


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"it is not Base64: {error}") from None
    return text


Base64 = Annotated[str, AfterValidator(_base64)]
"""Bytes as Base64."""
Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, le=A_YEAR_S, allow_inf_nan=False)]


class Body(BaseModel):
    """A body: a name in it that is not known is refused, and so is a value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """An answer."""


class PartitionId(Answer):
    """A partition of a topic."""

    topic: str
    partition: int


def partitions_of(found: Iterable[TopicPartition]) -> list[PartitionId]:
    """``found`` in order."""
    return [PartitionId(topic=topic, partition=number) for topic, number in sorted(found)]


# Errors.


class FieldProblem(Answer):
    """What is wrong with one field."""

    field: str = Field(
        description="the field of the body, with dots between names, or the parameter", examples=["seconds"]
    )
    problem: str = Field(description="what is wrong, and what would be right")


class Problem(Answer):
    """A problem document (RFC 9457)."""

    type: str = Field(
        default="about:blank", description="always about:blank: the status says what kind of problem it is"
    )
    title: str = Field(description="the status in words")
    status: int = Field(description="the status of HTTP")
    detail: str = Field(description="what was wrong, and what would be right")
    errors: list[FieldProblem] = Field(default=[], description="the fields that are wrong")
    reasons: list[str] = Field(
        default=[], description="of a wait that was in vain (504): what the broker waits for, and until when"
    )


# Brokers.


class TopicSettings(Body):
    """A topic to begin with."""

    partitions: Count = 1
    configs: dict[str, Any] = Field(
        default={}, description="Kafka's properties of topics", examples=[{"cleanup.policy": "compact"}]
    )


def _settings_of(given: object) -> object:
    return {"partitions": given} if isinstance(given, int) else given


TopicSettingsOrCount = Annotated[
    TopicSettings, BeforeValidator(_settings_of, json_schema_input_type=Count | TopicSettings)
]
ClockName = Literal["real", "manual", "fast"]
"""Who moves the time. A cluster of simulated time is for a program's own event loop."""


class NewBroker(Body):
    """A broker, or several as one cluster, with nothing in common with the others of this process."""

    name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._-]{1,100}$",
        description="what paths call it; broker-2 and so on unless given",
    )
    topics: dict[str, TopicSettingsOrCount] = Field(
        default={},
        description="topics by their names, with numbers of partitions, or with settings",
        examples=[{"orders": 6}],
    )
    brokers: Annotated[int, Field(ge=1, le=100)] = Field(default=1, description="of how many brokers the cluster is")
    clock: ClockName = Field(
        default="real",
        description="who moves the time: the wall clock, POST /clock/advance, or the wall clock `speed` times as fast",
    )
    speed: float = Field(
        default=100.0, gt=0, allow_inf_nan=False, description="of a fast clock: times as fast as the wall clock"
    )
    start_ms: Number | None = Field(
        default=None, description="when its clock begins: milliseconds since 1970; now unless given"
    )
    seed: int | None = Field(default=None, description="all ids come from it; the same with each run on a manual clock")
    dev: bool = Field(default=True, description="the defaults of `serve --dev`: groups form at once")
    config: dict[str, Any] = Field(
        default={}, description="properties of a Kafka broker", examples=[{"group.max.size": 2}]
    )
    features: dict[str, int] = Field(
        default={}, description="levels of features", examples=[{"transaction.version": 0}]
    )
    racks: list[str] = Field(default=[], description="the racks of the brokers, in turn")
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(default=0, description="its port; 0 is any that is free")


class Broker(Answer):
    """One broker of a cluster."""

    id: int
    address: str = Field(description="host:port")
    rack: str | None


class Controller(Answer):
    """The controller of a cluster."""

    id: int
    state: str = Field(description="running, paused or stopped")
    epoch: int = Field(description="the one in which it was elected")


class Clock(Answer):
    """The time of a broker."""

    mode: ClockName
    now_ms: int = Field(description="milliseconds since 1970")
    speed: float | None = Field(description="of a fast clock: times as fast as the wall clock")


class GroupState(Answer):
    """A group in short."""

    group: str
    state: str


class Status(Answer):
    """What a broker is, and what it has."""

    version: str = Field(description="of groupcoord")
    name: str = Field(description="what paths call it: /brokers/NAME/…; the first one is `default`")
    state: Literal["up", "stopped"]
    address: str = Field(description="host:port, the bootstrap server of its clients")
    brokers: list[Broker]
    listeners: dict[str, list[str]] = Field(description="the addresses of each listener of `listeners=`, by its name")
    clock: Clock
    topics: list[str]
    groups: list[GroupState]
    transactional_ids: list[str]
    fault_rules: int = Field(description="that are not removed")
    run: int = Field(description="1, and 1 more with each reset")
    last_seq: int = Field(description="the number of the newest entry of the trace")
    pending: list[str] = Field(description="what groups and transactions wait for, until when, in words")


class Health(Answer):
    """The process serves."""

    status: Literal["ok"] = "ok"


class Problems(Answer):
    """What a test should hear of."""

    problems: list[str] = Field(
        description="errors of the server, which are told once, and rules that never acted and should have; best: none"
    )


# Topics and records.


class NewTopic(Body):
    """A topic to be made."""

    name: str
    partitions: Count = 1
    configs: dict[str, Any] = Field(
        default={}, description="Kafka's properties of topics", examples=[{"cleanup.policy": "compact"}]
    )


class PartitionState(Answer):
    """A partition of a topic."""

    partition: int
    leader: int | None = Field(description="the id of a broker")
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int


class TopicState(Answer):
    """A topic."""

    name: str
    is_internal: bool
    partitions: list[PartitionState]


class MorePartitions(Body):
    """How many more."""

    more: Count


class NewLeader(Body):
    """Which broker is to lead which partition."""

    partition: Number
    to: int = Field(description="the id of a broker")


class HeaderData(Body):
    """A header of a record."""

    key: str
    value: str | None = Field(default=None, description="as text")
    value_base64: Base64 | None = Field(default=None, description="what is not text, as Base64")


class RecordData(Body):
    """A record to be written."""

    value: str | None = Field(default=None, description="as text; neither this nor value_base64 is a tombstone")
    value_base64: Base64 | None = Field(default=None, description="what is not text, as Base64")
    key: str | None = Field(default=None, description="as text")
    key_base64: Base64 | None = Field(default=None, description="what is not text, as Base64")
    headers: list[HeaderData] = []
    timestamp_ms: Number | None = Field(
        default=None, description="milliseconds since 1970; now, on the broker's clock, unless given"
    )
    partition: Number | None = Field(default=None, description="Kafka's partitioner says it unless given")


class RecordsData(Body):
    """Records to be written, in this order."""

    records: list[RecordData] = Field(min_length=1)


class RecordPlace(Answer):
    """Where a record is."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int = Field(description="milliseconds since 1970")


class HeaderAnswer(Answer):
    """A header of a record; what is not UTF-8 is in the field that ends with base64."""

    key: str
    value: str | None
    value_base64: str | None = None


class RecordAnswer(RecordPlace):
    """A record; what is not UTF-8 is in the fields that end with base64."""

    key: str | None
    key_base64: str | None = None
    value: str | None
    value_base64: str | None = None
    headers: list[HeaderAnswer]


def bytes_of(text: str | None, encoded: str | None, field: str) -> bytes | None:
    """What text or Base64 stands for. Raises ValueError if both are given."""
    if encoded is None:
        return None if text is None else text.encode()
    if text is not None:
        raise ValueError(f"{field} and {field}_base64 are both given: one of the two")
    return base64.b64decode(encoded)


def text_of(data: bytes | None, field: str) -> dict[str, str | None]:
    """``data`` as text in ``field``, or, if it is none, as Base64 in another one."""
    if data is None:
        return {field: None}
    try:
        return {field: data.decode()}
    except UnicodeDecodeError:
        return {field: None, f"{field}_base64": base64.b64encode(data).decode()}


# Groups.


class Member(Answer):
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    type: str = Field(description="which protocol it speaks: classic, or consumer (KIP-848)")
    session_timeout_ms: int | None
    protocols: list[str] = Field(description="of the classic protocol: the assignors that it offers")
    waits_in: str | None = Field(description="join or sync, while the broker holds such a request of it")
    assigned: list[PartitionId]
    epoch: int | None = Field(description="in a consumer group: its member epoch")
    state: str | None = Field(description="in a consumer group: STABLE, UNREVOKED_PARTITIONS or UNRELEASED_PARTITIONS")
    revoking: list[PartitionId] = Field(description="in a consumer group: what it has yet to give back")
    target: list[PartitionId] = Field(description="in a consumer group: what it is to have in the end")


class Group(Answer):
    """A group; there is none if its state is Dead."""

    group: str
    type: str = Field(description="classic, or consumer (KIP-848)")
    state: str = Field(description="Kafka's word; the name of an error while the broker does not coordinate the group")
    protocol: str | None = Field(description="the assignor")
    leader: str | None = Field(description="of a classic group: a member id")
    generation: int = Field(description="of a classic group; -1 of others")
    epoch: int = Field(description="of a consumer group; -1 of others")
    assignment_epoch: int = Field(description="of a consumer group: the epoch of its target assignment; -1 of others")
    members: list[Member]


class Offset(Body):
    """A committed offset."""

    topic: str
    partition: Number
    offset: Number = Field(description="of the next record to be read")


class Offsets(Body):
    """Offsets to commit."""

    offsets: list[Offset] = Field(min_length=1)


class Lag(PartitionId):
    """How far a group is behind."""

    lag: int | None = Field(description="records behind the committed offset; null where none is committed")


class MemberName(Body):
    """A member."""

    member: str = Field(description="a member id, instance id or client id")


class InstanceId(Body):
    """A static member."""

    instance_id: str = Field(description="group.instance.id")


class Reason(Body):
    """Why."""

    reason: str = Field(default="the test wants it", description="what events say")


class NewCoordinator(Body):
    """Where a coordinator is to be."""

    to: int = Field(description="the id of a broker")


# Transactions.


class Transaction(Answer):
    """A transactional id and its transaction; there is none if its state is Dead."""

    transactional_id: str
    state: str = Field(description="Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort or Dead")
    producer_id: int
    producer_epoch: int
    timeout_ms: int = Field(description="the producer's transaction.timeout.ms")
    start_ms: int = Field(description="when the last transaction began: milliseconds since 1970; -1 if there was none")
    partitions: list[PartitionId] = Field(description="those in it that were not told yet how it ended")


# The clock.


class Advance(Body):
    """How much time is to pass."""

    seconds: Seconds = Field(description="on the broker's clock")
    heartbeats: bool = Field(
        default=True,
        description="heartbeat in the name of clients that are connected, whose timers run in real time; false: they hang",
    )


class AdvanceToNext(Body):
    """Until which deadline time is to pass."""

    group: str | None = Field(default=None, description="one of this group; any unless given")
    heartbeats: bool = Field(default=False, description="heartbeat in the name of clients that are connected")


class Deadline(Answer):
    """Something that will happen if nothing else does."""

    at_ms: int = Field(description="milliseconds since 1970")
    in_seconds: float = Field(description="from now on the broker's clock")
    kind: str = Field(description="session, join, sync, rebalance …")
    group: str = Field(description="which group it is about; empty if none")
    member: str = Field(description="which member it is about; empty if none")
    reason: str


# Faults and appends.


_Text = Annotated[Any, WithJsonSchema({"type": "string"})]
_Integer = Annotated[Any, WithJsonSchema({"type": "integer"})]
_Range = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]})]
"""What is checked where rules are made, with one text for each problem."""


class FaultRule(Body):
    """A rule, as docs/faults.md says: which requests (`when` and its conditions), and what happens to them (`do`)."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"required": ["when", "do"], "additionalProperties": False}
    )

    when: _Text = Field(default=None, description="the name of an API, or any", examples=["Heartbeat"])
    do: _Text = Field(default=None, description="refuse, delay, drop, disconnect, hold …", examples=["refuse"])
    name: str | None = Field(
        default=None, description="its name in events and complaints; `rule 1` and so on unless given"
    )
    group: _Text = None
    member: _Text = Field(default=None, description="a member id, or a group.instance.id; empty: a new member")
    topic: _Text = None
    transactional_id: _Text = None
    client_id: _Text = None
    version: _Range = Field(default=None, description="of the request: 3, 2-4 or 3-")
    nth: _Range = Field(
        default=None, description="the number among requests that meet the other conditions: 1, 2-4 or 3-"
    )
    broker: _Integer = Field(default=None, description="the id of the broker that gets the request")
    code: _Range = Field(default=None, description="of refuse and refuse_answer: the name of an error")
    ms: _Integer = Field(default=None, description="of delay and delay_answer: milliseconds on the broker's clock")
    how: _Text = Field(
        default=None, description="of corrupt: flip, crc, length, truncated, garbage, correlation or cut"
    )
    broker_id: _Integer = Field(
        default=None, description="the id of a broker: of shrink_isr; of kill_broker … another one than is asked"
    )
    peer: _Range = Field(default=None, description="of cut_off_broker: the id of a broker, clients or controller")
    moment: _Text = Field(default=None, description="of kill_broker …: asked, handled or answered")
    times: _Range = Field(default=None, description="how often: a number, or always; once unless given")
    optional: Annotated[Any, WithJsonSchema({"type": "boolean"})] = Field(default=None, description="it need not act")


class HeldRequest(Answer):
    """A request, or the answer to it, that a rule holds."""

    api: str
    version: int
    client_id: str | None
    groups: list[str]
    members: list[str]
    since_ms: int = Field(description="since when: milliseconds since 1970 on the broker's clock")
    text: str


class FaultRuleState(Answer):
    """A rule, and what became of it."""

    id: int
    name: str
    rule: dict[str, Any] = Field(description="as it was given")
    text: str = Field(description="the rule in words")
    uses: int = Field(description="how often it acted")
    limit: int | None = Field(description="how often it acts at most; null: without limit")
    is_removed: bool
    is_optional: bool
    why_unused: str | None = Field(description="if it never acted and should have: why, with the nearest requests")
    waiting: list[HeldRequest] = Field(description="what it holds now")


class Release(Body):
    """What is to go on."""

    order: list[int] | None = Field(
        default=None,
        description="indexes into what waits, from 0 on, in the order in which it goes on; all, as they came, unless given",
    )


class RequestToExplain(Body):
    """A request that has not come."""

    api: str = Field(examples=["Heartbeat"])
    request: dict[str, Any] = Field(
        default={},
        description="its fields by the names of docs/faults.md, in the newest version",
        examples=[{"group_id": "app"}],
    )
    client_id: str | None = None
    version: Number | None = Field(default=None, description="the newest unless given")
    broker: Number = Field(default=0, description="the id of the broker that gets it")


class NewAppendRule(Body):
    """What is to happen to the next appends of coordinators."""

    do: Literal["fail", "hold"]
    error: str | None = Field(default=None, description="of fail: the log's error", examples=["MESSAGE_TOO_LARGE"])
    group: str | None = Field(default=None, description="those with a record of this group")
    transactional_id: str | None = Field(default=None, description="those of this transactional id")
    times: Count = Field(default=1, description="to how many appends it applies")


class AppendRuleState(Answer):
    """A rule for appends, and what became of it."""

    id: int
    text: str
    do: Literal["fail", "hold"]
    error: str | None
    group: str | None
    transactional_id: str | None
    left: int = Field(description="to how many more appends it will apply")
    uses: int = Field(description="to how many appends it applied")
    held: int = Field(description="how many appends it holds now")
    is_removed: bool


class AppendError(Body):
    """How appends fail."""

    error: str = Field(description="the log's error", examples=["NOT_LEADER_OR_FOLLOWER"])


# The trace.


class Entry(Answer):
    """What happened: an entry of the trace, in the form of its file (docs/trace.md)."""

    seq: int = Field(description="its number, counted from 1")
    at_ms: int = Field(description="milliseconds since 1970 on the broker's clock")
    real_ms: int = Field(description="milliseconds of the real world since the trace began")
    event: str = Field(description="the type of the event")
    caused_by: int | None = Field(description="the number of the entry that made it happen")
    answers: int | None = Field(description="of the end of a request: the number of the request")
    cause: dict[str, Any]
    fields: dict[str, Any] = Field(description="those of this type of event")
    text: str


class Entries(Answer):
    """Entries of the trace."""

    run: int = Field(description="1, and 1 more with each reset; numbers begin anew with each")
    start_ms: int = Field(description="when the trace began: milliseconds since 1970 on the broker's clock")
    last_seq: int = Field(description="the number of the newest entry of all")
    dropped: int = Field(description="how many entries the trace no longer has")
    entries: list[Entry]
