"""A rule as a value: which requests, what happens to them, how often; and ``when(…)``, which makes one."""

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
    is_number,
    suggestion,
)

R = TypeVar("R")
H = TypeVar("H")

ALWAYS: Literal["always"] = "always"
BROKER_OPTIONS = ("broker_id", "moment")
"""What an action that is done to a broker may say as data, besides its argument."""
MATCH_FIELDS = ("group", "member", "topic", "transactional_id", "client_id", "version", "nth", "broker")
"""The conditions of a rule as data, besides ``when``."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``count`` is how often it acts: a number, ALWAYS, or None: once, or once for each number of ``nth``.

    Unless it ``is_optional``, a rule that never acts fails the test. Raises RuleProblems for a rule that can never act.
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
        """How often it acts; None: without limit."""
        if self.count is None:
            return 1 if self.matcher.nth is None else self.matcher.nth.size
        return None if self.count == ALWAYS else int(self.count)

    @property
    def holds(self) -> bool:
        """Does it hold requests or answers until they are released?"""
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
        """The inverse of ``to_dict``. Raises RuleProblems with all fields that are wrong, and what would be right."""
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
    """What is wrong with a rule whose action is done to one of ``brokers``, which are there."""
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

    Those ending in ``_answer`` let the request be handled and act on its answer.
    """

    @abstractmethod
    def _build(self, action: FaultAction) -> R: ...

    @abstractmethod
    def _build_hold(self, action: FaultAction) -> H: ...

    def refuse(self, code: ErrorCode | int | str) -> R:
        """Answer with ``code``, in the API's own shape; the request is not handled."""
        return self._build(FaultAction("refuse", code))

    def refuse_answer(self, code: ErrorCode | int | str) -> R:
        """Handle the request, and answer with ``code`` instead."""
        return self._build(FaultAction("refuse_answer", code))

    def delay(self, ms: int) -> R:
        """Handle the request ``ms`` milliseconds later on the clock of the broker."""
        return self._build(FaultAction("delay", ms))

    def delay_answer(self, ms: int) -> R:
        """Handle the request, and answer ``ms`` milliseconds later on the clock of the broker."""
        return self._build(FaultAction("delay_answer", ms))

    def drop(self) -> R:
        """Never handle the request. The client waits, and no later request on its connection is handled either."""
        return self._build(FaultAction("drop"))

    def drop_answer(self) -> R:
        """Handle the request and never answer it."""
        return self._build(FaultAction("drop_answer"))

    def disconnect(self) -> R:
        """Close the connection; the request is not handled."""
        return self._build(FaultAction("disconnect"))

    def disconnect_answer(self) -> R:
        """Handle the request, and close the connection instead of answering."""
        return self._build(FaultAction("disconnect_answer"))

    def hold(self) -> H:
        """Handle the request when it is released."""
        return self._build_hold(FaultAction("hold"))

    def hold_answer(self) -> H:
        """Handle the request, and answer when that is released."""
        return self._build_hold(FaultAction("hold_answer"))

    def answer(self, fn: AnswerFunction) -> R:
        """Answer with ``fn(request)``, a response in the newest shape; the request is not handled."""
        return self._build(FaultAction("answer", fn))

    def after(self, fn: EditFunction) -> R:
        """Handle the request, and answer with ``fn(request, answer)`` when its answer comes."""
        return self._build(FaultAction("after", fn))

    def hide_topic(self) -> R:
        """Handle a Metadata or DescribeTopicPartitions, and answer as a broker that has not heard of ``topic`` yet.

        The rule must be about a topic. So a client sees a topic right after it was created.
        """
        return self._build(FaultAction("hide_topic"))

    def shrink_isr(self, broker_id: int) -> R:
        """Handle a Metadata or DescribeTopicPartitions, and answer with ISRs of ``topic`` that lack this follower.

        Without a topic, those of every topic. Partitions that the broker leads stay as they are.
        """
        return self._build(FaultAction("shrink_isr", broker_id))

    def corrupt(self, how: Damage | str = Damage.FLIP) -> R:
        """Handle the request, and damage the bytes of its answer: see Damage."""
        return self._build(FaultAction("corrupt", how))

    def kill_broker(self, broker_id: int | None = None, *, moment: str = ASKED) -> R:
        """End a broker without a word: the one that is asked, or ``broker_id``.

        ``moment`` is ``asked``, before the request is handled; ``handled``, before it is answered; or ``answered``. What a
        broker that is gone would have said is not said.
        """
        return self._build(FaultAction("kill_broker", None, broker_id, moment))

    def stop_broker(self, broker_id: int | None = None, *, moment: str = ASKED) -> R:
        """Shut a broker down in order; see ``kill_broker``."""
        return self._build(FaultAction("stop_broker", None, broker_id, moment))

    def pause_broker(self, broker_id: int | None = None, *, moment: str = ASKED) -> R:
        """Let a broker say nothing until it is resumed, and then all that it was asked; see ``kill_broker``."""
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
    """The first half of a rule: ``when("Heartbeat", group="app").refuse("REBALANCE_IN_PROGRESS")``.

    Takes the fields of RequestMatcher. Raises RuleProblems.
    """
    return When(RequestMatcher.of(api, **conditions))
