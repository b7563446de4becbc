"""Pydantic models of the control API's request and response bodies. A field's name ends with its unit."""

import base64
import binascii
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


class RequestBody(BaseModel):
    """A request body. Unknown fields and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ResponseBody(BaseModel):
    """A response body; ``model_validate`` also takes an object with attributes of the same names."""

    model_config = ConfigDict(from_attributes=True)


class PartitionId(ResponseBody):
    """A partition of a topic."""

    topic: str
    partition: int


def _sorted_partitions(found: frozenset[TopicPartition] | list[object]) -> list[object]:
    if isinstance(found, list):
        return found
    return [PartitionId(topic=topic, partition=number) for topic, number in sorted(found)]


Partitions = Annotated[list[PartitionId], BeforeValidator(_sorted_partitions)]
"""A list of partitions; of a set of them, sorted."""


# Errors.


class FieldProblem(ResponseBody):
    """What is wrong with one field."""

    field: str = Field(description="the field of the body, as a path with dots, or the parameter", examples=["seconds"])
    problem: str = Field(description="what is wrong, and what would be right")


class Problem(ResponseBody):
    """A problem document (RFC 9457)."""

    type: str = Field(default="about:blank", description="always about:blank: the status says the kind of problem")
    title: str = Field(description="the HTTP status in words")
    status: int = Field(description="the HTTP status code")
    detail: str = Field(description="what was wrong, and what would be right")
    errors: list[FieldProblem] = Field(default=[], description="the fields that are wrong")
    reasons: list[str] = Field(
        default=[], description="of a wait that timed out (504): what the broker waits for, and until when"
    )


# Brokers.


class TopicSettings(RequestBody):
    """A topic that exists from the start."""

    partitions: Count = 1
    configs: dict[str, Any] = Field(default={}, description="topic configs", examples=[{"cleanup.policy": "compact"}])


def _settings_of(given: object) -> object:
    return {"partitions": given} if isinstance(given, int) else given


TopicSettingsOrCount = Annotated[
    TopicSettings, BeforeValidator(_settings_of, json_schema_input_type=Count | TopicSettings)
]
ClockName = Literal["real", "manual", "fast"]
"""What advances the clock. (Simulated time needs the program's own event loop, so it is not offered here.)"""


class NewBroker(RequestBody):
    """A cluster of one broker or several, independent of the others of this process."""

    name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._-]{1,100}$",
        description="its name in paths; broker-2 and so on unless given",
    )
    topics: dict[str, TopicSettingsOrCount] = Field(
        default={},
        description="topics by name, each with its number of partitions or its settings",
        examples=[{"orders": 6}],
    )
    brokers: Annotated[int, Field(ge=1, le=100)] = Field(default=1, description="the number of brokers of the cluster")
    clock: ClockName = Field(
        default="real",
        description="what advances its clock: real time, POST /clock/advance, or real time `speed` times as fast",
    )
    speed: float = Field(
        default=100.0, gt=0, allow_inf_nan=False, description="of a fast clock: its speed as a multiple of real time"
    )
    start_ms: Number | None = Field(
        default=None, description="the start time of its clock: milliseconds since 1970; now unless given"
    )
    seed: int | None = Field(
        default=None, description="the seed of all random ids; with a manual clock they are the same in each run"
    )
    dev: bool = Field(
        default=True,
        description="the defaults of `serve --dev`, such as no initial rebalance delay",
    )
    config: dict[str, Any] = Field(default={}, description="broker configs", examples=[{"group.max.size": 2}])
    features: dict[str, int] = Field(default={}, description="feature levels", examples=[{"transaction.version": 0}])
    racks: list[str] = Field(default=[], description="the racks of the brokers, assigned in turn")
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(default=0, description="its port; 0 is any free port")


class Broker(ResponseBody):
    """One broker of a cluster."""

    id: int
    address: str = Field(description="host:port")
    rack: str | None


class Clock(ResponseBody):
    """The clock of a broker."""

    mode: ClockName
    now_ms: int = Field(description="milliseconds since 1970")
    speed: float | None = Field(description="of a fast clock: its speed as a multiple of real time")


class GroupState(ResponseBody):
    """A group and its state."""

    group: str
    state: str


class Status(ResponseBody):
    """A broker: its addresses, clock, topics and groups."""

    version: str = Field(description="the version of groupcoord")
    name: str = Field(description="its name in paths: /brokers/NAME/…; the first one is `default`")
    state: Literal["up", "stopped"]
    address: str = Field(description="host:port, the bootstrap server of its clients")
    brokers: list[Broker]
    listeners: dict[str, list[str]] = Field(
        description="the addresses of each listener of `listeners=`, by the listener's name"
    )
    clock: Clock
    topics: list[str]
    groups: list[GroupState]
    transactional_ids: list[str]
    fault_rules: int = Field(description="the number of fault rules that are not removed")
    run: int = Field(description="the number of the run: 1, and 1 more with each reset")
    last_seq: int = Field(description="the number of the newest entry of the trace")
    pending: list[str] = Field(description="what groups and transactions wait for, until when, in words")


