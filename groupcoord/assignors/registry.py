"""The registry of assignors by name: built-in ones, those that a program registers, and those of installed packages."""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from groupcoord.assignors.interface import (
    Assignment,
    Assignor,
    AssignorError,
    FunctionAssignor,
    GroupSubscription,
    RebalanceProtocol,
)
from groupcoord.assignors.range_assignor import RangeAssignor
from groupcoord.assignors.round_robin_assignor import RoundRobinAssignor
from groupcoord.assignors.sticky.sticky_assignors import CooperativeStickyAssignor, StickyAssignor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "groupcoord.assignors"
"""The entry point group of packages with assignors: ``name = "module:object"``."""


class UnknownAssignorError(AssignorError):
    """There is no assignor of that name; the text lists the known ones."""


def _installed() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - costly, and few ask

    return entry_points(group=GROUP)


class Registry:
    """The known names, each with a factory for a member's assignor. ``installed`` lists entry points."""

    def __init__(self, installed: "Callable[[], Iterable[EntryPoint]]" = _installed) -> None:
        self._factories: dict[str, Callable[[], Assignor]] = {
            RangeAssignor.name: RangeAssignor,
            RoundRobinAssignor.name: RoundRobinAssignor,
            StickyAssignor.name: StickyAssignor,
            CooperativeStickyAssignor.name: CooperativeStickyAssignor,
            "rendezvous": _rendezvous,
            "weighted": _weighted,
        }
        self._installed = installed

    def register(
        self,
        name: str,
        what: type[Assignor] | Callable[[GroupSubscription], Assignment],
        *,
        protocols: Collection[RebalanceProtocol] = (RebalanceProtocol.EAGER,),
    ) -> None:
        """Register ``name`` for a class, of which every member gets its own instance, or for a function from group to
        assignment that supports ``protocols``.

        Raises ValueError if the name is taken or differs from the name of the class, TypeError if ``what`` is not an assignor.
        """
        if not name or name in self._factories:
            raise ValueError(
                f"an assignor cannot be called {name!r}: " + ("the name is taken" if name else "it is empty")
            )
        self._factories[name] = _factory(name, what, protocols)

    def create(self, name: str) -> Assignor:
        """A new assignor called ``name``, for one member. Raises UnknownAssignorError, and the errors of importing its
        package."""
        if name not in self._factories:
            found = next((point for point in self._installed() if point.name == name), None)
            if found is None:
                raise UnknownAssignorError(f"there is no assignor {name!r}; there are {', '.join(self.names())}")
            self.register(name, found.load())
        return self._factories[name]()

    def names(self) -> list[str]:
        """All names, Kafka's first."""
        return list(dict.fromkeys([*self._factories, *(point.name for point in self._installed())]))


def _factory(name: str, what: Any, protocols: Collection[RebalanceProtocol]) -> Callable[[], Assignor]:
    if not isinstance(what, type):
        if not callable(what):
            raise TypeError(f"assignor {name!r} is neither a class nor a function: {what!r}")
        return lambda: FunctionAssignor(name, what, protocols)
    missing = [attribute for attribute in Assignor.__annotations__ if not hasattr(what, attribute)]
    missing += [method for method in _METHODS if not callable(getattr(what, method, None))]
    if missing:
        raise TypeError(
            f"assignor {name!r} has no {', '.join(missing)}; the base class Assignor gives all but name and assign"
        )
    factory: Any = what
    if factory.name != name:
        raise ValueError(f"the assignor to be called {name!r} calls itself {factory.name!r}")
    return factory  # type: ignore[no-any-return]


_METHODS = ("assign", "subscription_user_data", "on_assignment")


def _rendezvous() -> Assignor:
    from groupcoord.assignors.example_assignors import RendezvousAssignor  # noqa: PLC0415 - needs mmh3

    return RendezvousAssignor()


def _weighted() -> Assignor:
    from groupcoord.assignors.example_assignors import WeightedAssignor  # noqa: PLC0415 - as the other example

    return WeightedAssignor()


ASSIGNORS = Registry()
"""The assignors of this process."""
