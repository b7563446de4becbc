from importlib.metadata import EntryPoint

import pytest

from groupcoord.assignors import Assignment, Assignor, FunctionAssignor, GroupSubscription, RebalanceProtocol
from groupcoord.assignors.registry import ASSIGNORS, GROUP, Registry, UnknownAssignorError
from groupcoord.assignors.sticky.sticky_assignors import StickyAssignor

EVERYTHING = GroupSubscription(subscriptions={}, partitions={})


def first_takes_all(group: GroupSubscription) -> Assignment:
    return {member_id: [] for member_id in group.subscriptions}


class Own(Assignor):
    """An assignor with a name and one method: the rest is inherited."""

    name = "own"

    def assign(self, group: GroupSubscription) -> Assignment:
        return first_takes_all(group)


class Bare:
    name = "bare"

    def assign(self, group: GroupSubscription) -> Assignment:
        return first_takes_all(group)


def installed(*names: str, value: str = f"{__name__}:first_takes_all") -> Registry:
    return Registry(lambda: [EntryPoint(name, value, GROUP) for name in names])


def test_kafkas_four_and_the_two_examples() -> None:
    names = ["range", "roundrobin", "sticky", "cooperative-sticky", "rendezvous", "weighted"]
    assert ASSIGNORS.names()[:6] == names
    for name in names:
        assert ASSIGNORS.create(name).name == name


def test_every_member_has_its_own() -> None:
    assert ASSIGNORS.create("sticky") is not ASSIGNORS.create("sticky")


def test_a_class_is_registered() -> None:
    registry = installed()
    registry.register("own", Own)
    made = registry.create("own")
    assert isinstance(made, Own)
    assert list(made.protocols) == [RebalanceProtocol.EAGER]
    assert made.subscription_user_data(["orders"]) is None
    made.on_assignment([], 1)
    assert registry.names()[-1] == "own"


def test_a_function_is_registered() -> None:
    registry = installed()
    registry.register("function", first_takes_all, protocols=list(RebalanceProtocol))
    made = registry.create("function")
    assert isinstance(made, FunctionAssignor)
    assert made.assign(EVERYTHING) == {}
    assert list(made.protocols) == list(RebalanceProtocol)


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="cannot be called 'range': the name is taken"):
        installed().register("range", Own)
    with pytest.raises(ValueError, match="it is empty"):
        installed().register("", Own)


def test_a_class_goes_by_its_own_name() -> None:
    with pytest.raises(ValueError, match="'mine' calls itself 'own'"):
        installed().register("mine", Own)


def test_what_cannot_assign_is_refused() -> None:
    with pytest.raises(TypeError, match="neither a class nor a function: 7"):
        installed().register("seven", 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="has no protocols, subscription_user_data, on_assignment; the base class"):
        installed().register("bare", Bare)  # type: ignore[arg-type]


def test_installed_packages_bring_assignors_along() -> None:
    registry = installed("theirs")
    assert registry.names()[-1] == "theirs"
    assert registry.create("theirs").assign(EVERYTHING) == {}
    assert registry.create("theirs").name == "theirs"


def test_kafkas_names_cannot_be_taken_over_by_a_package() -> None:
    assert isinstance(installed("sticky").create("sticky"), StickyAssignor)
    assert installed("sticky").names().count("sticky") == 1


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(
        UnknownAssignorError, match="there is no assignor 'stiky'; there are range, roundrobin, sticky, "
    ):
        installed("theirs").create("stiky")
