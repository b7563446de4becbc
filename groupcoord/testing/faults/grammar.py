"""``when(…)`` and the verbs behind it: how a program writes rules."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar, Unpack

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults.apis import ApiLike
from groupcoord.testing.faults.damage import Damage
from groupcoord.testing.faults.match import Conditions, Match
from groupcoord.testing.faults.rule import Rule
from groupcoord.testing.faults.verdicts import Answer, Edit, Verdict

R = TypeVar("R")
H = TypeVar("H")


class Verbs(ABC, Generic[R, H]):
    """The verbs that may follow ``when(…)``; each says what becomes of the requests that match.

    Those ending in ``_answer`` let the request be handled and act on its answer. All raise RuleProblems for an argument
    that cannot be meant.
    """

    @abstractmethod
    def _ruled(self, verdict: Verdict) -> R: ...

    @abstractmethod
    def _held(self, verdict: Verdict) -> H: ...

    def refuse(self, code: ErrorCode | int | str) -> R:
        """Answer with ``code``, in the API's own shape; the request is not handled."""
        return self._ruled(Verdict("refuse", code))

    def refuse_answer(self, code: ErrorCode | int | str) -> R:
        """Handle the request, and answer with ``code`` instead of what came of it."""
        return self._ruled(Verdict("refuse_answer", code))

    def delay(self, ms: int) -> R:
        """Handle the request ``ms`` milliseconds later on the clock of the broker."""
        return self._ruled(Verdict("delay", ms))

    def delay_answer(self, ms: int) -> R:
        """Handle the request, and hold its answer back for ``ms`` milliseconds on the clock of the broker."""
        return self._ruled(Verdict("delay_answer", ms))

    def drop(self) -> R:
        """Never handle the request. The client waits, and nothing behind it on its connection is handled either."""
        return self._ruled(Verdict("drop"))

    def drop_answer(self) -> R:
        """Handle the request and never answer it."""
        return self._ruled(Verdict("drop_answer"))

    def disconnect(self) -> R:
        """Close the connection; the request is not handled."""
        return self._ruled(Verdict("disconnect"))

    def disconnect_answer(self) -> R:
        """Handle the request, and close the connection instead of answering."""
        return self._ruled(Verdict("disconnect_answer"))

    def hold(self) -> H:
        """Handle the request when it is released."""
        return self._held(Verdict("hold"))

    def hold_answer(self) -> H:
        """Handle the request, and answer when that is released."""
        return self._held(Verdict("hold_answer"))

    def answer(self, fn: Answer) -> R:
        """Answer what ``fn(request)`` returns, a response in the newest shape; the request is not handled."""
        return self._ruled(Verdict("answer", fn))

    def after(self, fn: Edit) -> R:
        """Handle the request, and answer what ``fn(request, answer)`` returns when its answer comes."""
        return self._ruled(Verdict("after", fn))

    def corrupt(self, how: Damage | str = Damage.FLIP) -> R:
        """Handle the request, and damage the bytes of its answer: see Damage."""
        return self._ruled(Verdict("corrupt", how))


class When(Verbs[Rule, Rule]):
    """``when(…)`` before its verb."""

    def __init__(self, match: Match) -> None:
        self._match = match

    def _ruled(self, verdict: Verdict) -> Rule:
        return Rule(self._match, verdict)

    _held = _ruled


def when(api: ApiLike | None = None, **conditions: Unpack[Conditions]) -> When:
    """A rule in the making; takes what ``Match.of`` takes: ``when(Heartbeat, group="app").refuse("REBALANCE_IN_PROGRESS")``.

    Raises RuleProblems.
    """
    return When(Match.of(api, **conditions))
