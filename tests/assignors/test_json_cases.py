"""Questions as values of JSON; what is answered is in test_vectors.py."""

from typing import Any

import pytest

from groupcoord.assignors.json_cases import CaseError, answer_case

MEMBER = {"id": "a", "topics": ["orders"]}
CASE = {"id": "one", "assignor": "range", "partitions_per_topic": {"orders": 2}, "members": [MEMBER]}
SERVER = {**CASE, "assignor": "server-uniform", "topic_ids": {"orders": "uuveC0Cy-djENSYY0PJALw"}}
BOTH = [["orders", 0], ["orders", 1]]


def test_a_case_needs_little() -> None:
    assert answer_case(CASE) == {"id": "one", "assignor": "range", "assignment": {"a": BOTH}}
    assert answer_case({**CASE, "assignor": "weighted"})["assignment"] == {"a": BOTH}


def test_of_a_server_side_one_the_kind_is_found_out() -> None:
    assert answer_case(SERVER)["assignment"] == {"a": BOTH}


def test_what_a_member_of_a_server_side_one_has_is_told_in_either_of_two_ways() -> None:
    newcomer = {"id": "b", "topics": ["orders"]}
    for past in ({"assigned": {"orders": [0, 1]}}, {"owned": BOTH}):
        given = answer_case({**SERVER, "members": [{**MEMBER, **past}, newcomer]})
        assert given["assignment"] == {"a": BOTH[:1], "b": BOTH[1:]}


def test_a_past_is_told_outright_or_as_it_is_on_the_wire() -> None:
    members = [{"id": "a", "topics": ["orders"]}, {"id": "b", "topics": ["orders"]}]
    claims = [["orders", 0]]
    fresh = {**CASE, "assignor": "sticky", "members": members}
    assert answer_case(fresh)["assignment"] == {"a": [["orders", 0]], "b": [["orders", 1]]}
    owned = answer_case({**fresh, "members": [members[0], {**members[1], "owned": claims, "generation": 1}]})
    assert owned["assignment"] == {"a": [["orders", 1]], "b": [["orders", 0]]}
    wire = {"owned_partitions": claims, "generation_id": 1}
    read = answer_case(
        {**fresh, "assignor": "cooperative-sticky", "members": [members[0], {**members[1], "wire": wire}]}
    )
    assert read["assignment"] == owned["assignment"]


def test_failures_are_answers() -> None:
    assert answer_case({**CASE, "assignor": "nobody's"})["error"] == "UnknownAssignorError"
    assert answer_case({**CASE, "assignor": "roundrobin", "members": []})["error"] == "IllegalArgumentException"
    missing = answer_case({**SERVER, "members": [{"id": "a", "topics": ["orders", "gone"]}]})
    assert missing["error"] == "PartitionAssignorException"


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ([], "case of no object: TypeError"),
        ({"assignor": "range"}, "case without an id: KeyError: 'id'"),
        ({**CASE, "members": [MEMBER, MEMBER]}, "case one: CaseError: a is a member twice"),
        ({**CASE, "partitions_per_topic": {"orders": -1}}, "topic orders cannot have -1 partitions"),
        ({**CASE, "partitions_per_topic": {"orders": "2"}}, "topic orders cannot have '2' partitions"),
        ({**CASE, "members": [{"topics": []}]}, "case one: KeyError: 'id'"),
        ({**SERVER, "topic_ids": {"orders": "?"}}, "case one: "),
        ({**SERVER, "assignor": "server-sticky"}, "case one: KeyError: 'sticky'"),
    ],
)
def test_what_is_no_case(case: Any, text: str) -> None:
    with pytest.raises(CaseError, match=text):
        answer_case(case)
