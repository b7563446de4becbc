import inspect
from typing import Any

import pytest

from groupcoord.testing.faults import FaultAction, RequestMatcher, Rule, RuleProblems, when
from groupcoord.testing.faults.actions import ACTION_TYPES
from groupcoord.testing.faults.rule import ALWAYS, BROKER_OPTIONS, RuleBuilder, When
from tests.testing.faults.support import Fetch, Heartbeat, JoinGroup, Metadata

RULES = [
    when(Heartbeat, group="app").refuse("REBALANCE_IN_PROGRESS"),
    when(Heartbeat, group="app", member="m", client_id="c", version="3-", nth="2-4", broker=2).delay(500).times(2),
    when(topic="orders").drop().always(),
    when(JoinGroup).disconnect_answer().optional(),
    when(Fetch).corrupt("crc"),
    when(Heartbeat, nth=3).refuse(999),
    when(JoinGroup).hold(),
    when("EndTxn", transactional_id="billing").drop(),
]


def test_a_rule_is_data() -> None:
    for rule in RULES:
        data = rule.to_dict()
        assert Rule.from_dict(data) == rule
        assert all(isinstance(value, str | int) for value in data.values())


def test_how_the_data_looks() -> None:
    assert RULES[1].to_dict() == {
        "when": "Heartbeat",
        "group": "app",
        "member": "m",
        "client_id": "c",
        "version": "3-",
        "nth": "2-4",
        "broker": 2,
        "do": "delay",
        "ms": 500,
        "times": 2,
    }
    assert RULES[2].to_dict() == {"when": "any", "topic": "orders", "do": "drop", "times": "always"}
    assert RULES[3].to_dict() == {"when": "JoinGroup", "do": "disconnect_answer", "optional": True}


def test_a_rule_says_what_makes_it() -> None:
    assert [repr(rule) for rule in RULES[:4]] == [
        "when(Heartbeat, group='app').refuse('REBALANCE_IN_PROGRESS')",
        "when(Heartbeat, group='app', member='m', client_id='c', version='3-', nth='2-4', broker=2).delay(500).times(2)",
        "when(topic='orders').drop().always()",
        "when(JoinGroup).disconnect_answer().optional()",
    ]


def test_what_it_says_makes_it() -> None:
    for rule in [rule for rule in RULES if rule.matcher.api is not None]:
        names = {"when": when, "Heartbeat": Heartbeat, "JoinGroup": JoinGroup, "Fetch": Fetch, "EndTxn": "EndTxn"}
        assert eval(repr(rule), names) == rule


def test_functions_are_not_data() -> None:
    for rule in (when(Heartbeat, where=bool).drop(), when(Heartbeat).answer(max), when(Heartbeat).after(max)):
        with pytest.raises(ValueError, match="function"):
            rule.to_dict()


def test_how_often_it_acts() -> None:
    cases: list[tuple[Rule, int | None]] = [
        (when(Heartbeat).drop(), 1),
        (when(Heartbeat).drop().times(3), 3),
        (when(Heartbeat).drop().always(), None),
        (when(Heartbeat, nth=3).drop(), 1),
        (when(Heartbeat, nth="2-4").drop(), 3),
        (when(Heartbeat, nth="2-").drop(), None),
        (when(Heartbeat, nth="2-").drop().times(5), 5),
        (when(Heartbeat, nth="2-4").drop().times(2), 2),
    ]
    for rule, limit in cases:
        assert rule.limit == limit


def test_rules_that_cannot_be_meant() -> None:
    cases: list[tuple[Any, str]] = [
        (lambda: when(Heartbeat).drop().times(0), "times: 0 is neither a number above 0 nor 'always'"),
        (lambda: when(Heartbeat).drop().times(True), "times: True is neither a number above 0 nor 'always'"),
        (lambda: when(Heartbeat, nth=3).drop().times(2), "times: nth is 3, so it acts 1 times at most, not 2"),
        (
            lambda: when(Heartbeat).corrupt("crc"),
            "how: only answers to Fetch have batches, and those a checksum: crc goes with Fetch",
        ),
        (lambda: Rule(RequestMatcher(), FaultAction("drop"), ALWAYS, 1), "optional: 1 is neither true nor false"),  # type: ignore[arg-type]
    ]
    for make, problem in cases:
        with pytest.raises(RuleProblems) as found:
            make()
        assert str(found.value) == problem


DATA_VERBS = (
    "refuse, refuse_answer, delay, delay_answer, drop, drop_answer, disconnect, disconnect_answer, "
    "hold, hold_answer, hide_topic, shrink_isr, corrupt, kill_broker, stop_broker, pause_broker, cut_off_broker"
)
FIELDS = "broker, client_id, do, group, member, nth, optional, times, topic, transactional_id, version, when"


