"""``@message``, the decorator of all message classes."""

from typing import TypeVar, dataclass_transform

from groupcoord.protocol.value_class import value_class

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """Make ``cls`` a slotted, keyword-only dataclass of values: one version-free message.

    A field that some versions lack has the default Kafka gives it, so that code never asks for a version. The comment behind
    a field names the versions that carry it (``v5+``, ``v2–4``); no comment means all. Times are integers in milliseconds
    and end in ``_ms``; ``None`` for a ``uuid`` stands for Kafka's all-zero id.

    Messages are immutable to the type checker, but not at run time: a frozen dataclass takes three times as long to create.
    """
    return value_class(cls, frozen=False)
