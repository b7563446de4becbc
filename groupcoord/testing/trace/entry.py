"""One line of a trace: an event with its place among the others."""

from groupcoord.client.events import MemberEvent
from groupcoord.core.events import Event


class Entry:
    """``seq`` counts from 1. ``cause`` is the ``seq`` of the entry that made it happen, None if that is not in the trace.

    ``answers`` is, for the end of a request, the ``seq`` of the request; ``consequences`` are the entries of which this one is
    the ``cause``. ``since_start_ms`` counts from the start of the trace, ``at_ms`` is the time on the clock.
    """

    __slots__ = ("_consequences", "answers", "cause", "event", "seq", "since_start_ms")

    def __init__(
        self, seq: int, since_start_ms: int, event: Event, cause: int | None = None, answers: int | None = None
    ) -> None:
        self.seq = seq
        self.since_start_ms = since_start_ms
        self.event = event
        self.cause = cause
        self.answers = answers
        self._consequences: tuple[int, ...] = ()

    @property
    def at_ms(self) -> int:
        """When it happened (ms), on the clock of the server."""
        return self.event.at_ms

    @property
    def seconds(self) -> float:
        """When it happened, in seconds since the start of the trace."""
        return self.since_start_ms / 1000

    @property
    def consequences(self) -> tuple[int, ...]:
        """What it made happen: the ``seq`` of each."""
        return self._consequences

    def caused(self, seq: int) -> None:
        """``seq`` is a consequence of this entry."""
        self._consequences = (*self._consequences, seq)

    @property
    def group(self) -> str:
        """The group it is about, or ``""``."""
        return getattr(self.event, "group", "")

    def concerns(self, group: str) -> bool:
        """Is it about ``group``, or about several groups and this is one of them, or is it a timer of it?"""
        if self.group:
            return self.group == group
        details = getattr(self.event, "details", {})
        return (
            group in details.get("groups", ())
            or group in details.get("coordinator_keys", ())
            or getattr(self.event, "scope", None) == group
        )

    def text(self, *, links: bool = True) -> str:
        """``#12 @3000 orders PreparingRebalance → CompletingRebalance gen=1  ← #9``: number, milliseconds since the start, the
        group, what happened, and what made it happen. Without ``links`` there are no numbers in it."""
        text = self.event.text()
        if isinstance(self.event, MemberEvent):
            text = f"{self.event.member or 'newcomer'}: {text}"
        if self.group:
            text = f"{self.group} {text.removeprefix(f'{self.group} ')}"
        line = f"@{self.since_start_ms} {text}".replace("\r", "\\r").replace("\n", "\\n")
        if not links:
            return line
        causes = [f"← #{self.cause}"] if self.cause is not None else []
        if self.answers not in (None, self.cause):
            causes.append(f"answers #{self.answers}")
        return "  ".join([f"#{self.seq} {line}", *causes])

    def __repr__(self) -> str:
        return f"<Entry {self.text()}>"
