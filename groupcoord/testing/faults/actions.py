"""The actions of fault rules: the table of action types, error responses, damaged bytes, and stale metadata.

Stale metadata (a broker behind the controller, replicas behind their leader) is common in a real cluster, and never seen in a
test with one fast broker.
"""

import dataclasses
import enum
import hashlib
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from groupcoord.cluster.network_cuts import CLIENTS, CONTROLLER, named
from groupcoord.core.effects import Call, RawReply, Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response, parse_response
from groupcoord.protocol.messages import ApiVersionsResponse, FetchResponse
from groupcoord.testing.faults.matching import ProblemCollector, suggestion
from groupcoord.testing.topic_settings import is_number

TOPIC_METADATA_APIS = (ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS)
"""The APIs whose responses describe the partitions of topics."""


def hide_topic(request: Any, answer: Any, topic: str) -> Any:
    """``answer`` as of a broker whose metadata does not have ``topic`` yet (``KRaftMetadataCache``).

    A request that names the topic gets UNKNOWN_TOPIC_OR_PARTITION, one with its id UNKNOWN_TOPIC_ID; a list of all topics is
    without it.
    """
    named = {each.name for each in request.topics or ()}
    ids = {getattr(each, "topic_id", None) for each in request.topics or ()} - {None}
    shown = []
    for found in answer.topics:
        if found.name != topic:
            shown.append(found)
        elif topic in named:
            shown.append(type(found)(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=topic))
        elif found.topic_id in ids:
            shown.append(type(found)(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=found.topic_id))
    return replace(answer, topics=tuple(shown))


def shrink_isr(answer: Any, topic: str | None, broker: int) -> Any:
    """``answer`` with ``broker`` removed from every ISR of ``topic``, or of all topics, as if its replicas had fallen behind.

    Partitions that it leads are not changed: a leader is always in the ISR.
    """

    def shrunk(partition: Any) -> Any:
        if partition.leader_id == broker:
            return partition
        return replace(partition, isr_nodes=tuple(each for each in partition.isr_nodes if each != broker))

    topics = (
        replace(found, partitions=tuple(map(shrunk, found.partitions))) if topic in (None, found.name) else found
        for found in answer.topics
    )
    return replace(answer, topics=tuple(topics))


AnswerFunction = Callable[[Any], Any]
EditFunction = Callable[[Any, Any], Any]


class Damage(enum.StrEnum):
    """How ``corrupt`` damages the bytes of a response."""

    FLIP = "flip"
    CRC = "crc"
    LENGTH = "length"
    TRUNCATED = "truncated"
    GARBAGE = "garbage"
    CORRELATION = "correlation"
    CUT = "cut"

    @property
    def text(self) -> str:
        """The damage in words."""
        return _DAMAGE_TEXTS[self]


_DAMAGE_TEXTS = {
    Damage.FLIP: "one bit in the middle of the body is flipped",
    Damage.CRC: "the checksum of the first record batch is wrong; only for Fetch responses with records",
    Damage.LENGTH: "the length field is 4 bytes larger than the response",
    Damage.TRUNCATED: "the second half of the body is missing, and the length field is reduced accordingly",
    Damage.GARBAGE: "the body is replaced by random-looking bytes of the same length",
    Damage.CORRELATION: "the correlation id is larger by one than that of the request",
    Damage.CUT: "the first half is sent, then the connection is closed",
}


