"""PlantedDefect: a deliberate bug, applied by patching functions of groupcoord, that an invariant must find."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from groupcoord.simulation.plan import DEFAULT_OPTIONS, PlanOptions


class Patch(NamedTuple):
    """Replaces the attribute ``name`` of ``owner`` by ``make(attribute)``."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


class PlantedDefect(NamedTuple):
    """A defect; ``text`` is its effect, and ``found_by`` the name of the invariant that finds it."""

    name: str
    text: str
    found_by: str
    patches: Sequence[Patch]
    options: PlanOptions = DEFAULT_OPTIONS
    """Options of plans that are likely to find it."""
    first_seed: int = 0
    """The first seed to try: one that finds the defect soon."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """A context manager: the code has the defect inside the block."""
        with ExitStack() as stack:
            for owner, name, make in self.patches:
                stack.enter_context(patch.object(owner, name, make(getattr(owner, name))))
            yield


def return_none(_: Any) -> Any:
    """A replacement that does nothing and returns None."""
    return lambda *_, **__: None
