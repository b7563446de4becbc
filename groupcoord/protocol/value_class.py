"""``value_class``, which makes dataclasses of messages and events with fast imports."""

from collections.abc import Callable, Iterator
from dataclasses import Field, FrozenInstanceError, dataclass, fields, make_dataclass
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


def value_class(cls: type[T], *, frozen: bool) -> type[T]:
    """Make ``cls`` a slotted, keyword-only dataclass, without ``__post_init__``; instances of a frozen one are immutable.

    A server imports hundreds of these classes, and generating the methods of a frozen dataclass takes 0.4 ms for each. So the
    shared methods are written once, below, and ``__init__`` is generated when the first instance is created.
    """
    made: Any = dataclass(init=False, repr=False, eq=False, match_args=False, slots=True, kw_only=True)(cls)
    made.__init__ = _generated_when_called(made, frozen)
    made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _represent
    if frozen:
        made.__setattr__ = made.__delattr__ = _refuse_change
        made.__setstate__ = _set_state
    return made  # type: ignore[no-any-return]


def _generated_when_called(cls: Any, frozen: bool) -> Callable[..., None]:
    def generate_and_call(self: Any, *arguments: Any, **values: Any) -> None:
        own_fields = [(each.name, each.type, each) for each in fields(cls)]
        complete: Any = make_dataclass(cls.__name__, own_fields, kw_only=True, frozen=frozen, repr=False, eq=False)
        cls.__init__ = complete.__init__
        cls.__init__(self, *arguments, **values)

    return generate_and_call


def _refuse_change(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _set_state(self: object, state: tuple[None, dict[str, object]]) -> None:
    """Sets the state of copies and unpickled instances."""
    for name, held in state[1].items():
        object.__setattr__(self, name, held)


def _values(value: Any) -> tuple[object, ...]:
    return tuple([getattr(value, name) for name in value.__dataclass_fields__])


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _represent(self: Any) -> str:
    """The value without fields that have their default."""
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in _non_defaults(self))})"


def _non_defaults(value: Any) -> Iterator[tuple[str, object]]:
    own_fields: tuple[Field[Any], ...] = fields(value)
    for each in own_fields:
        held = getattr(value, each.name)
        if held != each.default:
            yield each.name, held
