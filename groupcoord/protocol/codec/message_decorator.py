"""The decorator of every message class."""

from collections.abc import Iterator
from dataclasses import Field, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """Make ``cls`` a slotted, keyword-only dataclass of values: one version-free message.

    A field that some versions lack has the default Kafka gives it, so that code never asks for a version. The comment behind
    a field names the versions that carry it (``v5+``, ``v2–4``); no comment means all. Times are integers in milliseconds
    and end in ``_ms``; ``None`` for a ``uuid`` stands for Kafka's all-zero id.

    Messages are immutable to the type checker, but not at run time: a frozen dataclass takes three times as long to create, as
    a class and as an instance. For the same reason equality, hash and representation are written once, below, and are not
    generated for every class.
    """
    made: Any = dataclass(slots=True, kw_only=True, eq=False, repr=False)(cls)
    made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _represent
    return made  # type: ignore[no-any-return]


def _values(message: Any) -> tuple[object, ...]:
    return tuple([getattr(message, name) for name in message.__slots__])


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _represent(self: Any) -> str:
    """The message without the fields that have their default."""
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in _non_defaults(self))})"


def _non_defaults(message: Any) -> Iterator[tuple[str, object]]:
    own_fields: tuple[Field[Any], ...] = fields(message)
    for field in own_fields:
        value = getattr(message, field.name)
        if value != field.default:
            yield field.name, value
