"""Routes of fault rules, which refuse, delay, hold or drop requests and responses (docs/faults.md)."""

import typing
from dataclasses import fields
from typing import Annotated, Any

import pydantic
from fastapi import Path, Query
from fastapi.responses import PlainTextResponse

from groupcoord.control.controlled_clusters import ControlledCluster
from groupcoord.control.models import FaultRule, FaultRuleState, HeldRequest, Release, RequestToExplain
from groupcoord.control.problem_documents import ProblemError, wrong_argument
from groupcoord.control.route_dependencies import BODY, CONFLICT, TEXT, WAITS, Target, Timeout, router, waited
from groupcoord.testing.faults import AsyncRule, HoldRule
from groupcoord.testing.faults.matching import find_api, suggestion
from groupcoord.testing.faults.rule import Rule
from groupcoord.testing.faults.rulebook import HeldRequest as Held

faults = router("faults")

RuleNumber = Annotated[int, Path(description="the number of a rule: `id`")]


def _rule(cluster: ControlledCluster, number: int) -> AsyncRule:
    """Raises ProblemError if there is no such rule."""
    rules = cluster.faults.rules
    if not 0 < number <= len(rules):
        there = f"they are 1 to {len(rules)}" if rules else "there are none"
        raise ProblemError(404, f"there is no fault rule {number}: {there}")
    return typing.cast("AsyncRule", rules[number - 1])


def _holding(cluster: ControlledCluster, number: int) -> HoldRule:
    """Raises ProblemError if there is no such rule, or it is not a rule that holds requests."""
    rule = _rule(cluster, number)
    if not isinstance(rule, HoldRule):
        raise ProblemError(409, f"{rule.name} holds nothing back: do: hold and do: hold_answer do")
    return rule


def _held(each: Held) -> HeldRequest:
    return HeldRequest(
        api=each.call.api.name,
        version=each.call.version,
        client_id=each.call.client_id,
        groups=list(each.context.groups),
        members=list(each.context.members),
        since_ms=each.at_ms,
        text=str(each.context),
    )


def _state(cluster: ControlledCluster, rule: AsyncRule) -> FaultRuleState:
    return FaultRuleState(
        id=cluster.faults.rules.index(rule) + 1,
        name=rule.name,
        rule=rule.rule.to_dict(),
        text=str(rule.rule),
        uses=rule.uses,
        limit=rule.rule.limit,
        is_removed=rule.is_removed,
        is_optional=rule.rule.is_optional,
        why_unused=rule.why_unused(),
        waiting=[_held(each) for each in rule.waiting],
    )


@faults.get("/faults", summary="List the fault rules")
async def list_faults(cluster: Target) -> list[FaultRuleState]:
    """All rules that were added since the broker started, in order, with how often each acted."""
    return [_state(cluster, typing.cast("AsyncRule", rule)) for rule in cluster.faults.rules]


@faults.post("/faults", status_code=201, summary="Add a fault rule", responses=BODY)
async def add_fault(body: FaultRule, cluster: Target) -> FaultRuleState:
    """It is added after the others: the first rule that matches a request acts. docs/faults.md describes the fields; ``hold``
    and ``hold_answer`` hold requests and responses until ``/faults/ID/release``."""
    rule = Rule.from_dict(body.model_dump(exclude={"name"}, exclude_unset=True))
    return _state(cluster, cluster.faults.add(rule, body.name))


@faults.delete("/faults", status_code=204, summary="Remove all fault rules")
async def remove_faults(cluster: Target) -> None:
    """Requests and responses that they hold go on."""
    for rule in cluster.faults.book.active:
        rule.remove()


@faults.post(
    "/faults/explain",
    summary="Explain what each rule would do with a request",
    response_class=PlainTextResponse,
    responses=BODY | TEXT,
)
async def explain(body: RequestToExplain, cluster: Target) -> str:
    """What each rule would do if the request were sent now, and why."""
    with wrong_argument("api"):
        api = find_api(body.api)
    if body.version is not None and not api.serves(body.version):
        raise ProblemError.of_field("version", f"{api.name} is served from {api.min_version} to {api.max_version}")
    known = [field.name for field in fields(api.request)]
    unknown = [
        (f"request.{name}", f"{api.name} has no such field{suggestion(name, known)}")
        for name in body.request
        if name not in known
    ]
    if unknown:
        raise ProblemError(422, "; ".join(f"{name}: {text}" for name, text in unknown), errors=unknown)
    try:
        request: Any = pydantic.TypeAdapter(api.request).validate_python(body.request)
    except pydantic.ValidationError as invalid:
        errors = [(".".join(["request", *map(str, each["loc"])]), each["msg"]) for each in invalid.errors()]
        raise ProblemError(422, "; ".join(f"{name}: {text}" for name, text in errors), errors=errors) from invalid
    return cluster.faults.explain(request, client_id=body.client_id, version=body.version, broker=body.broker)


@faults.get("/faults/{rule}", summary="Show a fault rule")
async def show_fault(rule: RuleNumber, cluster: Target) -> FaultRuleState:
    """The rule and how often it acted; if never, why not, with the requests that nearly matched."""
    return _state(cluster, _rule(cluster, rule))


@faults.delete("/faults/{rule}", status_code=204, summary="Remove a fault rule")
async def remove_fault(rule: RuleNumber, cluster: Target) -> None:
    """It no longer acts; requests and responses that it holds go on."""
    _rule(cluster, rule).remove()


@faults.get("/faults/{rule}/wait", summary="Wait until a fault rule has acted", responses=CONFLICT | WAITS)
async def wait_fault(
    rule: RuleNumber,
    cluster: Target,
    timeout: Timeout,
    acted: Annotated[int | None, Query(ge=1, description="until it has acted so many times in all")] = None,
    held: Annotated[int | None, Query(ge=1, description="until so many requests were held in all")] = None,
) -> FaultRuleState:
    """Give one of ``acted`` and ``held``. 504 after the timeout, with the requests that nearly matched."""
    if (acted is None) is (held is None):
        raise ProblemError.of_field("query", "one of acted and held: how many times it should have")
    if acted is not None:
        await waited(cluster, _rule(cluster, rule).acted(acted, timeout=timeout))
    else:
        await waited(cluster, _holding(cluster, rule).wait(held or 1, timeout=timeout))
    return _state(cluster, _rule(cluster, rule))


@faults.get("/faults/{rule}/waiting", summary="List the requests that a fault rule holds", responses=CONFLICT)
async def list_waiting(rule: RuleNumber, cluster: Target) -> list[HeldRequest]:
    """In the order in which they came."""
    return [_held(each) for each in _holding(cluster, rule).waiting]


@faults.post(
    "/faults/{rule}/release", summary="Release the requests that a fault rule holds", responses=BODY | CONFLICT
)
async def release(rule: RuleNumber, cluster: Target, body: Release | None = None) -> FaultRuleState:
    """They go on in the order in which they came, or in the given one."""
    holding = _holding(cluster, rule)
    waiting = holding.waiting
    order = list(range(len(waiting))) if body is None or body.order is None else body.order
    if len(set(order)) != len(order) or not set(order) <= set(range(len(waiting))):
        raise ProblemError.of_field(
            "order", f"{order} are no different indexes of the {len(waiting)} that wait, from 0 on"
        )
    if order:
        holding.release(*(waiting[number] for number in order))
    await cluster.settle()
    return _state(cluster, holding)
