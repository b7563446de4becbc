"""Story: a function in which actors send requests to a server, step by step; playing it yields a transcript."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from groupcoord.protocol.apis import Api
from tests.conformance import codec
from tests.conformance.kafka_format import Unreadable
from tests.conformance.normalise import Names, normalised
from tests.conformance.plain import text_of
from tests.conformance.settings import FAST, Settings
from tests.conformance.transcript import Step
from tests.conformance.wire import PATIENCE_MS, Hungup, Target, Wire

PAUSE_MS = 25
"""Between two looks at a server that is on its way."""


class StoryBroken(Exception):
    """The server did something after which the story cannot go on; the transcript says what."""


@dataclass(frozen=True)
class Tale:
    """A registered story: ``tell`` is its function, the rest is what its decorator says of it."""

    name: str
    topic: str
    text: str
    settings: Settings
    gotchas: tuple[int, ...]
    sections: tuple[str, ...]
    lasts_ms: int
    tell: Callable[["Story"], None]


TALES: dict[str, Tale] = {}


def story(
    *,
    gotchas: Iterable[int] = (),
    sections: Iterable[str] = (),
    settings: Settings = FAST,
    lasts_ms: int = 0,
) -> Callable[[Callable[["Story"], None]], Callable[["Story"], None]]:
    """Register a story. ``gotchas`` and ``sections`` are those of the reference that it shows; ``lasts_ms`` is how long it
    waits for timers, if that is more than a few seconds (such stories are told beside the others)."""

    def register(tell: Callable[["Story"], None]) -> Callable[["Story"], None]:
        name = tell.__name__
        if name in TALES or not tell.__doc__:
            raise ValueError(f"story {name} is told twice or says nothing of itself")
        topic = tell.__module__.rpartition(".")[2]
        text = " ".join(tell.__doc__.split())
        TALES[name] = Tale(name, topic, text, settings, tuple(gotchas), tuple(sections), lasts_ms, tell)
        return tell

    return register


@dataclass(eq=False)
class Line:
    """One connection of an actor; ``waiting`` is the request that it still owes an answer to."""

    wire: Wire
    correlation_id: int = 0
    waiting: "Pending | None" = None


@dataclass(eq=False)
class Pending:
    """A request that was sent and not answered yet."""

    line: Line
    api: Api
    version: int
    correlation_id: int
    step: int


@dataclass(eq=False)
class Story:
    """What the told function sees: actors to make, and a server to let them talk to."""

    name: str
    target: Target
    names: Names = field(default_factory=Names)
    steps: list[Step] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    lines: list[Line] = field(default_factory=list)
    versions: Mapping[int, int] = field(default_factory=dict)
    _ended_ms: int = 0

    def begin(self, actor: str, does: str) -> Step:
        """A new step, at least a millisecond after the last one: so each time in an answer belongs to one step."""
        while (now := self.target.now_ms()) <= self._ended_ms:
            self.target.wait(1)
        self.names.step_starts_ms.append(now)
        step: Step = {"actor": actor, "does": does}
        self.steps.append(step)
        return step

    def end(self) -> None:
        """The current step is over."""
        self._ended_ms = self.target.now_ms()

    def wait(self, duration_ms: int, why: str) -> None:
        """A step in which only time passes."""
        self.begin("time", f"passes, {duration_ms} ms: {why}")
        self.target.wait(duration_ms)
        self.end()

    def mark(self) -> int:
        """Now, as a point from which later waits count: what happens in between may take its time."""
        return self.target.now_ms()

    def wait_until(self, mark: int, after_ms: int, why: str) -> None:
        """A step in which time passes until ``after_ms`` after the mark."""
        self.begin("time", f"passes until {after_ms} ms after the mark: {why}")
        self.target.wait(max(0, mark + after_ms - self.target.now_ms()))
        self.end()

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Let time pass, quietly, until ``holds`` is true of the server. Raises StoryBroken, with ``what`` never was."""
        for _ in range(PATIENCE_MS // PAUSE_MS):
            if holds():
                return
            self.target.wait(PAUSE_MS)
        raise StoryBroken(f"it was never so that {what}")

    def group(self, suffix: str = "") -> str:
        """A group of this story; what it leaves in the offsets topic becomes part of the transcript."""
        group_id = f"{self.name}-{suffix}" if suffix else self.name
        self.groups.add(group_id)
        return group_id

    def topic_name(self, suffix: str = "orders") -> str:
        """A topic name of this story."""
        return f"{self.name}-{suffix}"

    def line(self) -> Line:
        """A new connection."""
        line = Line(self.target.connect())
        self.lines.append(line)
        return line

    def close(self) -> None:
        """Drop every connection of the story."""
        for line in self.lines:
            line.wire.close()

    def shown(self, value: Any, path: str) -> Any:
        """``value`` as it goes into the transcript."""
        return normalised(value, self.names, path)

    def spoken(self, api: Api, version: int) -> int:
        """``version``, or the newest one that the server speaks, if it is an older server."""
        return min(version, self.versions.get(api.key, version))

    def send(self, step: Step, line: Line, message: Any, version: int, client_id: str | None) -> Pending:
        """Send a request as part of ``step``."""
        api = codec.api_of(message)
        version = self.spoken(api, version)
        line.correlation_id += 1
        step["sends"] = {f"{api.name} v{version}": self.shown(codec.shown_request(message, version), f"{api.name}?")}
        pending = Pending(line, api, version, line.correlation_id, len(self.steps))
        try:
            line.wire.send(codec.request_frame(message, version, line.correlation_id, client_id))
        except Hungup:
            step["gets"] = "the connection was closed"
            raise StoryBroken("sent into a closed connection") from None
        line.waiting = pending
        return pending

    def receive(self, step: Step, pending: Pending, within_ms: int = PATIENCE_MS) -> codec.Answer | None:
        """What comes within ``within_ms``, written into ``step``; None for nothing. A hang-up is written down too."""
        try:
            frame = pending.line.wire.receive(within_ms)
        except Hungup:
            step["gets"] = "the connection was closed"
            pending.line.waiting = None
            return None
        if frame is None:
            step["gets"] = f"no answer within {within_ms} ms"
            return None
        pending.line.waiting = None
        try:
            answer = codec.read_answer(pending.api, pending.version, frame, pending.correlation_id)
        except Unreadable as problem:
            step["gets"] = f"an unreadable answer: {problem}: {text_of(frame)}"
            raise StoryBroken(str(problem)) from None
        step["gets"] = self.shown(answer.shown, pending.api.name)
        return answer
