"""A node with faults: every request is shown to the rules, and what they say becomes of it or of its answer.

Pure, like the node inside of it: no sockets, no clock; time is what it is told.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from groupcoord.cluster.layer import Layer, ServedCluster, earlier
from groupcoord.core.effects import Call, CloseConnection, Effect, NoReply, Reply
from groupcoord.core.events import AdminAction, TimerFired
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import Deadline, TimerKey, Timers
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults.asked import NOTHING_KNOWN, Asked, TopicsKnown
from groupcoord.testing.faults.damage import damaged
from groupcoord.testing.faults.events import FaultInjected, FaultOver
from groupcoord.testing.faults.installed import Held, Installed
from groupcoord.testing.faults.refusal import refusal
from groupcoord.testing.faults.rulebook import Rulebook


class _Watched(NamedTuple):
    """A call on whose answer a rule will act."""

    asked: Asked
    installed: Installed


class FaultyNode(Layer):
    """``node`` with the rules of ``book``; ``broker`` is the id of its first broker, ``known`` what it knows of topics by ids.

    Whatever the node decides outside of ``handle`` and ``expire`` has to go through ``outgoing``, so that rules see answers
    to requests that were parked. ``execute_effects`` is where what is released from a hold goes: that of the server.
    """

    def __init__(
        self, node: ServedCluster, book: Rulebook, *, broker: int = 0, known: TopicsKnown = NOTHING_KNOWN
    ) -> None:
        super().__init__(node)
        self.book = book
        self.broker = broker
        self.execute_effects: Callable[[list[Effect]], None] | None = None
        self._known = known
        self._timers = Timers()
        self._watched: dict[tuple[int, int, int], _Watched] = {}

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """What follows from ``request``, by the first rule that matches it or by the node."""
        book = self.book
        if self._watched and (former := self._watched.pop(_place(call), None)) is not None:
            former.installed.lost(former.asked)  # the numbers begin anew: the server was restarted
        if not book.installed:
            return self._pass_on(call, request, now_ms)
        broker = self.broker + call.broker
        asked = Asked(call, request, now_ms, broker=broker, known=self._known, start_ms=book.start_ms)
        installed = book.take(asked)
        if installed is None:
            return self._pass_on(call, request, now_ms)
        verdict = installed.rule.verdict
        if verdict.verb.on_answer:
            self._watched[_place(call)] = _Watched(asked, installed)
            return self._pass_on(call, request, now_ms)
        ctx = HandlerContext(now_ms, call)
        self._tell(ctx, installed, asked)
        self._act(verdict.name, ctx, installed, asked, None)
        return ctx.effects

    def expire(self, now_ms: int) -> list[Effect]:
        """What is delayed until now goes on, and the node's timers fire: what is due before the first of those comes first."""
        theirs = self.inner.next_deadline()
        effects = self._fire(now_ms if theirs is None else min(theirs, now_ms), now_ms)
        effects += self.outgoing(self.inner.expire(now_ms), now_ms)
        return effects + self._fire(now_ms, now_ms)

    def next_deadline(self) -> int | None:
        """When the next timer is due (ms), the node's or that of a delay."""
        return earlier(self.inner.next_deadline(), self._timers.next_deadline())

    def deadline_lower_bound(self) -> int | None:
        """No timer is due before that moment (ms)."""
        return earlier(self.inner.deadline_lower_bound(), self._timers.deadline_lower_bound())

    # What a test asks of it.

    def deadlines(self) -> list[Deadline]:
        """The delays that are pending, earliest first; the node's own deadlines are not among them."""
        return list(self._timers.pending())

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """``effects`` of the node, after the rules have acted on the answers among them."""
        if not self._watched:
            return effects
        outgoing: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Reply | NoReply | CloseConnection):
                watched = self._watched.pop(_place(effect.call), None)
                if watched is not None:
                    outgoing += self._answered(watched, effect, now_ms)
                    continue
            outgoing.append(effect)
        return outgoing

    def let_go(self, held: Held, now_ms: int) -> list[Effect]:
        """What follows from ``held`` going on now. Raises ValueError if it went on before."""
        waiting = held.installed.waiting
        if held not in waiting:
            raise ValueError(f"{held} was released before")
        held.installed.waiting = tuple(other for other in waiting if other is not held)
        ctx = HandlerContext(now_ms, AdminAction(f"{held.installed.name} releases {held.call.api.name}"))
        self._go_on(ctx, held.installed, held.asked, held.answer)
        return ctx.effects

    # The inside.

    def _pass_on(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        return self.outgoing(self.inner.handle(call, request, now_ms), now_ms)

    def _fire(self, until_ms: int, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        while (deadline := self._timers.pop_due(until_ms)) is not None:
            ctx = HandlerContext(now_ms, TimerFired(*deadline.key, deadline.at_ms))
            deadline.fire(ctx)
            effects += ctx.effects
        return effects

    def _tell(self, ctx: HandlerContext, installed: Installed, asked: Asked) -> None:
        installed.acted(asked)
        ctx.emit(FaultInjected, action=installed.rule.verdict.action, **_about(installed, asked))

    def _go_on(self, ctx: HandlerContext, installed: Installed, asked: Asked, answer: Reply | None) -> None:
        """What was kept goes its way: the answer, if there is one, or else the request."""
        ctx.emit(FaultOver, held_ms=ctx.now_ms - asked.kept_since_ms, **_about(installed, asked))
        if answer is None:
            ctx.effects += self._pass_on(asked.call, asked.request, ctx.now_ms)
        else:
            ctx.effects.append(answer._replace(origin=ctx.origin))

    def _act(self, verb: str, ctx: HandlerContext, installed: Installed, asked: Asked, answer: Reply | None) -> None:
        """Do what the rule says, to the request, or with ``answer`` to that."""
        argument, call = installed.rule.verdict.argument, asked.call
        match verb:
            case "refuse":
                refused = refusal(call, asked.request, argument)
                if refused is None:
                    raise AssertionError("a rule refuses only what has a place for an error")
                ctx.effects.append(refused._replace(origin=ctx.origin))
            case "delay":
                asked.kept_since_ms = ctx.now_ms
                key = TimerKey("fault", installed.name, f"{call.api.name} {call.connection_id}:{call.correlation_id}")
                self._timers.schedule(
                    key, ctx.now_ms + argument, lambda due: self._go_on(due, installed, asked, answer)
                )
            case "hold":
                asked.kept_since_ms = ctx.now_ms
                installed.hold(Held(asked, installed, self, answer))
            case "disconnect":
                ctx.close_connection(call, f"{installed.name} says so")
            case "answer":
                self._call(ctx, installed, asked, call, (asked.request,))
            case _:  # it is dropped
                if not asked.wants_answer:
                    ctx.no_reply(call)  # the client does not wait, so its connection must not either

    def _call(
        self, ctx: HandlerContext, installed: Installed, asked: Asked, call: Call, arguments: Iterable[Any]
    ) -> None:
        """Answer what the rule's function says. If it fails, that is told at the end, and to the client."""
        api = call.api
        try:
            response = installed.rule.verdict.argument(*arguments)
            if not isinstance(response, api.response):
                raise TypeError(f"{api.response.__name__} is what answers {api.name}, not {response!r}")
        except Exception as error:  # whatever a test's function may raise
            self.book.function_failed(installed, error)
            response = api.error_response(asked.request, call.version, ErrorCode.UNKNOWN_SERVER_ERROR)
            if response is None:
                ctx.close_connection(asked.call, f"a function of {installed.name} failed")
                return
        ctx.reply(call, response)

    def _answered(self, watched: _Watched, effect: Reply | NoReply | CloseConnection, now_ms: int) -> list[Effect]:
        """The answer is there that a rule acts on."""
        asked, installed = watched
        if not isinstance(effect, Reply) or installed.is_removed:
            installed.lost(asked)
            return [effect]
        ctx = HandlerContext(now_ms, asked.call)
        verdict = installed.rule.verdict
        if verdict.name == "corrupt":
            broken = damaged(verdict.argument, asked.call, effect)
            if broken is None:
                installed.gave_back(asked, "its answer has no records")
                return [effect]
            self._tell(ctx, installed, asked)
            ctx.effects.append(broken._replace(origin=effect.origin))
            return ctx.effects
        self._tell(ctx, installed, asked)
        if verdict.name == "after":
            self._call(ctx, installed, asked, effect.call, (asked.request, effect.response))
        else:
            self._act(verdict.name.removesuffix("_answer"), ctx, installed, asked, effect)
        return ctx.effects


def _place(call: Call) -> tuple[int, int, int]:
    """What tells a call from all others; not its version, for an ApiVersions may be answered in another one."""
    return call.broker, call.connection_id, call.correlation_id


def _about(installed: Installed, asked: Asked) -> dict[str, Any]:
    return {
        "name": installed.name,
        "rule": str(installed.rule),
        "api": asked.call.api.name,
        "client_id": asked.call.client_id,
        "group": asked.groups[0] if asked.groups else None,
        "member": next(filter(None, asked.members), ""),
    }
