"""RequestMatcher, the conditions of a fault rule, which also says why a request does not match; and the problems of rules."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

from groupcoord.broker.fetch_sessions import NoSuchShardError
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.effects import Call
from groupcoord.did_you_mean import did_you_mean
from groupcoord.protocol.api_descriptor import ALL_TOPICS, values_of
from groupcoord.protocol.apis import API_BY_REQUEST, APIS, Api, ApiKey
from groupcoord.protocol.messages import ProduceRequest
from groupcoord.testing.topic_settings import is_number

T = TypeVar("T")


# Problems of rules.


class RuleProblem(NamedTuple):
    """A ``field`` of a rule that is wrong, and why."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class RuleProblems(ValueError):
    """A rule is invalid; ``problems`` are all problems that were found."""

    def __init__(self, problems: Iterable[RuleProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))

    @classmethod
    def one(cls, field: str, text: str) -> "RuleProblems":
        """The problem that one ``field`` is wrong."""
        return cls([RuleProblem(field, text)])


class ProblemCollector:
    """Collects problems, to raise all of them at once."""

    def __init__(self) -> None:
        self._problems: list[RuleProblem] = []

    def add(self, field: str, text: str) -> None:
        """Add the problem that ``field`` is wrong."""
        self._problems.append(RuleProblem(field, text))

    def read(self, field: str, read: Callable[[], T]) -> T | None:
        """The result of ``read``; None if it raises ValueError, which becomes a problem of ``field``."""
        try:
            return read()
        except RuleProblems as several:
            self._problems += several.problems
        except ValueError as problem:
            self.add(field, str(problem))
        return None

    def raise_if_any(self) -> None:
        """Raises RuleProblems if there are problems."""
        if self._problems:
            raise RuleProblems(self._problems)


