"""Any rules, any requests in any order: each call ends once, or a rule lost it; no rule acts too often."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.messages import ApiVersionsRequest, FindCoordinatorRequest
from groupcoord.testing.faults import HoldRule, Rule
from tests.testing.faults.support import (
    ApiVersions,
    Asking,
    FindCoordinator,
    Heartbeat,
    JoinGroup,
    OffsetCommit,
    World,
    commit,
    heartbeat,
    join,
)

APIS = (Heartbeat, OffsetCommit, FindCoordinator, ApiVersions, JoinGroup)
CLIENTS = st.sampled_from(["a", "b"])

verdicts = st.one_of(
    st.sampled_from(["drop", "drop_answer", "disconnect", "disconnect_answer", "hold", "hold_answer"]).map(
        lambda verb: {"do": verb}
    ),
    st.sampled_from(["refuse", "refuse_answer"]).map(lambda verb: {"do": verb, "code": "NOT_COORDINATOR"}),
    st.tuples(st.sampled_from(["delay", "delay_answer"]), st.integers(1, 50)).map(
        lambda pair: {"do": pair[0], "ms": pair[1]}
    ),
    st.sampled_from(["flip", "length", "truncated", "garbage", "correlation", "cut"]).map(
        lambda how: {"do": "corrupt", "how": how}
    ),
)
fields = st.fixed_dictionaries(
    {"when": st.sampled_from(["any", *(api.name for api in APIS)])},
    optional={"client_id": CLIENTS, "nth": st.sampled_from([1, 2, "2-3", "2-"]), "times": st.just("always")},
)
rules = st.lists(st.builds(lambda one, other: Rule.from_dict({**one, **other}), fields, verdicts), max_size=5)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(APIS), CLIENTS),
        st.integers(1, 60).map(lambda ms: ("advance", ms)),
        st.integers(0, 4).map(lambda number: ("release", number)),
    ),
    max_size=25,
)


@pytest.mark.untraced
@pytest.mark.slow
@given(rules=rules, steps=steps)
def test_every_call_ends_once_unless_a_rule_lost_it(rules: list[Rule], steps: list[tuple[Any, Any]]) -> None:
    world = World()
    installed = [world.faults.add(rule) for rule in rules]
    asked = [asking for step in steps if (asking := take(world, step)) is not None]
    # What is delayed or held is let go.
    for rule in installed:
        if isinstance(rule, HoldRule):
            rule.remove()
    while world.faulty.deadlines():
        world.advance(50)
    assert all(len(asking.ends) <= 1 for asking in asked)
    cancel = sum(rule.uses for rule in installed if rule.rule.action.name in ("drop", "drop_answer"))
    assert sum(asking.is_open for asking in asked) == cancel
    for rule in installed:
        assert rule.uses <= (rule.rule.limit or len(asked))
        assert rule.uses == rule.matches
        assert rule.uses or rule.why_unused() or rule.is_removed
        assert not rule.waiting


def take(world: World, step: tuple[Any, Any]) -> Asking | None:
    what, argument = step
    if what == "advance":
        world.advance(argument)
    elif what == "release":
        holds = [rule for rule in world.faults.rules if isinstance(rule, HoldRule)]
        if argument < len(holds):
            holds[argument].release()
    else:
        requests = {
            Heartbeat.key: heartbeat(),
            OffsetCommit.key: commit(),
            FindCoordinator.key: FindCoordinatorRequest(coordinator_keys=("app",)),
            ApiVersions.key: ApiVersionsRequest(client_software_name="x", client_software_version="1"),
            JoinGroup.key: join("unknown"),
        }
        version = 9 if what is OffsetCommit else None
        return world.ask(what, requests[what.key], client_id=argument, version=version)
    return None
