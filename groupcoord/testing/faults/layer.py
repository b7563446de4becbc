"""FaultLayer, which applies fault rules: it matches every request, acts on the request or its response, and emits an event.

Pure, like the cluster that it wraps: no sockets, no clock.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from groupcoord.cluster.broker_status import BrokerState
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.layer import Layer, ServedCluster, earlier
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, CloseConnection, Effect, NoReply, Reply
from groupcoord.core.events import AdminAction, Event, TimerFired, event_class
from groupcoord.core.timers import Deadline, TimerKey, Timers
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults.actions import ANSWERED, damage_reply, error_reply, hide_topic, shrink_isr
from groupcoord.testing.faults.matching import NO_TOPICS_KNOWN, RequestContext, TopicResolver
from groupcoord.testing.faults.rulebook import ActiveRule, HeldRequest, Rulebook


@event_class
class FaultEvent(Event):
    """The rule with this ``name`` acted on a request of ``api``.

    ``group`` and ``member`` are the first that the request names, or None and ``""``.
    """

    name: str
    rule: str
    api: str
    client_id: str | None
    group: str | None
    member: str

    @property
    def request(self) -> str:
        """The request in words."""
        return f"{self.api} of {self.member or self.client_id or 'a client without id'}"


@event_class
class FaultInjected(FaultEvent):
    """The rule acted; ``action`` says how."""

    action: str

    def text(self) -> str:
        """As in Event."""
        return f"fault by {self.name}: {self.request} {self.action}"


@event_class
class FaultEnded(FaultEvent):
    """A request or response that was delayed or held for ``held_ms`` goes on."""

    held_ms: int

    def text(self) -> str:
        """As in Event."""
        return f"fault by {self.name} is over: {self.request} goes on after {self.held_ms} ms"


class _AwaitedAnswer(NamedTuple):
    """A request to whose response a rule will be applied."""

    context: RequestContext
    rule: ActiveRule


class FaultLayer(Layer):
    """Applies the rules of ``book``. ``broker`` is the id of the first broker; ``topics`` resolves topic ids.

    ``execute_effects`` must be set to that of the server if rules hold requests: it is called with the effects of a release.
    """

    def __init__(
        self, inner: ServedCluster, book: Rulebook, *, broker: int = 0, topics: TopicResolver = NO_TOPICS_KNOWN
    ) -> None:
        super().__init__(inner)
        self.book = book
        self.broker = broker
        self.execute_effects: Callable[[list[Effect]], None] | None = None
        self.core: ClusterCore | None = None
        """The cluster to whose brokers rules can be applied."""
        self.broker_stopped: Callable[[int], None] = lambda _number: None
        """Called with the number of a broker, counted from 0, that a rule has stopped: its ports and connections are to be
        closed after pending responses."""
        self._topics = topics
        self._timers = Timers()
        self._awaited: dict[tuple[int, int, int], _AwaitedAnswer] = {}

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """Handle ``request`` with the first rule that matches it, or pass it to the inner layer."""
        book = self.book
        if self._awaited and (former := self._awaited.pop(_key(call), None)) is not None:
            former.rule.cancel(former.context)  # after a restart of the server, connection numbers are used again
        if not book.active:
            return self._pass_on(call, request, now_ms)
        context = self._context(call, request, now_ms)
        rule = book.match(context)
        if rule is None:
            return self._pass_on(call, request, now_ms)
        action = rule.rule.action
        if action.on_answer:
            self._awaited[_key(call)] = _AwaitedAnswer(context, rule)
            return self._pass_on(call, request, now_ms)
        ctx = HandlerContext(now_ms, call)
        if action.type.on_broker:
            self._change_broker(ctx, rule, context)
            return ctx.effects + self._pass_on(call, request, now_ms)
        self._record_use(ctx, rule, context)
        self._act(action.name, ctx, rule, context, None)
        return ctx.effects

    def would_act(self, call: Call, request: Any, now_ms: int) -> bool:
        """Would a rule act on ``request`` if it came now? The request is not counted."""
        return self.book.would_match(self._context(call, request, now_ms))

    def _context(self, call: Call, request: Any, now_ms: int) -> RequestContext:
        broker = self.broker + call.broker
        return RequestContext(call, request, now_ms, broker=broker, topics=self._topics, start_ms=self.book.start_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire the timers of delays and of the inner layer; delays that are due before the first inner timer fire before it."""
        inner_ms = self.inner.next_deadline()
        effects = self._fire(now_ms if inner_ms is None else min(inner_ms, now_ms), now_ms)
        effects += self.outgoing(self.inner.expire(now_ms), now_ms)
        return effects + self._fire(now_ms, now_ms)

    def next_deadline(self) -> int | None:
        """The time of the next timer (ms), of a delay or of the inner layer."""
        return earlier(self.inner.next_deadline(), self._timers.next_deadline())

    def deadline_lower_bound(self) -> int | None:
        """Lower bound of ``next_deadline``."""
        return earlier(self.inner.deadline_lower_bound(), self._timers.deadline_lower_bound())

    def deadlines(self) -> list[Deadline]:
        """The pending delays, earliest first, without the deadlines of the inner layer."""
        return list(self._timers.pending())

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """``effects`` of the inner layer, with rules applied to the responses among them."""
        if not self._awaited:
            return effects
        outgoing: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Reply | NoReply | CloseConnection):
                awaited = self._awaited.pop(_key(effect.call), None)
                if awaited is not None:
                    outgoing += self._answered(awaited, effect, now_ms)
                    continue
            outgoing.append(effect)
        return outgoing

    def _pass_on(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        return self.outgoing(self.inner.handle(call, request, now_ms), now_ms)

    def _fire(self, until_ms: int, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        while (deadline := self._timers.pop_due(until_ms)) is not None:
            ctx = HandlerContext(now_ms, TimerFired(*deadline.key, deadline.at_ms))
            deadline.fire(ctx)
            effects += ctx.effects
        return effects

    def _record_use(self, ctx: HandlerContext, rule: ActiveRule, context: RequestContext) -> None:
        rule.record_use(context)
        ctx.emit(FaultInjected, action=rule.rule.action.event_text, **_event_fields(rule, context))

    def _resume(self, ctx: HandlerContext, rule: ActiveRule, context: RequestContext, answer: Reply | None) -> None:
        """Send the response that was delayed or held if there is one; otherwise handle the request."""
        ctx.emit(FaultEnded, held_ms=ctx.now_ms - context.held_since_ms, **_event_fields(rule, context))
        if answer is None:
            ctx.effects += self._pass_on(context.call, context.request, ctx.now_ms)
        else:
            ctx.effects.append(answer._replace(origin=ctx.origin))

    def _act(
        self, action: str, ctx: HandlerContext, rule: ActiveRule, context: RequestContext, answer: Reply | None
    ) -> None:
        """Apply the rule's action to the request, or to ``answer`` if it is given."""
        argument, call = rule.rule.action.argument, context.call
        match action:
            case "refuse":
                refused = error_reply(call, context.request, argument)
                if refused is None:
                    raise AssertionError("a rule refuses only what has a place for an error")
                ctx.effects.append(refused._replace(origin=ctx.origin))
            case "delay":
                context.held_since_ms = ctx.now_ms
                key = TimerKey("fault", rule.name, f"{call.api.name} {call.connection_id}:{call.correlation_id}")
                self._timers.schedule(key, ctx.now_ms + argument, lambda due: self._resume(due, rule, context, answer))
            case "hold":
                context.held_since_ms = ctx.now_ms
                rule.hold(HeldRequest(context, rule, lambda now_ms: self._release(rule, context, answer, now_ms)))
            case "disconnect":
                ctx.close_connection(call, f"{rule.name} says so")
            case "answer":
                self._call_function(ctx, rule, context, call, (context.request,))
            case _:  # drop
                if not context.expects_answer:
                    ctx.no_reply(call)  # the client expects no response, so its connection must not wait for one

    def _change_broker(self, ctx: HandlerContext, rule: ActiveRule, context: RequestContext) -> bool:
        """Apply the rule's action to a broker. Returns whether that was possible."""
        core, action = self.core, rule.rule.action
        if core is None:
            raise AssertionError("a rule about brokers is added where they are known")
        broker_id = context.broker if action.broker_id is None else action.broker_id
        act = BROKER_CHANGES[action.name]
        try:
            effects = core.change_broker(
                f"{rule.name}: {action.name}, broker {broker_id}",
                lambda controller, turn: act(controller, turn, broker_id, action.argument),
                ctx.now_ms,
            )
        except ValueError as problem:
            rule.unmatch(context, str(problem))
            return False
        self._record_use(ctx, rule, context)
        ctx.effects += self.outgoing(effects, ctx.now_ms)
        if core.controller.state_of(broker_id) is BrokerState.STOPPED:
            self.broker_stopped(core.broker.cluster.ids.index(broker_id))
        return True

    def _answered_and_changed(
        self, ctx: HandlerContext, awaited: _AwaitedAnswer, effect: Reply | NoReply
    ) -> list[Effect]:
        """Apply the rule's action to a broker before or after it responds. A broker that is stopped before does not respond."""
        context, rule = awaited
        if not self._change_broker(ctx, rule, context) or rule.rule.action.moment == ANSWERED:
            return [effect, *ctx.effects]
        assert self.core is not None
        return ctx.effects + self.core.controller.withhold([effect])

    def _release(self, rule: ActiveRule, context: RequestContext, answer: Reply | None, now_ms: int) -> None:
        if self.execute_effects is None:
            raise RuntimeError("the FaultLayer that holds it has no execute_effects: set it to that of the server")
        ctx = HandlerContext(now_ms, AdminAction(f"{rule.name} releases {context.call.api.name}"))
        self._resume(ctx, rule, context, answer)
        self.execute_effects(ctx.effects)

    def _call_function(
        self, ctx: HandlerContext, rule: ActiveRule, context: RequestContext, call: Call, arguments: Iterable[Any]
    ) -> None:
        """Respond with the result of the rule's function. If it raises, the client gets an error and the test fails."""
        api = call.api
        try:
            response = rule.rule.action.argument(*arguments)
            if not isinstance(response, api.response):
                raise TypeError(f"{api.response.__name__} is what answers {api.name}, not {response!r}")
        except Exception as error:  # a function of a test may raise anything
            self.book.record_failure(rule, error)
            response = api.error_response(context.request, call.version, ErrorCode.UNKNOWN_SERVER_ERROR)
            if response is None:
                ctx.close_connection(context.call, f"a function of {rule.name} failed")
                return
        ctx.reply(call, response)

    def _answered(
        self, awaited: _AwaitedAnswer, effect: Reply | NoReply | CloseConnection, now_ms: int
    ) -> list[Effect]:
        """Apply the rule to the response that it has waited for."""
        context, rule = awaited
        action = rule.rule.action
        ctx = HandlerContext(now_ms, context.call)
        if action.type.on_broker and not isinstance(effect, CloseConnection) and not rule.is_removed:
            return self._answered_and_changed(ctx, awaited, effect)
        if not isinstance(effect, Reply) or rule.is_removed:
            rule.cancel(context)
            return [effect]
        if action.name == "corrupt":
            damaged = damage_reply(action.argument, context.call, effect)
            if damaged is None:
                rule.unmatch(context, "its answer has no records")
                return [effect]
            self._record_use(ctx, rule, context)
            ctx.effects.append(damaged._replace(origin=effect.origin))
            return ctx.effects
        self._record_use(ctx, rule, context)
        topic = rule.rule.matcher.topic
        if action.name == "hide_topic":
            assert topic is not None  # such a rule has one
            ctx.effects.append(effect._replace(response=hide_topic(context.request, effect.response, topic)))
        elif action.name == "shrink_isr":
            ctx.effects.append(effect._replace(response=shrink_isr(effect.response, topic, action.argument)))
        elif action.name == "after":
            self._call_function(ctx, rule, context, effect.call, (context.request, effect.response))
        else:
            self._act(action.name.removesuffix("_answer"), ctx, rule, context, effect)
        return ctx.effects


BrokerChange = Callable[[ClusterController, HandlerContext, int, Any], None]
BROKER_CHANGES: Mapping[str, BrokerChange] = {
    "kill_broker": lambda controller, ctx, broker_id, _: controller.kill(ctx, broker_id),
    "stop_broker": lambda controller, ctx, broker_id, _: controller.stop(ctx, broker_id),
    "pause_broker": lambda controller, ctx, broker_id, _: controller.pause(ctx, broker_id),
    "cut_off_broker": lambda controller, ctx, broker_id, peer: controller.cut_off(ctx, broker_id, peer),
}
"""Name of an action on a broker → the function of the controller that does it."""


def _key(call: Call) -> tuple[int, int, int]:
    """Identifies a call, without its version, because ApiVersions may be answered in another version."""
    return call.broker, call.connection_id, call.correlation_id


def _event_fields(rule: ActiveRule, context: RequestContext) -> dict[str, Any]:
    return {
        "name": rule.name,
        "rule": str(rule.rule),
        "api": context.call.api.name,
        "client_id": context.call.client_id,
        "group": context.groups[0] if context.groups else None,
        "member": next(filter(None, context.members), ""),
    }
