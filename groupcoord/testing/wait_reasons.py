"""Explains in words what groups and transactions wait for: in the text of WaitTimeoutError, and in the report of a failed test.

Times are seconds since the start of the cluster, as in the trace.
"""

from collections.abc import Container, Iterator

from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.member import ConsumerMember, MemberState
from groupcoord.coordinator.events import ConsumerMemberJoined, MemberJoined, RequestRefused, StaticMemberReplaced
from groupcoord.core.events import Requested
from groupcoord.core.grouping import grouped
from groupcoord.core.timers import Deadline
from groupcoord.testing.clocks import ManualClock
from groupcoord.testing.engine import Engine
from groupcoord.testing.faults.layer import FaultInjected
from groupcoord.testing.topic_settings import unknown_topic
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import times

ADVANCE = "kafka.clock.advance(seconds)"
"""The call that advances a manual clock."""
MOST_MEMBERS = 3
"""How many members are named for which a group waits, and how many sessions, those that time out first."""


def wait_reasons(engine: Engine, *, group: str | None = None, transactional_id: str | None = None) -> list[str]:
    """What the group or transaction waits for, or all groups and transactions if neither is given; one line for each reason.

    First a controller that is down, and requests that rules of the test hold, delay or have changed; then the coordinator's
    pending timers, and what a group lacks, such as a member that was refused or a topic that does not exist. Empty if nothing
    will happen by itself. On a manual clock, the last line says how to advance it.
    """
    core = engine.core
    lines = list(_held(engine, group, transactional_id))
    names = ShortMemberNames(engine.trace.entries())
    lines += _disturbed(engine, group, transactional_id, names)
    if transactional_id is None:
        pending = _by_scope(core.coordinator.timers.pending(), _OF_GROUPS)
        # A group that no member could join is only in the trace.
        for name in sorted({*engine.group_names(), *engine.trace.groups()}) if group is None else [group]:
            lines += _of_group(engine, name, pending.get(name, []), names)
            lines += _refused(engine, name, names)
    if group is None:
        pending = _by_scope(core.transactions.timers.pending(), _TRANSACTION_TIMERS)
        for name in sorted(pending) if transactional_id is None else [transactional_id]:
            lines += _of_transaction(engine, name, pending.get(name, []))
    if lines and isinstance(engine.clock, ManualClock):
        lines.append(f"the clock is manual and shows {_seconds(engine, engine.clock())}: {ADVANCE}")
    return lines


def explained(seen: str, reasons: list[str]) -> str:
    """``seen``, followed by the ``reasons``, one in a line."""
    return "\n  ".join([seen, *reasons])


# Requests and appends that rules of the test hold or delay.


def _held(engine: Engine, group: str | None, transactional_id: str | None) -> Iterator[str]:
    controller = engine.core.controller_node
    if controller.is_away:
        yield f"the controller is {controller.state.value}: it fences and elects nobody, and lets nobody in"
    for rule in engine.faults.book.active:
        for held in rule.waiting:
            is_of_group = group is None or group in held.context.groups
            if is_of_group and (transactional_id is None or transactional_id in held.context.transactional_ids):
                what = f"{held.call.api.name} of {held.call.client_id or 'a client without id'}"
                yield f"{rule.name} holds {what}, until release()"
    core = engine.core
    for append in core.appends.held():
        unrelated = group if append.topic == TRANSACTION_STATE else transactional_id
        if unrelated is None:
            log, is_under_way = f"{append.topic}-{append.partition}", core.appends.is_under_way(append)
            yield f"an append to {log} is {'under way to a slow disk' if is_under_way else 'held, until release()'}"
    rules = {rule.name: rule.rule.matcher for rule in engine.faults.book.rules}
    for delay in engine.delays():
        about = rules[delay.key.scope]
        named = {about.group, about.transactional_id} - {None}
        if not named or group is transactional_id is None or named & {group, transactional_id}:
            yield f"{delay.key.scope} delays {delay.key.subject.split()[0]}, until {_seconds(engine, delay.at_ms)}"


def _disturbed(
    engine: Engine, group: str | None, transactional_id: str | None, names: ShortMemberNames
) -> Iterator[str]:
    """The last action of each rule that is not removed and neither holds nor delays."""
    rules = {each.name: each for each in engine.faults.book.active if each.uses and each.rule.action.name not in _KEEP}
    if not rules:
        return
    last: dict[str, FaultInjected] = {}
    for entry in engine.trace.entries(group=group, transaction=transactional_id):
        if isinstance(entry.event, FaultInjected):
            last[entry.event.name] = entry.event
    for name, event in last.items():
        if name in rules:
            what, at = names.shortened(f"{event.request} {event.action}"), _seconds(engine, event.at_ms)
            yield f"{name} acted {times(rules[name].uses)}, the last time at {at}: {what}"


_KEEP = {"hold", "hold_answer", "delay", "delay_answer"}


# Groups.