def suggestion(word: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` with the most similar known word; if none is, the list of known words, unless it is long."""
    by_folded = {name.lower().replace("_", ""): name for name in known}
    otherwise = f"there is {', '.join(sorted(by_folded.values()))}" if len(by_folded) <= 30 else ""
    hint = did_you_mean(word.lower().replace("_", ""), by_folded, otherwise=otherwise, shown=by_folded.__getitem__)
    return f"; {hint}" if hint else ""


# Values in conditions.

ApiLike = Api | ApiKey | type | str
"""An API: its Api object, its key, its request class, or its name."""

_API_BY_NAME = {api.name: api for api in APIS.values()}


def find_api(api: ApiLike) -> Api:
    """The API that ``api`` means. Raises ValueError, with a suggestion, for an API that is not served."""
    if isinstance(api, Api):
        return api
    if isinstance(api, str):
        if api in _API_BY_NAME:
            return _API_BY_NAME[api]
        raise ValueError(f"there is no API {api!r}{suggestion(api, _API_BY_NAME)}")
    if isinstance(api, type):
        if api in API_BY_REQUEST:
            return API_BY_REQUEST[api]
        names = [request.__name__ for request in API_BY_REQUEST]
        raise ValueError(f"{api.__name__} is not the class of a request{suggestion(api.__name__, names)}")
    key: object = api
    if isinstance(key, int) and is_number(key) and key in APIS:
        return APIS[key]
    raise ValueError(f"{key!r} is no API: give its name, its request class or its ApiKey")


class NumberRange(NamedTuple):
    """The numbers from ``first`` to ``last`` (None: no end). Written ``3``, ``range(2, 5)``, ``"2-4"`` or ``"3-"``."""

    first: int
    last: int | None

    @classmethod
    def of(cls, value: object) -> "NumberRange":
        """The range that ``value`` describes. Raises ValueError for any other value."""
        if isinstance(value, NumberRange):
            return value
        if isinstance(value, int) and is_number(value) and value >= 0:
            return cls(value, value)
        if isinstance(value, range) and value.step == 1 and 0 <= value.start < value.stop:
            return cls(value.start, value.stop - 1)
        found = _RANGE.fullmatch(value) if isinstance(value, str) else None
        if found:
            first = int(found[1])
            last = first if found[2] is None else int(found[3]) if found[3] else None
            if last is None or last >= first:
                return cls(first, last)
        raise ValueError(f"{value!r} is neither a number nor a span of numbers such as '2-4' or '3-'")

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.first <= number and (self.last is None or number <= self.last)

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first}-"
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"

    @property
    def size(self) -> int | None:
        """How many numbers it has; None if it has no end."""
        return None if self.last is None else self.last - self.first + 1

    @property
    def plain(self) -> int | str:
        """The range as data: an int or a text."""
        return self.first if self.size == 1 else str(self)


_RANGE = re.compile(r"(\d+)(-(\d*))?")

RangeLike = int | range | str | NumberRange
Predicate = Callable[[Any], object]


# Requests.


class TopicResolver(NamedTuple):
    """Finds the names of topics that a request does not name: by topic id, or by its fetch session."""

    name_of: Callable[[uuid.UUID], str | None] = lambda _: None
    fetched_in: Callable[[int], Iterable[str]] = lambda _: ()

    @classmethod
    def of(cls, cluster: ClusterCore) -> "TopicResolver":
        """Resolves the topics of ``cluster``."""

        def fetched_in(session_id: int) -> Iterable[str]:
            try:
                session = cluster.broker.fetch_sessions[session_id]
            except (KeyError, NoSuchShardError):
                return ()
            return {fetched.topic for fetched in session.all_wanted(cluster.broker.topics.topic_name) if fetched.topic}

        return cls(cluster.broker.topics.topic_name, fetched_in)


NO_TOPICS_KNOWN = TopicResolver()

_SHOWN_CHARACTERS = 300
"""How much of a request's text is shown; a Produce request may have a megabyte."""


class RequestContext:
    """One request, with the groups, members and topics that it names, which are looked up when a rule needs them.

    ``start_ms`` is subtracted from times in texts.
    """

    def __init__(
        self,
        call: Call,
        request: Any,
        now_ms: int,
        *,
        broker: int = 0,
        topics: TopicResolver = NO_TOPICS_KNOWN,
        start_ms: int = 0,
    ) -> None:
        self.call = call
        self.request = request
        """The message with the fields of the newest version; None if it was not parsed (ApiVersions of an unknown version)."""
        self.at_ms = now_ms
        self.held_since_ms = now_ms
        """When a rule began to delay or hold the request or its response."""
        self.broker = broker
        self._resolver = topics
        self._start_ms = start_ms

    def __str__(self) -> str:
        api, version, client_id = self.call.api, self.call.version, self.call.client_id
        client = "a client without id" if client_id is None else repr(client_id)
        text = repr(self.request)
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
        return f"{api.name} v{version} from {client} at {self.at_ms - self._start_ms} ms, broker {self.broker}: {shown}"

    @property
    def expects_answer(self) -> bool:
        """Is there a response? A Produce with acks=0 has none."""
        return not (isinstance(self.request, ProduceRequest) and self.request.acks == 0)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups that the request names."""
        return tuple(map(str, values_of(self.call.api.groups, self.request)))

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The member ids and instance ids that the request names; a new member has the member id ``""``."""
        return tuple(map(str, values_of(self.call.api.members + self.call.api.instances, self.request)))

    @cached_property
    def transactional_ids(self) -> tuple[str, ...]:
        """The transactional ids that the request names."""
        return tuple(map(str, values_of(self.call.api.transactional_ids, self.request)))

    @cached_property
    def topics(self) -> tuple[str, ...] | None:
        """The topics that the request names, or that are in its fetch session; None: all topics."""
        found = values_of(self.call.api.topics, self.request)
        none_means_all = self.call.api.key == ApiKey.DESCRIBE_TOPIC_PARTITIONS
        if ALL_TOPICS in found or (none_means_all and not found):
            return None
        names = [
            self._resolver.name_of(value) or f"id {value}" if isinstance(value, uuid.UUID) else value for value in found
        ]
        if self.call.api.key == ApiKey.FETCH and self.request.session_id:
            names += self._resolver.fetched_in(self.request.session_id)
        return tuple(dict.fromkeys(str(name) for name in names if name))


# The conditions of a rule.


class MatchConditions(TypedDict, total=False):
    """The conditions that ``when`` takes besides the API; see RequestMatcher."""

    group: str | None
    member: str | None
    topic: str | None
    transactional_id: str | None
    client_id: str | None
    version: RangeLike | None
    nth: RangeLike | None
    where: Predicate | None
    broker: int | None


ANY = "any"
"""Stands for every API in a rule as data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMatcher:
    """The conditions of a rule. None matches any value; ``api`` None matches every API.

    ``group``, ``member`` (a member id or a ``group.instance.id``), ``topic`` and ``transactional_id`` match if the request
    names them, possibly among others. ``nth`` counts the requests that match all other conditions. Raises RuleProblems for
    conditions that no request can meet.
    """

    api: Api | None = None
    group: str | None = None
    member: str | None = None
    topic: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    version: NumberRange | None = None
    nth: NumberRange | None = None
    where: Predicate | None = None
    broker: int | None = None

    def __post_init__(self) -> None:
        problems = ProblemCollector()
        for name in ("group", "member", "topic", "transactional_id", "client_id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                problems.add(name, f"{value!r} is not text: put what is meant in quotes")
        if self.broker is not None and not is_number(self.broker):
            problems.add("broker", f"{self.broker!r} is not the number of a broker")
        where: object = self.where
        if where is not None and not callable(where):
            problems.add("where", f"{where!r} is not a function of a request")
        if self.nth is not None and not self.nth.first:
            problems.add("nth", "the first request is number 1")
        if self.api is not None:
            self._check_against(self.api, problems)
        problems.raise_if_any()

    def _check_against(self, api: Api, problems: ProblemCollector) -> None:
        places = {
            "group": api.groups,
            "member": api.members + api.instances,
            "topic": api.topics,
            "transactional_id": api.transactional_ids,
        }
        for name, fields in places.items():
            if getattr(self, name) is not None and not fields:
                problems.add(name, f"a request of {api.name} names no {name}")
        if self.version is None or api.key == ApiKey.API_VERSIONS:  # ApiVersions is answered at any version
            return
        served = NumberRange(api.min_version, api.max_version)
        if not any(map(self.version.__contains__, range(api.min_version, api.max_version + 1))):
            problems.add("version", f"{self.version} is not served; {api.name} is at {served}")

    @classmethod
    def of(cls, api: ApiLike | None = None, **conditions: Unpack[MatchConditions]) -> "RequestMatcher":
        """The matcher with conditions in any form that ``when`` takes. Raises RuleProblems."""
        problems = ProblemCollector()
        known: dict[str, Any] = {
            name: value for name, value in conditions.items() if name in MatchConditions.__annotations__
        }
        for name in conditions:
            if name not in known:
                problems.add(name, f"there is no such field{suggestion(name, MatchConditions.__annotations__)}")
        found_api = problems.read("when", lambda: None if api is None or api == ANY else find_api(api))
        for name in ("version", "nth"):
            if (given := known.get(name)) is not None:
                known[name] = problems.read(name, partial(NumberRange.of, given))
        matcher = problems.read("when", lambda: cls(api=found_api, **known))
        problems.raise_if_any()
        assert matcher is not None
        return matcher

    def __repr__(self) -> str:
        given = [] if self.api is None else [self.api.name]
        given += [f"{name}={value!r}" for name, value in self.conditions()]
        return f"when({', '.join(given)})"

    def conditions(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of each condition besides the API, as written in Python."""
        for name in MatchConditions.__annotations__:
            value = getattr(self, name)
            if value is not None:
                yield name, value.plain if isinstance(value, NumberRange) else value

    def mismatches(self, context: RequestContext) -> list[str]:
        """The reasons why the request does not match, apart from ``nth`` and ``where``; empty if it matches.

        If it is of another API, that is the only reason.
        """
        call = context.call
        if self.api is not None and call.api is not self.api:
            return [f"it is not {self.api.name}"]
        reasons = []
        if self.group is not None and self.group not in context.groups:
            reasons.append(_mismatch("group", self.group, context.groups))
        if self.member is not None and self.member not in context.members:
            reasons.append(_mismatch("member", self.member, context.members))
        if self.topic is not None and context.topics is not None and self.topic not in context.topics:
            reasons.append(_mismatch("topic", self.topic, context.topics))
        if self.transactional_id is not None and self.transactional_id not in context.transactional_ids:
            reasons.append(_mismatch("transactional_id", self.transactional_id, context.transactional_ids))
        if self.client_id is not None and self.client_id != (call.client_id or ""):
            found = () if call.client_id is None else (call.client_id,)
            reasons.append(_mismatch("client_id", self.client_id, found))
        if self.version is not None and call.version not in self.version:
            reasons.append(f"version is {call.version}, not {self.version}")
        if self.broker is not None and self.broker != context.broker:
            reasons.append(f"broker is {context.broker}, not {self.broker}")
        return reasons


def _mismatch(field: str, expected: str, found: tuple[str, ...]) -> str:
    if not found:
        return f"it names no {field}, and not {expected!r}"
    names = ", ".join(map(repr, found))
    return f"{field} is {names}, not {expected!r}"