def test_everything_that_is_wrong_with_data_is_told() -> None:
    cases: list[tuple[dict[Any, Any], list[str]]] = [
        ({}, ["when: it is missing: the name of an API, or any", f"do: it is missing: one of {DATA_VERBS}"]),
        ({"when": None, "do": "drop"}, ["when: there is nothing behind it"]),
        (
            {"when": "any", "group": None, "do": "drop", "times": None},
            ["group: there is nothing behind it", "times: there is nothing behind it"],
        ),
        ({"when": "any", "do": "dorp"}, ["do: there is no verb 'dorp'; did you mean drop?"]),
        ({"when": "any", "do": "after"}, [f"do: after takes a function, so it is for programs; there is {DATA_VERBS}"]),
        ({"when": "any", "do": "delay"}, ["ms: delay needs it: milliseconds on the broker's clock"]),
        (
            {"when": "Fetch", "topic": "orders", "do": "hide_topic"},
            ["when: only answers to Metadata and DescribeTopicPartitions take hide_topic"],
        ),
        ({"when": "Metadata", "do": "hide_topic"}, ["topic: it is missing: the topic to hide"]),
        (
            {"when": "any", "do": "shrink_isr", "broker_id": 1},
            ["when: only answers to Metadata and DescribeTopicPartitions take shrink_isr"],
        ),
        (
            {"when": "Metadata", "do": "shrink_isr", "broker_id": -1},
            ["broker_id: -1 is not the id of a broker, a number from 0 on"],
        ),
        (
            {"when": "any", "do": "kill_broker", "broker_id": "2", "moment": "later"},
            [
                "broker_id: '2' is not the id of a broker, a number from 0 on",
                "moment: 'later' is not a moment; there is asked, handled, answered",
            ],
        ),
        (
            {"when": "any", "do": "cut_off_broker", "peer": "moon"},
            ["peer: 'moon' is neither the id of a broker nor clients or controller"],
        ),
        (
            {"when": "any", "do": "cut_off_broker"},
            ["peer: cut_off_broker needs it: the id of a broker, `clients` or `controller`"],
        ),
        ({"when": "any", "do": "drop", "moment": "asked"}, ["moment: it does not go with do: drop"]),
        ({"when": "any", "do": "delay", "ms": 5, "code": "NOT_COORDINATOR"}, ["code: it does not go with do: delay"]),
        ({"when": "any", "do": "drop", "where": "x"}, ["where: it takes a function, so it is for programs"]),
        ({"when": "any", "do": "drop", "gruop": "x"}, ["gruop: there is no such field; did you mean group?"]),
        ({"when": "any", "do": "drop", "times": "twice"}, ["times: 'twice' is neither a number above 0 nor 'always'"]),
        (
            {"when": "any", "do": "drop", 5: 6},
            [f"5: there is no such field; there is {FIELDS}"],
        ),
        (
            {"when": "Hearbeat", "version": 99, "do": "corrupt", "how": "crc", "times": 0},
            [
                "when: there is no API 'Hearbeat'; did you mean Heartbeat?",
                "times: 0 is neither a number above 0 nor 'always'",
            ],
        ),
    ]
    for data, problems in cases:
        with pytest.raises(RuleProblems) as found:
            Rule.from_dict(data)
        assert list(map(str, found.value.problems)) == problems


ARGUMENTS = {"code": "NOT_COORDINATOR", "ms": 5, "how": "cut", "fn": max, "broker_id": 2, "peer": "clients"}


def test_every_verb_of_the_table_is_a_method() -> None:
    cases: list[str] = [*ACTION_TYPES]
    for name in cases:
        argument = ACTION_TYPES[name].argument
        given = () if argument is None else (ARGUMENTS[argument.name],)
        rule = getattr(when(Metadata, topic="orders"), name)(*given)
        assert rule == Rule(RequestMatcher(api=Metadata, topic="orders"), FaultAction(name, *given))
        parameters = list(inspect.signature(getattr(When, name)).parameters)[1:]
        options = list(BROKER_OPTIONS) if ACTION_TYPES[name].on_broker else []
        assert parameters == ([] if argument is None else [argument.name]) + options


def test_what_is_done_to_a_broker_is_written_with_its_options() -> None:
    rule = when("Produce").cut_off_broker(1, 2, moment="handled")
    assert repr(rule) == "when(Produce).cut_off_broker(1, broker_id=2, moment='handled')"
    assert rule.to_dict() == {
        "when": "Produce",
        "do": "cut_off_broker",
        "peer": 1,
        "broker_id": 2,
        "moment": "handled",
    }
    assert Rule.from_dict(rule.to_dict()) == rule
    assert when("Produce").kill_broker().to_dict() == {"when": "Produce", "do": "kill_broker"}


def test_every_method_is_a_verb_of_the_table() -> None:
    assert {name for name in vars(RuleBuilder) if name in ACTION_TYPES or not name.startswith("_")} == set(ACTION_TYPES)


def test_damage_is_a_flipped_bit_unless_told() -> None:
    assert when(Heartbeat).corrupt() == when(Heartbeat).corrupt("flip")


def test_a_rule_can_be_about_everything() -> None:
    assert when().drop().matcher == RequestMatcher()
