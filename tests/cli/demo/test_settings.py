from itertools import combinations

import pytest

from groupcoord.cli.demo import settings
from groupcoord.cli.demo.narrator import member_votes
from groupcoord.cli.demo.producer import CUSTOMERS


def test_three_libraries_play() -> None:
    assert {role.library for role in settings.CONSUMERS} == {"aiokafka", "kafka-python", "confluent-kafka"}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_whoever_is_there_can_agree(size: int) -> None:
    for roles in combinations(settings.CONSUMERS, size):
        assert member_votes({role.name: role.protocols for role in roles})


def test_the_vote_comes_out_differently_as_members_come_and_go() -> None:
    def votes(*roles: settings.ConsumerSettings) -> list[str]:
        return [ballot.vote for ballot in member_votes({role.name: role.protocols for role in roles})]

    assert votes(settings.KILLED) == ["sticky"]
    assert votes(settings.KILLED, settings.LAST) == ["range", "roundrobin"]
    assert votes(*settings.CONSUMERS) == ["roundrobin"] * 3


def test_customers_are_told_apart() -> None:
    assert len(set(CUSTOMERS)) == len(CUSTOMERS)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.missing_libraries() == []
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None if module == "kafka" else module)
    assert settings.missing_libraries() == ["kafka-python"]
