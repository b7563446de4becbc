"""The entries of a trace that are about one transactional id."""

from collections.abc import Iterable, Sequence

from groupcoord.testing.trace.events import AdminActionRun, RequestReceived, TimerExpired, TraceEntry

_TRANSACTION_KEY = 1  # FindCoordinator's key_type of transactional ids


def of_transaction(entries: Sequence[TraceEntry], transactional_id: str) -> list[TraceEntry]:
    """Those that name it, what followed from its requests, and what an administrator did to it."""
    named = {entry.seq for entry in entries if transactional_id in _named_by(entry)}
    requests = {entry.seq for entry in entries if entry.seq in named and isinstance(entry.event, RequestReceived)}
    named |= {entry.seq for entry in entries if {entry.cause, entry.answers} & requests}
    return [
        entry
        for entry in entries
        if entry.seq in named or (isinstance(entry.event, AdminActionRun) and named.intersection(entry.consequences))
    ]


def _named_by(entry: TraceEntry) -> Iterable[object]:
    """The transactional ids that the event of ``entry`` names."""
    event = entry.event
    match event:
        case RequestReceived(details=details):
            keys = details.get("coordinator_keys") if details.get("key_type") == _TRANSACTION_KEY else None
            several = details.get("transactional_ids") or keys
            return several if isinstance(several, tuple) else (details.get("transactional_id"),)
        case TimerExpired(kind=kind, scope=scope):
            return (scope,) if kind.startswith("transaction") else ()
        case _:
            return (getattr(event, "transactional_id", None),)
