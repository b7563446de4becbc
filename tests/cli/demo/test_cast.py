from itertools import combinations

import pytest

from groupcoord.cli.demo import cast
from groupcoord.cli.demo.ballots import ballots
from groupcoord.cli.demo.orders import CUSTOMERS


def test_three_libraries_play() -> None:
    assert {role.library for role in cast.CAST} == {"aiokafka", "kafka-python", "confluent-kafka"}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_whoever_is_there_can_agree(size: int) -> None:
    for roles in combinations(cast.CAST, size):
        assert ballots({role.name: role.protocols for role in roles})


def test_the_vote_comes_out_differently_as_members_come_and_go() -> None:
    def votes(*roles: cast.Role) -> list[str]:
        return [ballot.vote for ballot in ballots({role.name: role.protocols for role in roles})]

    assert votes(cast.MORTAL) == ["sticky"]
    assert votes(cast.MORTAL, cast.SURVIVOR) == ["range", "roundrobin"]
    assert votes(*cast.CAST) == ["roundrobin"] * 3


def test_customers_are_told_apart() -> None:
    assert len(set(CUSTOMERS)) == len(CUSTOMERS)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cast.missing_libraries() == []
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None if module == "kafka" else module)
    assert cast.missing_libraries() == ["kafka-python"]
