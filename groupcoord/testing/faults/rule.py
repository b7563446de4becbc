"""Rule, a fault rule as a value: its conditions, action and count; and ``when(…)``, which builds one."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, Unpack

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults.actions import (
    ACTION_TYPES,
    ASKED,
    TOPIC_METADATA_APIS,
    AnswerFunction,
    Damage,
    EditFunction,
    FaultAction,
)
from groupcoord.testing.faults.matching import (
    ANY,
    ApiLike,
    MatchConditions,
    ProblemCollector,
    RequestMatcher,
    RuleProblem,
    RuleProblems,
    suggestion,
)
from groupcoord.testing.topic_settings import is_number

R = TypeVar("R")
H = TypeVar("H")

ALWAYS: Literal["always"] = "always"
BROKER_OPTIONS = ("broker_id", "moment")
"""The fields of an action on a broker, in a rule as data, besides its argument."""
MATCH_FIELDS = ("group", "member", "topic", "transactional_id", "client_id", "version", "nth", "broker")
"""The conditions of a rule as data, besides ``when``."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault rule. ``count`` is how often it acts: a number, ALWAYS, or None: once, or once for each number of ``nth``.

    A rule that never acts fails the test, unless it ``is_optional``. Raises RuleProblems for a rule that can never act.
    """

    matcher: RequestMatcher
    action: FaultAction
    count: int | Literal["always"] | None = None
    is_optional: bool = False

    def __post_init__(self) -> None:
        problems, count, nth = ProblemCollector(), self.count, self.matcher.nth
        if count not in (None, ALWAYS) and not (is_number(count) and int(count) > 0):
            problems.add("times", f"{count!r} is neither a number above 0 nor {ALWAYS!r}")
        elif isinstance(count, int) and nth is not None and count > (nth.size or count):
            problems.add("times", f"nth is {nth}, so it acts {nth.size} times at most, not {count}")
        optional: object = self.is_optional
        if not isinstance(optional, bool):
            problems.add("optional", f"{optional!r} is neither true nor false")
        api = self.matcher.api
        if self.action.argument is Damage.CRC and (api is None or api.key != ApiKey.FETCH):
            problems.add("how", "only answers to Fetch have batches, and those a checksum: crc goes with Fetch")
        if self.action.name in ("hide_topic", "shrink_isr") and (api is None or api.key not in TOPIC_METADATA_APIS):
            problems.add("when", f"only answers to Metadata and DescribeTopicPartitions take {self.action.name}")
        if self.action.name == "hide_topic" and self.matcher.topic is None:
            problems.add("topic", "it is missing: the topic to hide")
        problems.raise_if_any()

    def __repr__(self) -> str:
        count = "" if self.count is None else ".always()" if self.count == ALWAYS else f".times({self.count})"
        return f"{self.matcher!r}{self.action!r}{count}{'.optional()' if self.is_optional else ''}"

    def times(self, count: int) -> "Rule":
        """The same rule, acting ``count`` times."""
        return replace(self, count=count)

    def always(self) -> "Rule":
        """The same rule, acting whenever it matches."""
        return replace(self, count=ALWAYS)

    def optional(self) -> "Rule":
        """The same rule, which need not act."""
        return replace(self, is_optional=True)

    @property
    def limit(self) -> int | None:
        """How often it acts at most; None: no limit."""
        if self.count is None:
            return 1 if self.matcher.nth is None else self.matcher.nth.size
        return None if self.count == ALWAYS else int(self.count)

    @property
    def holds(self) -> bool:
        """Does it hold requests or responses until they are released?"""
        return self.action.name in ("hold", "hold_answer")

    def to_dict(self) -> dict[str, Any]:
        """The rule as data. Raises ValueError for a rule with a function."""
        matcher, action = self.matcher, self.action
        if matcher.where is not None:
            raise ValueError(f"{self} has a function, which cannot be written as data")
        data: dict[str, Any] = {"when": ANY if matcher.api is None else matcher.api.name, **dict(matcher.conditions())}
        data["do"] = action.name
        if action.type.argument is not None:
            data[action.type.argument.name] = action.plain_argument
        data |= action.broker_options
        if self.count is not None:
            data["times"] = self.count
        if self.is_optional:
            data["optional"] = True
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Rule":
        """The rule that ``data`` describes, as ``to_dict`` writes it. Raises RuleProblems with all wrong fields, and what would
        be right."""
        problems = ProblemCollector()
        action_type = ACTION_TYPES.get(str(data.get("do")))
        argument = [] if action_type is None or action_type.argument is None else [action_type.argument.name]
        argument += BROKER_OPTIONS if action_type is not None and action_type.on_broker else ()
        known = ("when", *MATCH_FIELDS, "do", *argument, "times", "optional")
        for name in data:
            if name not in known:
                problems.add(str(name), _unknown_field(str(name), known, data.get("do")))
        for name in ("when", *MATCH_FIELDS, "times"):
            if name in data and data[name] is None:
                problems.add(name, "there is nothing behind it")
        if "when" not in data:
            problems.add("when", f"it is missing: the name of an API, or {ANY}")
        conditions = {name: data.get(name) for name in MATCH_FIELDS}
        matcher = problems.read("when", lambda: RequestMatcher.of(data.get("when"), **conditions))
        action = problems.read("do", lambda: _action(data))
        if matcher is None or action is None:  # read the rest all the same, for its problems
            matcher, action = RequestMatcher(), FaultAction("drop")
        rule = problems.read("times", lambda: cls(matcher, action, data.get("times"), data.get("optional", False)))
        problems.raise_if_any()
        assert rule is not None
        return rule


def _action(data: Mapping[str, Any]) -> FaultAction:
    """Raises ValueError."""
    names = [name for name, each in ACTION_TYPES.items() if each.argument is None or each.argument.write is not None]
    name = data.get("do")
    if name is None:
        raise ValueError(f"it is missing: one of {', '.join(names)}")
    if name not in names:
        if name in ACTION_TYPES:
            raise ValueError(f"{name} takes a function, so it is for programs; there is {', '.join(names)}")
        raise ValueError(f"there is no verb {name!r}{suggestion(str(name), names)}")
    argument = ACTION_TYPES[name].argument
    if argument is not None and argument.name not in data:
        raise RuleProblems.one(argument.name, f"{name} needs it: {argument.text}")
    options = {option: data[option] for option in BROKER_OPTIONS if ACTION_TYPES[name].on_broker and option in data}
    return FaultAction(name, None if argument is None else data[argument.name], **options)


def broker_problems(rule: Rule, brokers: Sequence[int]) -> Iterator[RuleProblem]:
    """The problems of a rule with an action on a broker, in a cluster with these ``brokers`` (ids)."""
    action = rule.action
    if not action.type.on_broker:
        return
    if len(brokers) < 2:
        yield RuleProblem("do", f"{action.name} is for a cluster of several brokers, which this is not")
        return
    for field, broker_id in (("broker_id", action.broker_id), ("peer", action.argument)):
        if isinstance(broker_id, int) and broker_id not in brokers:
            yield RuleProblem(field, f"there is no broker {broker_id}: the ids are {', '.join(map(str, brokers))}")


def _unknown_field(name: str, known: tuple[str, ...], action_name: Any) -> str:
    if name == "where":
        return "it takes a function, so it is for programs"
    arguments = {each.argument.name for each in ACTION_TYPES.values() if each.argument is not None}
    if name in arguments.union(BROKER_OPTIONS):
        return f"it does not go with do: {action_name}"
    return f"there is no such field{suggestion(name, known)}"


class RuleBuilder(ABC, Generic[R, H]):
    """The actions that may follow ``when(…)``. They raise RuleProblems for an invalid argument.

    Actions that end with ``_answer`` apply to the response; the request is handled.
    """

    @abstractmethod
    def _build(self, action: FaultAction) -> R: ...

    @abstractmethod
    def _build_hold(self, action: FaultAction) -> H: ...

    def refuse(self, code: ErrorCode | int | str) -> R:
        """Respond with the error ``code``; the request is not handled."""
        return self._build(FaultAction("refuse", code))

    def refuse_answer(self, code: ErrorCode | int | str) -> R:
        """Handle the request, but respond with the error ``code`` instead."""
        return self._build(FaultAction("refuse_answer", code))

    def delay(self, ms: int) -> R:
        """Handle the request ``ms`` milliseconds later, on the broker's clock."""
        return self._build(FaultAction("delay", ms))

    def delay_answer(self, ms: int) -> R:
        """Handle the request, and respond ``ms`` milliseconds later, on the broker's clock."""
        return self._build(FaultAction("delay_answer", ms))

    def drop(self) -> R:
        """Never handle the request. The client waits; later requests on its connection are not handled either."""
        return self._build(FaultAction("drop"))

    def drop_answer(self) -> R:
        """Handle the request, and never respond."""
        return self._build(FaultAction("drop_answer"))

    def disconnect(self) -> R:
        """Close the connection; the request is not handled."""
        return self._build(FaultAction("disconnect"))

    def disconnect_answer(self) -> R:
        """Handle the request, and close the connection instead of responding."""
        return self._build(FaultAction("disconnect_answer"))

    def hold(self) -> H:
        """Hold the request: it is handled when the test releases it."""
        return self._build_hold(FaultAction("hold"))

    def hold_answer(self) -> H:
        """Handle the request, and hold the response until the test releases it."""
        return self._build_hold(FaultAction("hold_answer"))

    def answer(self, fn: AnswerFunction) -> R:
        """Respond with ``fn(request)``, a response of the newest version; the request is not handled."""
        return self._build(FaultAction("answer", fn))

    def after(self, fn: EditFunction) -> R:
        """Handle the request, and respond with ``fn(request, response)``."""
        return self._build(FaultAction("after", fn))

    def hide_topic(self) -> R:
        """Respond to a Metadata or DescribeTopicPartitions as a broker whose metadata does not have the rule's ``topic`` yet.

        Clients of a real cluster see this right after a topic was created. The rule must have a ``topic``.
        """
        return self._build(FaultAction("hide_topic"))

    def shrink_isr(self, broker_id: int) -> R:
        """Respond to a Metadata or DescribeTopicPartitions with this follower missing in the ISRs of the rule's ``topic``.

        Without a topic, in those of every topic. Partitions that the broker leads are not changed.
        """
        return self._build(FaultAction("shrink_isr", broker_id))

    def corrupt(self, how: Damage | str = Damage.FLIP) -> R:
        """Handle the request, and damage the bytes of the response: see Damage."""
        return self._build(FaultAction("corrupt", how))

    def kill_broker(self, broker_id: int | None = None, *, moment: str = ASKED) -> R:
        """Kill a broker: the one that gets the request, or ``broker_id``.

        ``moment`` is ``asked``, before the request is handled; ``handled``, before the response; or ``answered``, after it. A
        broker that is gone does not respond.
        """
        return self._build(FaultAction("kill_broker", None, broker_id, moment))

    def stop_broker(self, broker_id: int | None = None, *, moment: str = ASKED) -> R:
        """Shut a broker down cleanly; see ``kill_broker``."""
        return self._build(FaultAction("stop_broker", None, broker_id, moment))

    def pause_broker(self, broker_id: int | None = None, *, moment: str = ASKED) -> R:
        """Suspend a broker until it is resumed, when it handles the requests that came; see ``kill_broker``."""
        return self._build(FaultAction("pause_broker", None, broker_id, moment))

    def cut_off_broker(self, peer: int | str, broker_id: int | None = None, *, moment: str = ASKED) -> R:
        """Cut a broker off from another one (its id), ``"clients"`` or the ``"controller"``; see ``kill_broker``."""
        return self._build(FaultAction("cut_off_broker", peer, broker_id, moment))


class When(RuleBuilder[Rule, Rule]):
    """The result of ``when(…)``."""

    def __init__(self, matcher: RequestMatcher) -> None:
        self._matcher = matcher

    def _build(self, action: FaultAction) -> Rule:
        return Rule(self._matcher, action)

    _build_hold = _build


def when(api: ApiLike | None = None, **conditions: Unpack[MatchConditions]) -> When:
    """The conditions of a rule: ``when("Heartbeat", group="app").refuse("REBALANCE_IN_PROGRESS")``.

    Takes the fields of RequestMatcher. Raises RuleProblems.
    """
    return When(RequestMatcher.of(api, **conditions))
