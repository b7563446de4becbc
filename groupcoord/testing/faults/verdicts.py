"""What becomes of a request that a rule matches: the verbs of the grammar, in one table that code, files and docs read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults.apis import nearest
from groupcoord.testing.faults.damage import Damage
from groupcoord.testing.faults.problems import RuleProblems, is_number

Answer = Callable[[Any], Any]
Edit = Callable[[Any, Any], Any]


class Argument(NamedTuple):
    """The one argument of a verb. ``read`` raises ValueError; ``write`` makes data of a value, or is None for a function."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None
    text: str


class Verb(NamedTuple):
    """``on_answer``: the request is handled, and this happens to its answer. ``action`` is what an event says of it."""

    name: str
    argument: Argument | None
    text: str
    action: str
    on_answer: bool = False
    needs_answer: bool = False
    """Does it make no sense where the client waits for no answer?"""


def _code(value: Any) -> ErrorCode:
    if isinstance(value, str):
        if value not in ErrorCode.__members__:
            raise ValueError(f"there is no error {value!r}{nearest(value, ErrorCode.__members__)}")
        value = ErrorCode[value]
    if not is_number(value) or not -(1 << 15) <= value < 1 << 15:
        raise ValueError(f"{value!r} is not an error: give its name, an ErrorCode, or a number that an int16 can carry")
    if value == ErrorCode.NONE.value:
        raise ValueError("NONE is no error")
    return ErrorCode(value)


def _plain_code(code: ErrorCode) -> str | int:
    return code.name if code.name in ErrorCode.__members__ else int(code)


def _ms(value: Any) -> int:
    if not is_number(value) or value <= 0:
        raise ValueError(f"{value!r} is not a number of milliseconds above 0")
    return int(value)


def _damage(value: Any) -> Damage:
    try:
        return Damage(value)
    except ValueError:
        raise ValueError(f"{value!r} is no damage; there is {', '.join(Damage)}") from None


def _function(value: Any) -> Any:
    if callable(value):
        return value
    raise ValueError(f"{value!r} is not a function")


_CODE = Argument("code", _code, _plain_code, "the name of an error, or the number of one that Kafka does not have")
_MS = Argument("ms", _ms, int, "milliseconds on the broker's clock")
_HOW = Argument("how", _damage, str, "`flip`, `crc`, `length`, `truncated`, `garbage`, `correlation` or `cut`")
_ANSWER = Argument("fn", _function, None, "a function of the request that returns the response")
_EDIT = Argument("fn", _function, None, "a function of the request and its answer that returns the response")

VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            "refuse",
            _CODE,
            "answer with that error, in the API's own shape; the request is not handled",
            "is refused with {0}",
            needs_answer=True,
        ),
        Verb(
            "refuse_answer",
            _CODE,
            "handle the request, and answer with that error instead of what came of it",
            "is handled and told {0}",
            on_answer=True,
            needs_answer=True,
        ),
        Verb("delay", _MS, "handle the request so much later", "is handled {0} ms late"),
        Verb(
            "delay_answer",
            _MS,
            "handle the request, and answer so much later",
            "is handled and answered {0} ms late",
            on_answer=True,
            needs_answer=True,
        ),
        Verb("drop", None, "never handle the request nor answer it, as if it was lost", "is lost"),
        Verb(
            "drop_answer",
            None,
            "handle the request and never answer it, as if the answer was lost",
            "is handled and its answer lost",
            on_answer=True,
            needs_answer=True,
        ),
        Verb("disconnect", None, "close the connection; the request is not handled", "is hung up on"),
        Verb(
            "disconnect_answer",
            None,
            "handle the request, and close the connection instead of answering",
            "is handled and hung up on",
            on_answer=True,
            needs_answer=True,
        ),
        Verb("hold", None, "handle the request when the test says so", "is held"),
        Verb(
            "hold_answer",
            None,
            "handle the request, and answer when the test says so",
            "is handled and its answer held",
            on_answer=True,
            needs_answer=True,
        ),
        Verb(
            "answer",
            _ANSWER,
            "answer what the function says; the request is not handled",
            "is answered by the rule",
            needs_answer=True,
        ),
        Verb(
            "after",
            _EDIT,
            "handle the request, and answer what the function makes of its answer, whenever that comes",
            "is answered what the rule makes of its answer",
            on_answer=True,
            needs_answer=True,
        ),
        Verb(
            "corrupt",
            _HOW,
            "handle the request, and damage the bytes of its answer",
            "is answered with damaged bytes ({0})",
            on_answer=True,
            needs_answer=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verb with its argument. Raises RuleProblems for an argument that the verb cannot have."""

    name: str
    argument: Any = None

    def __post_init__(self) -> None:
        argument = self.verb.argument
        if argument is None:
            return
        try:
            value = argument.read(self.argument)
        except ValueError as problem:
            raise RuleProblems.one(argument.name, str(problem)) from problem
        object.__setattr__(self, "argument", value)

    def __repr__(self) -> str:
        if self.verb.argument is None:
            return f".{self.name}()"
        value = self.argument
        text = getattr(value, "__qualname__", repr(value)) if callable(value) else repr(self.plain_argument)
        return f".{self.name}({text})"

    @property
    def verb(self) -> Verb:
        """What is known of the verb."""
        return VERBS[self.name]

    @property
    def plain_argument(self) -> Any:
        """The argument as data. Raises ValueError for a function, and for a verb that has none."""
        argument = self.verb.argument
        if argument is None or argument.write is None:
            raise ValueError(f"{self} has no data to write: it takes a function, or nothing")
        return argument.write(self.argument)

    @property
    def action(self) -> str:
        """What it does, as said of a request."""
        return self.verb.action.format(getattr(self.argument, "name", self.argument))