class Health(ResponseBody):
    """The server is up."""

    status: Literal["ok"] = "ok"


class Problems(ResponseBody):
    """What should fail a test."""

    problems: list[str] = Field(
        description="unexpected errors of the server, each reported once, and rules that should have acted and never did"
    )


# Topics and records.


class NewTopic(RequestBody):
    """A topic to create."""

    name: str
    partitions: Count = 1
    configs: dict[str, Any] = Field(default={}, description="topic configs", examples=[{"cleanup.policy": "compact"}])


class PartitionState(ResponseBody):
    """A partition of a topic."""

    partition: int
    leader: int | None = Field(description="a broker id")
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int


class TopicState(ResponseBody):
    """A topic."""

    name: str
    is_internal: bool
    partitions: list[PartitionState]


class MorePartitions(RequestBody):
    """How many partitions to add."""

    more: Count


class NewLeader(RequestBody):
    """The new leader of a partition."""

    partition: Number
    to: int = Field(description="a broker id")


class HeaderData(RequestBody):
    """A header of a record."""

    key: str
    value: str | None = Field(default=None, description="as text")
    value_base64: Base64 | None = Field(default=None, description="binary data, as Base64")


class RecordData(RequestBody):
    """A record to produce."""

    value: str | None = Field(
        default=None, description="as text; without value and value_base64 the record is a tombstone"
    )
    value_base64: Base64 | None = Field(default=None, description="binary data, as Base64")
    key: str | None = Field(default=None, description="as text")
    key_base64: Base64 | None = Field(default=None, description="binary data, as Base64")
    headers: list[HeaderData] = []
    timestamp_ms: Number | None = Field(
        default=None, description="milliseconds since 1970; now, on the broker's clock, unless given"
    )
    partition: Number | None = Field(default=None, description="chosen by Kafka's default partitioner unless given")


class RecordsData(RequestBody):
    """Records to produce, in this order."""

    records: list[RecordData] = Field(min_length=1)


