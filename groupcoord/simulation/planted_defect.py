"""What a planted defect is: it replaces functions of the product while it is applied."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from groupcoord.simulation.plan import DEFAULT_OPTIONS, PlanOptions


class Patch(NamedTuple):
    """Attribute ``name`` of ``owner`` is replaced by ``make(attribute)``."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


class PlantedDefect(NamedTuple):
    """``text`` says what it does; ``found_by`` is the name of the invariant that finds it."""

    name: str
    text: str
    found_by: str
    patches: Sequence[Patch]
    options: PlanOptions = DEFAULT_OPTIONS
    """Options for plans that make it likely to be found."""
    first_seed: int = 0
    """Where to begin with one that is seldom found."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The code has the defect until the end of the block."""
        with ExitStack() as stack:
            for owner, name, make in self.patches:
                stack.enter_context(patch.object(owner, name, make(getattr(owner, name))))
            yield


def return_none(_: Any) -> Any:
    """Nothing is done."""
    return lambda *_, **__: None
