"""The table of what another Kafka does otherwise, on steps made up for it."""

from typing import Any

import pytest

from groupcoord.protocol.apis import APIS
from tests.conformance.compare import recorded
from tests.conformance.otherwise import Otherwise, first_otherwise
from tests.conformance.record import KAFKA_VERSION, RECORDINGS
from tests.conformance.telling import all_tales
from tests.conformance.transcript import Step
from tests.conformance.versions import NO_CONSUMER_GROUPS, TITLE, document, of_consumer_groups, section


def step(gets: Any, *, version: int = 9, actor: str = "a", does: str = "joins") -> Step:
    return {"actor": actor, "does": does, "sends": {f"JoinGroup v{version}": {}}, "gets": gets}


def log(*records: Any) -> Step:
    return {"actor": "log", "does": "holds", "gets": list(records)}


def generation(number: int, members: int) -> dict[str, Any]:
    return {"key": {"type": 2, "group": "g"}, "value": {"generation": number, "members": [{}] * members}}


def phrases(want: Step, have: Step) -> tuple[str, ...]:
    found = first_otherwise([want], [have])
    return found.phrases if found else ()


@pytest.mark.parametrize(
    ("want", "have", "said"),
    [
        ({"error_code": 0}, {"error_code": 25}, "`error_code` is UNKNOWN_MEMBER_ID instead of NONE"),
        ({"leader": "a"}, {"leader": None}, '`leader` is `null` instead of `"a"`'),
        ({"error_code": 0}, "the connection was closed", "the connection was closed, instead of an answer"),
        ({"error_code": 0}, "no answer within 15000 ms", "no answer, instead of an answer"),
        ({"a": 1, "b": 2}, {"a": 1}, "`b` is missing"),
        ({"a": 1}, {"a": 1, "b": 2}, "`b`: `2` besides"),
        ({"x": [{"name": "a"}, {"name": "b"}]}, {"x": [{"name": "b"}, {"name": "a"}]}, "`x` in another order"),
        ({"x": [{"name": "a"}]}, {"x": []}, "`x` without `a`"),
        ({"x": [{"name": "a"}]}, {"x": [{"name": "a"}, {"name": "b"}]}, "`x` with `b` besides"),
        ({"x": [{"name": "a", "y": 1}]}, {"x": [{"name": "a", "y": 2}]}, "`x.y` is `2` instead of `1`"),
        ({"x": [1, 2]}, {"x": [2, 1]}, "`x` in another order"),
        ({"x": [1, 2]}, {"x": [1]}, "`x` has 1 items instead of 2"),
    ],
)
def test_a_difference_is_said_in_words(want: Any, have: Any, said: str) -> None:
    assert phrases(step(want), step(have)) == (said,)


def test_of_a_request_in_an_older_version_only_what_it_has_is_compared() -> None:
    want, have = step({"error_code": 0, "new": 1}), step({"error_code": 0, "old": 2}, version=8)
    assert first_otherwise([want], [have]) is None
    found = first_otherwise([want], [step({"error_code": 25}, version=8)])
    assert found == Otherwise("JoinGroup", 8, ("`error_code` is UNKNOWN_MEMBER_ID instead of NONE",), 1, "a joins")


def test_records_are_told_by_what_they_are() -> None:
    want, have = log(generation(0, 0), generation(1, 1)), log(generation(1, 1), generation(2, 2))
    assert phrases(want, have) == ("no record of generation 0, 0 members", "a record more, of generation 2, 2 members")
    offset = {"key": {"type": 1}, "value": {"offset": 4}}
    assert phrases(log(offset), log({"key": {"type": 1}, "value": {"offset": 5}})) == (
        "`value.offset` is `5` instead of `4`",
    )


def test_the_first_step_that_differs_is_told() -> None:
    same, first, second = step({"x": 1}), step({"x": 2}), step({"x": 3})
    found = first_otherwise([same, same, same], [same, first, second])
    assert found is not None
    assert (found.step, found.phrases) == (2, ("`x` is `2` instead of `1`",))
    assert first_otherwise([same], [same]) is None


def test_a_story_may_go_elsewhere_or_end() -> None:
    same = step({"x": 1})
    assert phrases(same, step({"x": 1}, does="leaves")) == ("the story goes elsewhere: a leaves",)
    for want, have, said in (
        ([same, same], [same], "the story ends earlier"),
        ([same], [same, same], "the story goes on"),
    ):
        found = first_otherwise(want, have)
        assert found is not None
        assert (found.step, found.phrases) == (2, (said,))


def test_a_section_says_versions_and_puts_what_is_alike_into_one_row() -> None:
    tales = [tale for tale in all_tales() if tale.topic == "heartbeats"]
    told = {tale.name: recorded(RECORDINGS / KAFKA_VERSION, tale) for tale in tales}
    served = {int(key): (api.advertised_min, api.max_version) for key, api in APIS.items()}
    same = section("3.0.0", served, told, tales)
    assert f"Of {len(tales)} stories, {len(tales)} are the same as with {KAFKA_VERSION}" in same
    for steps in told.values():
        steps[-1] = {**steps[-1], "gets": []}
    other = section("3.0.0", {**served, 11: (0, 5)}, told, tales)
    assert "| JoinGroup | 0–9 | 0–5 |" in other
    (row,) = [line for line in other.splitlines() if "no record of generation 0, 0 members" in line]
    assert row.endswith(f"; {len(tales) - 1} more |")


def test_stories_that_another_kafka_cannot_be_told_are_left_out() -> None:
    tales = [tale for tale in all_tales() if tale.topic in {"heartbeats", "consumer_joining"}]
    told = {tale.name: recorded(RECORDINGS / KAFKA_VERSION, tale) for tale in tales if not of_consumer_groups(tale)}
    text = section("3.0.0", {}, told, tales)
    assert 0 < len(told) < len(tales)
    assert text.splitlines()[2].startswith(f"Of {len(told)} stories, {len(told)} are the same as with")
    assert NO_CONSUMER_GROUPS in text


def test_a_section_replaces_the_one_of_its_version_and_no_other() -> None:
    first = document("", "3.9.2", "## Kafka 3.9.2\n\nold\n")
    assert first == TITLE + "\n## Kafka 3.9.2\n\nold\n"
    second = document(first, "4.4.0", "## Kafka 4.4.0\n\nother\n")
    third = document(second, "3.9.2", "## Kafka 3.9.2\n\nnew\n")
    assert third == TITLE + "\n## Kafka 4.4.0\n\nother\n\n## Kafka 3.9.2\n\nnew\n"
