"""The report of a failed test about its cluster: brokers that do not run, the groups and why they are in their states, what is
pending, which fault rules acted, and the end of the trace, with requests without effect folded."""

from collections.abc import Callable, Sequence

from groupcoord.broker.leader_election_and_isr import NO_LEADER
from groupcoord.cluster.broker_status import BrokerState
from groupcoord.core.events import counted
from groupcoord.testing.append_rules import AppendRule
from groupcoord.testing.cluster_group import group_description
from groupcoord.testing.engine import Engine
from groupcoord.testing.faults.rulebook import ActiveRule
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import listed, moment, times
from groupcoord.testing.transaction_handle import transaction_description
from groupcoord.testing.wait_reasons import wait_reasons

STORY_LINES = 200
"""How many lines of the trace are shown, the last ones."""
GENERATIONS = 5
"""How many generations or epochs of each group are explained, the last ones. When a test fails, its members leave their groups,
which adds one for each."""
SHOWN = 20
"""How many groups, transactions and deadlines are shown; of the others only the number."""


def failure_report(engine: Engine, after: int = 0, *, nothing: str = "nothing") -> str:
    """The report, with the trace from the entry after number ``after`` on, or the text ``nothing`` if there is none."""
    trace = engine.trace
    now = moment(engine.clock() - engine.started_ms)
    parts = {
        "brokers": _few(_brokers(engine)),
        "groups": _few(sorted({*engine.group_names(), *trace.groups()}), lambda name: _group(engine, name)),
        "transactions": _few(engine.transactional_ids(), lambda name: _transaction(engine, name)),
        f"pending at {now}": _few(wait_reasons(engine)),
        "fault rules": [*map(_rule, engine.faults.book.rules), *map(_append_rule, engine.appends.rules)],
    }
    names = ShortMemberNames(trace.entries())
    lines = [
        line
        for title, told in parts.items()
        if told
        for line in (f"{title}:", *(f"  {line}" for each in told for line in names.shortened(each).splitlines()), "")
    ]
    since = next((entry for entry in trace.entries() if entry.seq > after), None)
    story = nothing if since is None else trace.text(since=since, limit=STORY_LINES, fold=True, real=True)
    return "\n".join([*lines, "what happened, what changed nothing in one line:", story])


def _brokers(engine: Engine) -> list[str]:
    """The brokers that do not just run, and the partitions that have no leader because of them."""
    core = engine.core
    conditions = [(broker_id, str(core.controller.condition_of(broker_id))) for broker_id in core.broker.cluster.ids]
    disturbed = [f"broker {broker_id}: {said}" for broker_id, said in conditions if said != BrokerState.RUNNING.value]
    leaderless = [
        f"{topic.name}-{number} has no leader: its replicas are on {listed([f'broker {each}' for each in part.replicas])}"
        for topic in core.broker.topics
        for number, part in enumerate(topic.metadata.partitions)
        if part.leader == NO_LEADER
    ]
    return disturbed + leaderless


def _group(engine: Engine, name: str) -> str:
    """The state of a group, and why its last generations or epochs began."""
    state = group_description(engine.core, name).text()
    last = engine.trace.generations(name)[-GENERATIONS:]
    return "\n".join([state, *(f"  {engine.trace.why(name, number)}" for number in last)])


def _transaction(engine: Engine, name: str) -> str:
    state = transaction_description(engine.core, name).text()
    try:
        return f"{state}\n  {engine.trace.why(transaction=name)}"
    except LookupError:  # it is older than the trace
        return state


def _rule(active: ActiveRule) -> str:
    if not active.uses:
        return "\n".join([f"{active.name} never acted: {active.rule}", *active.near_misses()])
    held = f", {counted(len(active.waiting), 'request')} still held" if active.waiting else ""
    return f"{active.name} acted {times(active.uses)}{held}: {active.rule}"


def _append_rule(rule: AppendRule) -> str:
    return f"{rule} met {counted(rule.uses, 'append')}"


def _few(found: Sequence[str], tell: Callable[[str], str] = str) -> list[str]:
    """The texts of the first SHOWN of ``found``, and the number of the others."""
    told = [tell(each) for each in found[:SHOWN]]
    more = len(found) - SHOWN
    return told if more <= 0 else [*told, f"and {more} more"]
