import dataclasses

import pytest

from groupcoord.coordinator.classic.classic_group_state import Member
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.core.effects import Call
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.apis import APIS, ApiKey

CALL = Call(1, 1, APIS[ApiKey.JOIN_GROUP], 9, "a", "/127.0.0.1")
MEMBER = Member(
    member_id="a-1",
    instance_id=None,
    client_id="a",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=1,
    session_timeout_ms=1,
    protocol_type="consumer",
    protocols=(("sticky", b"s"), ("range", b"r")),
    session_key=TimerKey("session", "app", "a-1"),
)


def test_it_votes_for_the_first_of_its_protocols_that_all_support() -> None:
    assert MEMBER.vote({"range", "sticky"}) == "sticky"
    assert MEMBER.vote({"range"}) == "range"


def test_its_metadata_is_that_of_one_protocol() -> None:
    assert MEMBER.metadata_of("range") == b"r"
    with pytest.raises(UnexpectedBrokerError):
        MEMBER.metadata_of("roundrobin")


def test_a_parked_request_is_as_good_as_a_heartbeat() -> None:
    assert not MEMBER.has_satisfied_heartbeat
    assert dataclasses.replace(MEMBER, parked_join=CALL).has_satisfied_heartbeat
    assert dataclasses.replace(MEMBER, parked_sync=CALL).has_satisfied_heartbeat


def test_but_not_of_a_newcomer_who_has_to_prove_itself() -> None:
    assert not dataclasses.replace(MEMBER, parked_join=CALL, is_new=True).has_satisfied_heartbeat


def test_its_text_says_where_it_waits() -> None:
    assert repr(MEMBER) == "<Member a-1>"
    assert repr(dataclasses.replace(MEMBER, parked_join=CALL)) == "<Member a-1 parked in join>"
    assert repr(dataclasses.replace(MEMBER, parked_sync=CALL)) == "<Member a-1 parked in sync>"