class RecordPlace(ResponseBody):
    """The partition, offset and timestamp of a record."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int = Field(description="milliseconds since 1970")


class HeaderAnswer(ResponseBody):
    """A header of a record; a value that is not UTF-8 is in value_base64."""

    key: str
    value: str | None
    value_base64: str | None = None


class RecordAnswer(RecordPlace):
    """A record; a key or value that is not UTF-8 is in the field that ends with base64."""

    key: str | None
    key_base64: str | None = None
    value: str | None
    value_base64: str | None = None
    headers: list[HeaderAnswer]


def bytes_of(text: str | None, encoded: str | None, field: str) -> bytes | None:
    """The bytes of ``text`` or of the Base64 ``encoded``. Raises ValueError if both are given."""
    if encoded is None:
        return None if text is None else text.encode()
    if text is not None:
        raise ValueError(f"{field} and {field}_base64 are both given: one of the two")
    return base64.b64decode(encoded)


def text_of(data: bytes | None, field: str) -> dict[str, str | None]:
    """``data`` as text in ``field``, or, if it is not UTF-8, as Base64 in ``FIELD_base64``."""
    if data is None:
        return {field: None}
    try:
        return {field: data.decode()}
    except UnicodeDecodeError:
        return {field: None, f"{field}_base64": base64.b64encode(data).decode()}


# Groups.


class Member(ResponseBody):
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    type: str = Field(description="its protocol: classic, or consumer (KIP-848)")
    session_timeout_ms: int | None
    protocols: list[str] = Field(description="of the classic protocol: the assignors that it supports")
    waits_in: str | None = Field(
        description="join or sync, while a JoinGroup or SyncGroup request of it waits in the broker"
    )
    assigned: Partitions
    epoch: int | None = Field(description="in a consumer group: its member epoch")
    state: str | None = Field(description="in a consumer group: STABLE, UNREVOKED_PARTITIONS or UNRELEASED_PARTITIONS")
    revoking: Partitions = Field(description="in a consumer group: the partitions that it has yet to revoke")
    target: Partitions = Field(description="in a consumer group: its target assignment")


class Group(ResponseBody):
    """A group; if its state is Dead, it does not exist."""

    group: str
    type: str = Field(description="classic, or consumer (KIP-848)")
    state: str = Field(description="as in Kafka; the name of an error while the coordinator of the group is not loaded")
    protocol: str | None = Field(description="the name of the assignor")
    leader: str | None = Field(description="of a classic group: a member id")
    generation: int = Field(description="of a classic group; -1 of others")
    epoch: int = Field(description="of a consumer group; -1 of others")
    assignment_epoch: int = Field(description="of a consumer group: the epoch of its target assignment; -1 of others")
    members: list[Member]


class Offset(RequestBody):
    """A committed offset."""

    topic: str
    partition: Number
    offset: Number = Field(description="the offset of the next record to consume")


class Offsets(RequestBody):
    """Offsets to commit."""

    offsets: list[Offset] = Field(min_length=1)


class Lag(PartitionId):
    """The lag of a group on one partition."""

    lag: int | None = Field(
        description="the number of records after the committed offset; null if no offset is committed"
    )


class MemberName(RequestBody):
    """A member."""

    member: str = Field(description="a member id, instance id or client id")


class InstanceId(RequestBody):
    """A static member."""

    instance_id: str = Field(description="group.instance.id")


class Reason(RequestBody):
    """The reason of an action."""

    reason: str = Field(default="the test wants it", description="the reason that events give")


class NewCoordinator(RequestBody):
    """The new broker of a coordinator."""

    to: int = Field(description="a broker id")


# Transactions.


class Transaction(ResponseBody):
    """A transactional id and its transaction; if its state is Dead, it does not exist."""

    transactional_id: str
    state: str = Field(description="Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort or Dead")
    producer_id: int
    producer_epoch: int
    timeout_ms: int = Field(description="the producer's transaction.timeout.ms")
    start_ms: int = Field(
        description="the start of the last transaction: milliseconds since 1970; -1 if there was none"
    )
    partitions: Partitions = Field(
        description="the partitions in the transaction that have no transaction marker of it yet"
    )


# The clock.


class Advance(RequestBody):
    """How far to advance the clock."""

    seconds: Seconds = Field(description="seconds on the broker's clock")
    heartbeats: bool = Field(
        default=True,
        description="send heartbeats for connected clients, whose own timers run in real time; false: as if they hang",
    )


class AdvanceToNext(RequestBody):
    """To which deadline to advance the clock."""

    group: str | None = Field(default=None, description="the next deadline of this group; of any unless given")
    heartbeats: bool = Field(default=False, description="send heartbeats for connected clients")


class Deadline(ResponseBody):
    """A pending timer of the coordinator, such as a session timeout."""

    at_ms: int = Field(description="milliseconds since 1970")
    in_seconds: float = Field(description="seconds from now on the broker's clock")
    kind: str = Field(description="session, join, sync, rebalance …")
    group: str = Field(description="the group that it is about; empty if none")
    member: str = Field(description="the member that it is about; empty if none")
    reason: str


# Fault rules and append rules.


_Text = Annotated[Any, WithJsonSchema({"type": "string"})]
_Integer = Annotated[Any, WithJsonSchema({"type": "integer"})]
_Range = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]})]
"""These fields have no type for Pydantic, because Rule.from_dict checks them, with one error text for every interface."""


class FaultRule(RequestBody):
    """A fault rule (docs/faults.md): which requests it matches (`when` and its conditions), and what it does to them (`do`)."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"required": ["when", "do"], "additionalProperties": False}
    )

    when: _Text = Field(default=None, description="the name of an API, or any", examples=["Heartbeat"])
    do: _Text = Field(default=None, description="refuse, delay, drop, disconnect, hold …", examples=["refuse"])
    name: str | None = Field(
        default=None, description="its name in events and error messages; `rule 1` and so on unless given"
    )
    group: _Text = None
    member: _Text = Field(default=None, description="a member id or a group.instance.id; empty: a new member")
    topic: _Text = None
    transactional_id: _Text = None
    client_id: _Text = None
    version: _Range = Field(default=None, description="the version of the request: 3, 2-4 or 3-")
    nth: _Range = Field(
        default=None, description="the number of the request among those that meet the other conditions: 1, 2-4 or 3-"
    )
    broker: _Integer = Field(default=None, description="the id of the broker that receives the request")
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


class HeldRequest(ResponseBody):
    """A request, or the answer to it, that a rule holds."""

    api: str
    version: int
    client_id: str | None
    groups: list[str]
    members: list[str]
    since_ms: int = Field(description="since when: milliseconds since 1970 on the broker's clock")
    text: str


class FaultRuleState(ResponseBody):
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


class Release(RequestBody):
    """What is to go on."""

    order: list[int] | None = Field(
        default=None,
        description="indexes into what waits, from 0 on, in the order in which it goes on; all, as they came, unless given",
    )


class RequestToExplain(RequestBody):
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


class NewAppendRule(RequestBody):
    """What is to happen to the next appends of coordinators."""

    do: Literal["fail", "hold"]
    error: str | None = Field(default=None, description="of fail: the log's error", examples=["MESSAGE_TOO_LARGE"])
    group: str | None = Field(default=None, description="those with a record of this group")
    transactional_id: str | None = Field(default=None, description="those of this transactional id")
    times: Count = Field(default=1, description="to how many appends it applies")


class AppendRuleState(ResponseBody):
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


class AppendError(RequestBody):
    """How appends fail."""

    error: str = Field(description="the log's error", examples=["NOT_LEADER_OR_FOLLOWER"])


# The trace.


class Entry(ResponseBody):
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


class Entries(ResponseBody):
    """Entries of the trace."""

    run: int = Field(description="1, and 1 more with each reset; numbers begin anew with each")
    start_ms: int = Field(description="when the trace began: milliseconds since 1970 on the broker's clock")
    last_seq: int = Field(description="the number of the newest entry of all")
    dropped: int = Field(description="how many entries the trace no longer has")
    entries: list[Entry]