def _of_group(engine: Engine, name: str, pending: list[Deadline], names: ShortMemberNames) -> Iterator[str]:
    group = engine.core.coordinator.shard_of(name).machine.groups.get(name)
    if isinstance(group, ClassicGroup | ConsumerGroup):
        known = engine.partition_counts()
        for topic in sorted(_subscribed(group) - known.keys()):
            yield f"group {name} subscribes to {topic!r}: {unknown_topic(topic, known)}"
    if isinstance(group, ClassicGroup):
        words = {"join": _joining(group, names), "sync": _syncing(group, names)}
    elif isinstance(group, ConsumerGroup):
        words = {}
        for _, member in group.members.in_order():
            if news := _news(group, member):
                yield f"group {name} waits for {names.of(member.member_id)} {news}"
    else:
        return
    sessions: list[str] = []
    for deadline in pending:
        who, until = names.of(deadline.key.subject), _seconds(engine, deadline.at_ms)
        kind = deadline.key.kind
        if kind == "session":
            sessions.append(f"{who} at {until}")
        elif kind in words:
            yield f"group {name} waits for {words[kind]}, until {until}"
        else:
            yield f"group {name} waits for {who} {_OF_MEMBERS[kind]}, until {until}: then it is removed"
    if sessions:
        yield f"group {name}: sessions end unless members are heard: {_few(sessions, 'more later')}"


def _subscribed(group: ClassicGroup | ConsumerGroup) -> frozenset[str]:
    if isinstance(group, ClassicGroup):
        return group.subscribed_topics or frozenset()
    return frozenset().union(*(member.topics for _, member in group.members.in_order()))


def _refused(engine: Engine, name: str, names: ShortMemberNames) -> Iterator[str]:
    """The members whose last attempt to join was refused with an error that will not go away by itself."""
    last: dict[str | None, RequestRefused] = {}
    for entry in engine.trace.entries(group=name):
        match entry.event:
            case RequestRefused(cause=Requested(client_id=client), api=api, error=error) as event:
                if api in _JOINING and error in _AGAIN_AND_AGAIN:
                    last[client] = event
            case MemberJoined() | ConsumerMemberJoined() | StaticMemberReplaced() as joined:
                last.pop(joined.cause.client_id if isinstance(joined.cause, Requested) else None, None)
    for client, event in last.items():
        who, at = client or "a client without id", _seconds(engine, event.at_ms)
        yield f"group {name} did not take {who} at {at}: {names.shortened(event.text())}"


_JOINING = {"JoinGroup", "ConsumerGroupHeartbeat"}
_AGAIN_AND_AGAIN = {
    "FENCED_INSTANCE_ID",
    "GROUP_ID_NOT_FOUND",
    "GROUP_MAX_SIZE_REACHED",
    "INCONSISTENT_GROUP_PROTOCOL",
    "INVALID_REGULAR_EXPRESSION",
    "INVALID_REQUEST",
    "INVALID_SESSION_TIMEOUT",
    "UNRELEASED_INSTANCE_ID",
    "UNSUPPORTED_ASSIGNOR",
}
"""Errors of a join that a retry would get again."""

_OF_MEMBERS = {
    "rebalance": "to give back what it has to",
    "member-join": "to join again",
    "member-sync": "to sync",
}
_OF_GROUPS = {"session", "join", "sync", *_OF_MEMBERS}


def _joining(group: ClassicGroup, names: ShortMemberNames) -> str:
    """For which members a group in PreparingRebalance waits; it has at most one timer for that."""
    missing = [each.member_id for each in group.members.values() if each.parked_join is None]
    missing += group.pending_join_members
    if group.previous_state is GroupState.EMPTY:
        return "more members to join, as each new group does (group.initial.rebalance.delay.ms)"
    return f"member{'s' if len(missing) > 1 else ''} {_few(sorted(map(names.of, missing)), 'more')} to join"


def _syncing(group: ClassicGroup, names: ShortMemberNames) -> str:
    leader = group.leader_id
    if leader is not None and leader in group.pending_sync_members:
        return f"the assignment of its leader {names.of(leader)}: SyncGroup"
    return f"SyncGroup of {_few(sorted(map(names.of, group.pending_sync_members)), 'more')}"


def _news(group: ConsumerGroup, member: ConsumerMember) -> str:
    """What a member of a consumer group has yet to do without a deadline of its own; empty if there is nothing."""
    target = group.epochs.assignment
    if member.state is MemberState.STABLE and member.member_epoch < target:
        return f"to heartbeat: it is at epoch {member.member_epoch} and will hear of epoch {target}"
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return "to heartbeat when others have given back what it is to get"
    return ""


# Transactions.


def _of_transaction(engine: Engine, name: str, pending: list[Deadline]) -> Iterator[str]:
    for deadline in pending:
        words, until = _TRANSACTION_TIMERS[deadline.key.kind], _seconds(engine, deadline.at_ms)
        yield f"transaction {name} {words.format(partition=deadline.key.subject, until=until)}"


_TRANSACTION_TIMERS = {
    "transaction-timeout": "waits for its producer to end it, until {until}: then it is aborted",
    "transaction-marker": "waits for {partition} to take its marker, which is tried again at {until}",
    "transaction-completion": "waits to be stored as complete, which is tried again at {until}",
    "transactional-id-expiration": "has ended; its transactional id is forgotten at {until}",
}


# Words.


def _few(told: list[str], more: str) -> str:
    left = len(told) - MOST_MEMBERS
    return ", ".join([*told[:MOST_MEMBERS], *([f"{left} {more}"] if left > 0 else [])])


def _by_scope(deadlines: Iterator[Deadline], kinds: Container[str]) -> dict[str, list[Deadline]]:
    """The deadlines of ``kinds`` by scope. Other kinds are about partitions, and a group may have the name of a partition."""
    of_kinds = (each for each in deadlines if each.key.kind in kinds)
    in_order = sorted(of_kinds, key=lambda each: (each.at_ms, each.sequence))
    return grouped((each.key.scope, each) for each in in_order)


def _seconds(engine: Engine, at_ms: int) -> str:
    return f"{(at_ms - engine.started_ms) / 1000:,.1f} s"
