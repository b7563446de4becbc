"""What is going to happen if nothing else does: the pending deadlines of a node, in words."""

from collections.abc import Iterable
from dataclasses import dataclass

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.timers import Deadline

_WORDS = {
    "session": "the session of {subject} in group {scope} ends unless it is heard",
    "join": "group {scope} waits no longer for members to join",
    "sync": "group {scope} waits no longer for members to sync",
    "fetch": "a fetch on {scope} is answered with what there is",
    "retention": "{scope} is looked through for what has expired",
    "fault": "{scope} lets go what it delays: {subject}",
}
_HOUSEKEEPING = frozenset({"fetch", "retention"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeadline:
    """Something that will happen at ``at_ms`` (``in_seconds`` from now), and why.

    ``kind`` is ``session``, ``join``, ``sync`` …; ``group`` and ``member`` are what it is about, if it is about one.
    """

    at_ms: int
    in_seconds: float
    kind: str
    group: str
    member: str
    reason: str

    def __str__(self) -> str:
        return f"in {self.in_seconds:,.3f} s {self.reason}"


def pending(
    node: ClusterCore,
    now_ms: int,
    rules: Iterable[Deadline] = (),
    *,
    group: str | None = None,
    everything: bool = False,
) -> list[PendingDeadline]:
    """The deadlines of groups and ``rules``, earliest first; with ``everything`` also those of logs, fetches and the search
    for expired offsets."""
    found = [*(node.deadlines() if everything else node.coordinator.timers.pending()), *rules]
    found.sort(key=lambda each: each.at_ms)
    return [
        view
        for each in found
        if everything or each.key.kind not in _HOUSEKEEPING
        for view in (_view(each, now_ms),)
        if group is None or view.group == group
    ]


def sessions(node: ClusterCore, up_to_ms: int) -> Iterable[tuple[str, str]]:
    """(group, member) of each session that ends up to that time."""
    return [
        (each.key.scope, each.key.subject)
        for each in node.coordinator.timers.pending()
        if each.key.kind == "session" and each.at_ms <= up_to_ms
    ]


def _view(deadline: Deadline, now_ms: int) -> PendingDeadline:
    kind, scope, subject = deadline.key
    of_group = kind in ("session", "join", "sync")
    words = _WORDS.get(kind)
    reason = words.format(scope=scope, subject=subject) if words else " ".join(filter(None, (kind, scope, subject)))
    return PendingDeadline(
        at_ms=deadline.at_ms,
        in_seconds=(deadline.at_ms - now_ms) / 1000,
        kind=kind,
        group=scope if of_group else "",
        member=subject if of_group else "",
        reason=reason,
    )
