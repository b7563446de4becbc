"""Routes of append rules, which fail or hold a coordinator's appends to ``__consumer_offsets`` and ``__transaction_state``."""

from typing import Annotated

from fastapi import Path, Query

from groupcoord.control.controlled_clusters import ControlledCluster
from groupcoord.control.models import AppendError, AppendRuleState, NewAppendRule
from groupcoord.control.problem_documents import ProblemError, wrong_argument
from groupcoord.control.route_dependencies import BODY, CONFLICT, WAITS, Target, Timeout, router, waited
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.append_rules import AppendRule, HeldAppends

appends = router("appends")

RuleNumber = Annotated[int, Path(description="the number of a rule: `id`")]


def _rule(cluster: ControlledCluster, number: int) -> AppendRule:
    """Raises ProblemError if there is no such rule."""
    if not 0 < number <= len(cluster.appends):
        there = f"they are 1 to {len(cluster.appends)}" if cluster.appends else "there are none"
        raise ProblemError(404, f"there is no rule {number} for appends: {there}")
    return cluster.appends[number - 1]


def _holding(cluster: ControlledCluster, number: int) -> HeldAppends:
    """Raises ProblemError if there is no such rule, or it is not a rule that holds appends."""
    rule = _rule(cluster, number)
    if not isinstance(rule, HeldAppends):
        raise ProblemError(409, f"rule {number} holds nothing back: do: hold does")
    return rule


def _state(cluster: ControlledCluster, rule: AppendRule) -> AppendRuleState:
    holds = isinstance(rule, HeldAppends)
    return AppendRuleState(
        id=cluster.appends.index(rule) + 1,
        text=str(rule),
        do="hold" if holds else "fail",
        error=rule.decision.name if isinstance(rule.decision, ErrorCode) else None,
        group=rule.group,
        transactional_id=rule.transactional_id,
        left=rule.left,
        uses=rule.uses,
        held=len(rule.held) if isinstance(rule, HeldAppends) else 0,
        is_removed=rule not in cluster.append_rules,
    )


@appends.get("/appends", summary="List the append rules")
async def list_append_rules(cluster: Target) -> list[AppendRuleState]:
    """All rules that were added since the broker started, in order."""
    return [_state(cluster, rule) for rule in cluster.appends]


@appends.post(
    "/appends", status_code=201, summary="Add a rule that fails or holds appends of coordinators", responses=BODY
)
async def add_append_rule(body: NewAppendRule, cluster: Target) -> AppendRuleState:
    """It applies to the next appends to ``__consumer_offsets`` and ``__transaction_state``: they fail as if the log refused
    them, or wait as if other replicas did not have them yet."""
    of_fail = body.error is not None
    if of_fail is (body.do == "hold"):
        raise ProblemError.of_field("error", "it goes with do: fail" if of_fail else "it is missing: fail needs it")
    with wrong_argument("transactional_id" if None not in (body.group, body.transactional_id) else "error"):
        rule: AppendRule
        if body.error is None:
            rule = cluster.hold_append(group=body.group, transactional_id=body.transactional_id, times=body.times)
        else:
            rule = cluster.fail_append(
                body.error, group=body.group, transactional_id=body.transactional_id, times=body.times
            )
    cluster.appends.append(rule)
    return _state(cluster, rule)


@appends.get("/appends/{rule}", summary="Show an append rule")
async def show_append_rule(rule: RuleNumber, cluster: Target) -> AppendRuleState:
    """The rule, to how many appends it applied, and how many it holds."""
    return _state(cluster, _rule(cluster, rule))


@appends.delete("/appends/{rule}", status_code=204, summary="Remove an append rule")
async def remove_append_rule(rule: RuleNumber, cluster: Target) -> None:
    """It applies to no more appends; those that it holds wait until they are released or failed."""
    _rule(cluster, rule).remove()


@appends.get(
    "/appends/{rule}/wait", summary="Wait until an append rule has applied or holds appends", responses=CONFLICT | WAITS
)
async def wait_append_rule(
    rule: RuleNumber,
    cluster: Target,
    timeout: Timeout,
    acted: Annotated[int | None, Query(ge=1, description="until it has applied to so many appends in all")] = None,
    held: Annotated[int | None, Query(ge=1, description="until it holds so many appends")] = None,
) -> AppendRuleState:
    """Give one of ``acted`` and ``held``."""
    if (acted is None) is (held is None):
        raise ProblemError.of_field("query", "one of acted and held: how many appends")
    if acted is not None:
        await waited(cluster, _rule(cluster, rule).acted(acted, timeout=timeout))
    else:
        await waited(cluster, _holding(cluster, rule).wait(held or 1, timeout=timeout))
    return _state(cluster, _rule(cluster, rule))


@appends.post("/appends/{rule}/release", summary="Store the appends that a rule holds", responses=CONFLICT)
async def release_appends(rule: RuleNumber, cluster: Target) -> AppendRuleState:
    """They are stored in the order in which they came."""
    holding = _holding(cluster, rule)
    holding.release()
    await cluster.settle()
    return _state(cluster, holding)


@appends.post("/appends/{rule}/fail", summary="Fail the appends that a rule holds", responses=BODY | CONFLICT)
async def fail_appends(rule: RuleNumber, body: AppendError, cluster: Target) -> AppendRuleState:
    """They fail with the given error, as if the log had returned it."""
    holding = _holding(cluster, rule)
    with wrong_argument("error"):
        holding.fail(body.error)
    await cluster.settle()
    return _state(cluster, holding)
