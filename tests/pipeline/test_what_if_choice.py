"""Which assignors are to be played with, and what is said of those that there are not."""

from importlib.metadata import EntryPoint

import pytest

from groupcoord.assignors import ASSIGNORS, Assignment, Assignor, GroupSubscription, Registry
from groupcoord.assignors.example_assignors import WeightedAssignor, capacity_of
from groupcoord.assignors.sticky.sticky_assignors import StickyAssignor
from groupcoord.pipeline.assignor_replay.assignor_choice import choices
from groupcoord.pipeline.errors import PipelineError


def nothing(group: GroupSubscription) -> Assignment:
    return {member_id: [] for member_id in group.subscriptions}


class Picky(Assignor):
    name = "picky"

    def __init__(self, word: str = "a", share: float = 0.5) -> None:
        self.word, self.share = word, share

    def assign(self, group: GroupSubscription) -> Assignment:
        return nothing(group)


def registry() -> Registry:
    broken = EntryPoint("broken", "no_such_package.at_all:thing", "groupcoord.assignors")
    found = Registry(lambda: [broken])
    found.register("nothing", nothing)
    found.register("picky", Picky)
    return found


def refused(said: str) -> str:
    with pytest.raises(PipelineError) as problem:
        choices(said, registry())
    return str(problem.value)


def test_every_registered_assignor_can_be_had() -> None:
    names = ASSIGNORS.names()
    assert [(choice.spec, choice.name) for choice in choices(",".join(names))] == [(name, name) for name in names]
    for choice in choices(",".join(names)):
        first, second = choice.make(), choice.make()
        assert first.name == choice.name
        assert first is not second


def test_each_is_played_once_and_blanks_do_not_count() -> None:
    assert [choice.spec for choice in choices(" range ,sticky,range")] == ["range", "sticky"]


def test_a_function_is_an_assignor_too() -> None:
    [choice] = choices("nothing", registry())
    assert choice.make().name == "nothing"


def test_parameters_have_the_type_of_their_defaults() -> None:
    weighted, lenient, picky, strict = choices(
        "weighted:capacity=3,sticky:strict=No,picky:word=b=c:share=0.25,sticky:strict=true", registry()
    )
    heavy = weighted.make()
    assert isinstance(heavy, WeightedAssignor)
    assert capacity_of(heavy.subscription_user_data(["t"])) == 3
    assert weighted.spec == "weighted:capacity=3"
    assert weighted.name == "weighted"
    of_stickies = [choice.make() for choice in (lenient, strict)]
    assert [one._strict for one in of_stickies if isinstance(one, StickyAssignor)] == [False, True]
    made = picky.make()
    assert isinstance(made, Picky)
    assert (made.word, made.share) == ("b=c", 0.25)


def test_what_there_is_not_is_refused_with_what_there_is() -> None:
    assert refused("range,sticki") == (
        "there is no assignor 'sticki'; there are range, roundrobin, sticky, cooperative-sticky, rendezvous, weighted, "
        "nothing, picky, broken"
    )
    assert refused("range,").startswith("there is no assignor ''; there are range")
    assert refused("weighted:weight=2") == "assignor 'weighted' has no parameter 'weight'; it has capacity"
    assert refused("range:loose=1") == "assignor 'range' has no parameter 'loose'; it has none"
    assert refused("nothing:a=1") == "assignor 'nothing' is a function and has no parameters, not even 'a=1'"
    assert refused("broken").startswith("assignor 'broken' cannot be had: ModuleNotFoundError: ")


def test_values_that_cannot_be_are_refused() -> None:
    assert refused("weighted:capacity=lots") == "capacity of assignor 'weighted' is a number, and not 'lots'"
    assert refused("weighted:capacity") == "capacity of assignor 'weighted' is a number, and not ''"
    assert refused("weighted:capacity=0") == "'weighted:capacity=0': a member cannot have a capacity of 0"
    assert refused("sticky:strict=perhaps") == "strict of assignor 'sticky' is true or false, and not 'perhaps'"