class ActionArgument(NamedTuple):
    """The argument of an action type. ``read`` checks and converts it (raises ValueError); ``write`` converts it back to data,
    and is None for functions."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None
    text: str


class FaultActionType(NamedTuple):
    """A kind of action. ``text`` is for the documentation, ``event_text`` for FaultInjected.

    ``on_answer``: the request is handled, and the action applies to its response. ``needs_answer``: requests without a response
    do not match. ``on_broker``: the action applies to a broker, the one that gets the request or another one, at one of the
    MOMENTS.
    """

    name: str
    argument: ActionArgument | None
    text: str
    event_text: str
    on_answer: bool = False
    needs_answer: bool = False
    on_broker: bool = False


ASKED, HANDLED, ANSWERED = "asked", "handled", "answered"
MOMENTS: Mapping[str, str] = {
    ASKED: "arrives, and before it is handled {0}",
    HANDLED: "is handled, and before its response is sent {0}",
    ANSWERED: "gets its response, and then {0}",
}
"""The moments at which an action can be applied to a broker, with the text for FaultInjected."""


def error_code(value: Any) -> ErrorCode:
    """The error with that name or number. Raises ValueError, which suggests the most similar name."""
    if isinstance(value, str):
        if value not in ErrorCode.__members__:
            raise ValueError(f"there is no error {value!r}{suggestion(value, ErrorCode.__members__)}")
        value = ErrorCode[value]
    if not is_number(value) or not -(1 << 15) <= value < 1 << 15:
        raise ValueError(f"{value!r} is not an error: give its name, an ErrorCode, or a number that an int16 can carry")
    if value == ErrorCode.NONE.value:
        raise ValueError("NONE is no error")
    return ErrorCode(value)


def _write_code(code: ErrorCode) -> str | int:
    return code.name if code.name in ErrorCode.__members__ else int(code)


def _read_ms(value: Any) -> int:
    if not is_number(value) or value <= 0:
        raise ValueError(f"{value!r} is not a number of milliseconds above 0")
    return int(value)


def _read_broker(value: Any) -> int:
    if not is_number(value) or value < 0:
        raise ValueError(f"{value!r} is not the id of a broker, a number from 0 on")
    return int(value)


def _read_moment(value: Any) -> str:
    if value not in MOMENTS:
        raise ValueError(f"{value!r} is not a moment; there is {', '.join(MOMENTS)}")
    return str(value)


def _read_peer(value: Any) -> int | str:
    if value in (CLIENTS, CONTROLLER):
        return str(value)
    if is_number(value) and value >= 0:
        return int(value)
    raise ValueError(f"{value!r} is neither the id of a broker nor {CLIENTS} or {CONTROLLER}")


def _read_damage(value: Any) -> Damage:
    try:
        return Damage(value)
    except ValueError:
        raise ValueError(f"{value!r} is no damage; there is {', '.join(Damage)}") from None


def _read_function(value: Any) -> Any:
    if callable(value):
        return value
    raise ValueError(f"{value!r} is not a function")


_CODE = ActionArgument("code", error_code, _write_code, "the name of an error, or a number that Kafka does not use")
_MS = ActionArgument("ms", _read_ms, int, "milliseconds on the broker's clock")
_BROKER = ActionArgument("broker_id", _read_broker, int, "the id of a broker")
_PEER = ActionArgument("peer", _read_peer, lambda peer: peer, "the id of a broker, `clients` or `controller`")
_HOW = ActionArgument(
    "how", _read_damage, str, "`flip`, `crc`, `length`, `truncated`, `garbage`, `correlation` or `cut`"
)
_ANSWER = ActionArgument("fn", _read_function, None, "a function of the request that returns the response")
_EDIT = ActionArgument(
    "fn", _read_function, None, "a function of the request and its response that returns a new response"
)


def _on_answer(name: str, argument: ActionArgument | None, text: str, event_text: str) -> FaultActionType:
    return FaultActionType(name, argument, text, event_text, on_answer=True, needs_answer=True)


def _on_broker(name: str, argument: ActionArgument | None, text: str, event_text: str) -> FaultActionType:
    return FaultActionType(name, argument, text, event_text, on_broker=True)


ACTION_TYPES: Mapping[str, FaultActionType] = {
    action_type.name: action_type
    for action_type in (
        FaultActionType(
            "refuse",
            _CODE,
            "respond with that error, in the form of the API; the request is not handled",
            "is refused with {0}",
            needs_answer=True,
        ),
        _on_answer(
            "refuse_answer",
            _CODE,
            "handle the request, and respond with that error instead",
            "is handled, but gets {0}",
        ),
        FaultActionType("delay", _MS, "handle the request after that time", "is handled {0} ms late"),
        _on_answer(
            "delay_answer",
            _MS,
            "handle the request, and respond after that time",
            "is handled, and gets its response {0} ms late",
        ),
        FaultActionType("drop", None, "neither handle the request nor respond, as if it was lost", "is lost"),
        _on_answer(
            "drop_answer",
            None,
            "handle the request and never respond, as if the response was lost",
            "is handled, but its response is lost",
        ),
        FaultActionType(
            "disconnect",
            None,
            "close the connection; the request is not handled",
            "is not handled, and its connection is closed",
        ),
        _on_answer(
            "disconnect_answer",
            None,
            "handle the request, and close the connection instead of responding",
            "is handled, but its connection is closed",
        ),
        FaultActionType("hold", None, "handle the request when the test releases it", "is held"),
        _on_answer(
            "hold_answer",
            None,
            "handle the request, and respond when the test releases it",
            "is handled, and its response is held",
        ),
        FaultActionType(
            "answer",
            _ANSWER,
            "respond with the result of the function; the request is not handled",
            "gets a response of the rule",
            needs_answer=True,
        ),
        _on_answer(
            "after",
            _EDIT,
            "handle the request, and when its response is ready send the result of the function instead",
            "is handled, and gets a response changed by the rule",
        ),
        _on_answer(
            "hide_topic",
            None,
            "handle a Metadata or DescribeTopicPartitions, and respond as if the broker's metadata lacks the rule's `topic`",
            "gets a response without the topic",
        ),
        _on_answer(
            "shrink_isr",
            _BROKER,
            "handle a Metadata or DescribeTopicPartitions, and remove this broker from the ISR of the rule's `topic`, or of "
            "every topic, in the response",
            "gets an ISR without broker {0}",
        ),
        _on_answer(
            "corrupt",
            _HOW,
            "handle the request, and damage the bytes of its response",
            "gets a response with damaged bytes ({0})",
        ),
        _on_broker("kill_broker", None, "kill a broker, as SIGKILL does", "{broker} is killed"),
        _on_broker("stop_broker", None, "shut a broker down cleanly, as SIGTERM does", "{broker} is stopped"),
        _on_broker("pause_broker", None, "suspend a broker until it is resumed", "{broker} is paused"),
        _on_broker(
            "cut_off_broker", _PEER, "cut the network between a broker and a peer", "{broker} is cut off from {0}"
        ),
    )
}


@dataclass(frozen=True, slots=True)
class FaultAction:
    """An action type with its argument. Raises RuleProblems for an invalid argument.

    For an action on a broker, ``broker_id`` is its id (None: the broker that gets the request), and ``moment`` says when.
    """

    name: str
    argument: Any = None
    broker_id: int | None = None
    moment: str = ASKED

    def __post_init__(self) -> None:
        problems = ProblemCollector()
        if (argument := self.type.argument) is not None:
            object.__setattr__(self, "argument", problems.read(argument.name, lambda: argument.read(self.argument)))
        if self.broker_id is not None:
            problems.read("broker_id", lambda: _read_broker(self.broker_id))
        problems.read("moment", lambda: _read_moment(self.moment))
        problems.raise_if_any()

    def __repr__(self) -> str:
        given = []
        if self.type.argument is not None:
            value = self.argument
            given.append(getattr(value, "__qualname__", repr(value)) if callable(value) else repr(self.plain_argument))
        given += [f"{name}={value!r}" for name, value in self.broker_options.items()]
        return f".{self.name}({', '.join(given)})"

    @property
    def broker_options(self) -> dict[str, Any]:
        """The ``broker_id`` and ``moment`` of an action on a broker, as far as they are not the defaults."""
        options: dict[str, Any] = {} if self.broker_id is None else {"broker_id": self.broker_id}
        return options if self.moment == ASKED else {**options, "moment": self.moment}

    @property
    def on_answer(self) -> bool:
        """Is the request handled, and the action applied to its response?"""
        return self.type.on_answer or self.moment != ASKED

    @property
    def type(self) -> FaultActionType:
        """The entry of ACTION_TYPES."""
        return ACTION_TYPES[self.name]

    @property
    def plain_argument(self) -> Any:
        """The argument as data. Raises ValueError if it is a function or there is none."""
        argument = self.type.argument
        if argument is None or argument.write is None:
            raise ValueError(f"{self} has no data to write: it takes a function, or nothing")
        return argument.write(self.argument)

    @property
    def event_text(self) -> str:
        """What the action does to a request, in words, for FaultInjected."""
        broker = "its broker" if self.broker_id is None else f"broker {self.broker_id}"
        argument = (
            named(self.argument) if self.type.argument is _PEER else getattr(self.argument, "name", self.argument)
        )
        text = self.type.event_text.format(argument, broker=broker)
        return MOMENTS[self.moment].format(text) if self.type.on_broker else text


# Error responses.


def error_reply(call: Call, request: Any, code: ErrorCode) -> Reply | None:
    """The error response with ``code``, as Kafka's ``getErrorResponse`` builds it; None if the response has no field for it.

    Examples are an old Metadata request without topics, and a Produce request with acks=0.
    """
    response: Any
    if request is None and call.api.key == ApiKey.API_VERSIONS:
        # An unknown version of ApiVersions is answered in version 0, which every client can read.
        call, response = call._replace(version=0), ApiVersionsResponse(error_code=code)
    else:
        response = call.api.error_response(request, call.version, code)
    if response is None:
        return None
    frame = encode_response(call.api, call.version, call.correlation_id, response)
    _, parsed = parse_response(call.api, call.version, frame[4:])
    return Reply(call, response) if _has_error(parsed, code) else None


def _has_error(message: Any, code: ErrorCode) -> bool:
    """Does any error code field in ``message`` have the value ``code``?"""
    if isinstance(message, tuple):
        return any(_has_error(item, code) for item in message)
    if not dataclasses.is_dataclass(message):
        return False
    return any(
        value == code if field.name.endswith("error_code") else _has_error(value, code)
        for field in dataclasses.fields(message)
        if (value := getattr(message, field.name)) is not None
    )


# Damaged responses.

_INT32 = struct.Struct(">i")
_BODY = 8
"""The offset of the body, after the length and the correlation id."""

_CRC = 17
"""The offset of the checksum in a batch, after base offset, length, leader epoch and magic (``DefaultRecordBatch``)."""


def damage_reply(how: Damage, call: Call, answer: Reply) -> Reply | RawReply | None:
    """``answer``, the response to ``call``, with damage that is the same for the same bytes; None if there is nothing to
    damage."""
    if how is Damage.CRC:
        response = _with_wrong_checksum(answer.response)
        return None if response is None else Reply(answer.call, response)
    answered = answer.call
    data = encode_response(answered.api, answered.version, answered.correlation_id, answer.response)
    return RawReply(call, _DAMAGE_BYTES[how](data), hangs_up=how is Damage.CUT)


def _with_wrong_checksum(response: FetchResponse) -> Any:
    for topic_index, topic in enumerate(response.responses):
        for index, partition in enumerate(topic.partitions):
            if partition.records:
                records = bytearray(bytes(partition.records))
                records[_CRC] ^= 0xFF
                partitions = _replace_item(topic.partitions, index, replace(partition, records=bytes(records)))
                topics = _replace_item(response.responses, topic_index, replace(topic, partitions=partitions))
                return replace(response, responses=topics)
    return None


def _replace_item(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _flip(data: bytes) -> bytes:
    middle = (_BODY + len(data)) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _with_wrong_length(data: bytes) -> bytes:
    return _INT32.pack(len(data)) + data[4:]  # the length does not include its own 4 bytes


def _truncate(data: bytes) -> bytes:
    end = (_BODY + len(data)) // 2
    return _INT32.pack(end - 4) + data[4:end]


def _with_garbage(data: bytes) -> bytes:
    return data[:_BODY] + hashlib.shake_128(b"garbage").digest(len(data) - _BODY)


def _with_next_correlation_id(data: bytes) -> bytes:
    (correlation_id,) = _INT32.unpack_from(data, 4)
    following = -(1 << 31) if correlation_id == (1 << 31) - 1 else correlation_id + 1
    return data[:4] + _INT32.pack(following) + data[_BODY:]


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


_DAMAGE_BYTES = {
    Damage.FLIP: _flip,
    Damage.LENGTH: _with_wrong_length,
    Damage.TRUNCATED: _truncate,
    Damage.GARBAGE: _with_garbage,
    Damage.CORRELATION: _with_next_correlation_id,
    Damage.CUT: _cut,
}
