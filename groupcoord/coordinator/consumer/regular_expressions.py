"""Validates and resolves the RE2 regular expressions of subscriptions. Sources: ``Utils.throwIfRegularExpressionIsInvalid``,
``TopicRegexResolver``; KIP-848.

Kafka uses re2j, a port of RE2 to Java, whose error messages differ from those of RE2.
Deviation (scope-of-a-stand-in): see cluster/api_versions.py.
"""

from collections.abc import Iterable

from groupcoord.coordinator.consumer import records
from groupcoord.coordinator.consumer.consumer_group_sessions import ConsumerGroupSessions
from groupcoord.coordinator.consumer.member_aggregates import ResolvedRegex
from groupcoord.coordinator.events import GroupEpochBumped, RegexResolved
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.java_hash_order import hash_map_order, string_hash
from groupcoord.core.re2_expressions import compiled
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.errors import ErrorCode

MIN_INTERVAL_MS = 10_000
"""The shortest interval between two resolutions of a group's expressions (``REGEX_BATCH_REFRESH_MIN_INTERVAL_MS``)."""

_DESCRIPTIONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
}
"""RE2's description of each error, and re2j's."""


def require_valid(regex: str) -> None:
    """Raises ApiError (INVALID_REGULAR_EXPRESSION) unless ``regex`` can be compiled."""
    problem = compiled(regex)
    if isinstance(problem, str):
        kind, _, subject = problem.partition(": ")
        description = _DESCRIPTIONS.get(kind, kind)
        if kind == "invalid perl operator" and subject.startswith("(?<"):
            description = "invalid named capture"
        why = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {description}."
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, why)


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """The ``names`` that ``regex`` matches as a whole; none if it cannot be compiled."""
    expression = compiled(regex)
    return frozenset() if isinstance(expression, str) else frozenset(filter(expression.fullmatch, names))


def schedule(
    ctx: HandlerContext, group: ConsumerGroupSessions, old: str | None, new: str | None, *, is_new: bool
) -> None:
    """Schedule the resolution of the expressions of ``group``, if it is due, after the response to a member's request.

    ``old`` and ``new`` are the expressions of the member, ``is_new``: no other member has ``new``. Kafka resolves in another
    thread; here a timer fires at once.
    """
    context = group.context
    key = TimerKey("regex", group.group_id)
    resolved = [value for _, value in group.regexes.in_order()]
    last = resolved[0] if resolved else None
    if key in context.timers or (last is not None and ctx.now_ms <= last.at_ms + MIN_INTERVAL_MS):
        return
    counts = dict(group.counts.regexes)
    for regex, change in ((old, -1), (new, 1)):
        if regex:
            counts[regex] = counts.get(regex, 0) + change
    regexes = [regex for regex, count in counts.items() if count]
    due = (
        is_new
        or len(regexes) != len(resolved)
        or (0 if last is None else last.version) < context.topics.view.version_of_newest
        or (last is None or ctx.now_ms > last.at_ms + context.config.group_consumer_regex_refresh_interval_ms)
    )
    if due and regexes:
        context.timers.schedule(key, ctx.now_ms, lambda later: _resolve(later, group, regexes))


def _resolve(ctx: HandlerContext, asked: ConsumerGroupSessions, regexes: list[str]) -> CoordinatorResult:
    group = asked.context.groups.get(asked.group_id)
    if not isinstance(group, ConsumerGroupSessions):
        return EMPTY_RESULT
    topics = group.context.topics
    names = list(topics.view.names())
    counts, bumps = group.counts.copy(), False
    found: dict[str, ResolvedRegex] = {}
    for regex in hash_map_order(regexes, string_hash, 1 << (len(regexes) - 1).bit_length()):
        if regex in counts.regexes:
            before = group.regexes.get(regex)
            found[regex] = after = ResolvedRegex(matching(regex, names), topics.view.version, ctx.now_ms)
            if (frozenset() if before is None else before.topics) != after.topics:
                bumps = True
                if before is not None:
                    counts.add_matches(before, -1)
                counts.add_matches(after)
    written = [records.regex(group.group_id, regex, resolved) for regex, resolved in found.items()]
    metadata_hash = topics.group_hash(counts.topics())
    epoch = group.epochs.group + 1
    if bumps or metadata_hash != group.epochs.metadata_hash:
        written.append(records.group_epoch(group.group_id, epoch, metadata_hash))
        group.refreshed(ctx.now_ms, epoch, metadata_hash)
        bumps = True

    def stored(later: HandlerContext) -> None:
        for regex, resolved in found.items():
            matched = tuple(sorted(resolved.topics))
            later.emit(RegexResolved, group=group.group_id, regex=regex, topics=matched)
        if bumps:
            reason = "regular expressions match other topics than before"
            later.emit(GroupEpochBumped, group=group.group_id, epoch=epoch, reason=reason)

    return CoordinatorResult(records=written, stored=stored)
