from collections import Counter

import pytest

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import Member
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.core.effects import NO_CONNECTION, Call
from groupcoord.protocol.apis import APIS, ApiKey
from tests.coordinator.bare_group import bare_group
from tests.coordinator.world import subscription

CALL = Call(1, 1, APIS[ApiKey.JOIN_GROUP], 9, "me", "/127.0.0.1")


def group_of(*wishes: tuple[str, ...], protocol_type: str = "consumer") -> ClassicGroup:
    """A group whose members (0, 1, 2 …) offer these protocols, most wanted first."""
    group = bare_group()
    for index, names in enumerate(wishes):
        member_id = str(index)
        member = Member(
            member_id=member_id,
            instance_id=None,
            client_id="",
            client_host="",
            rebalance_timeout_ms=100 * index,
            session_timeout_ms=10,
            protocol_type=protocol_type,
            protocols=tuple((name, subscription(f"t{index}")) for name in names),
            session_key=group.session_key(member_id),
        )
        group.add_member(member, CALL)
    return group


@pytest.mark.parametrize(
    ("wishes", "chosen"),
    [
        ((("range",),), "range"),
        ((("range", "sticky"), ("sticky", "range"), ("sticky", "range")), "sticky"),
        ((("range", "sticky"), ("sticky",)), "sticky"),
        ((("sticky", "range", "roundrobin"), ("roundrobin", "range")), "range"),
        ((("range", "roundrobin"), ("roundrobin", "range")), "range"),
        ((("roundrobin", "range"), ("range", "roundrobin")), "range"),
        ((("range", "sticky"), ("sticky", "range")), "sticky"),
        ((("cooperative-sticky", "range"), ("range", "cooperative-sticky")), "range"),
        ((("cooperative-sticky", "sticky"), ("sticky", "cooperative-sticky")), "sticky"),
    ],
)
def test_most_votes_win_and_ties_go_by_javas_order(wishes: tuple[tuple[str, ...], ...], chosen: str) -> None:
    """Each votes for its first protocol that all support; the order is that of core/java_table.json."""
    group = group_of(*wishes)
    assert group.select_protocol(group.votes()) == chosen


def test_a_protocol_that_not_all_support_gets_no_vote() -> None:
    assert group_of(("sticky", "range"), ("sticky", "range"), ("range",)).votes() == {"range": 3}


def test_a_protocol_that_is_listed_twice_counts_twice() -> None:
    group = group_of(("range", "range"), ("range",))
    assert group.supported_protocols == Counter({"range": 3})
    with pytest.raises(UnexpectedBrokerError, match="member 0 offers no protocol that counts as offered by all"):
        group.votes()
    group.discard_member(group.members["0"])
    assert group.supported_protocols == Counter({"range": 1})
    assert group.votes() == {"range": 1}


def test_the_first_member_ever_leads() -> None:
    assert group_of(("range",), ("range",)).leader_id == "0"


def test_when_the_leader_goes_the_first_in_javas_order_leads() -> None:
    group = group_of(("range",), ("range",), ("range",))
    group.discard_member(group.members["0"])
    assert group.leader_id == next(iter(group.members)) == "1"


def test_without_members_nobody_leads() -> None:
    group = group_of(("range",))
    group.discard_member(group.members["0"])
    assert group.leader_id is None


def test_who_is_removed_is_missed_by_nobody() -> None:
    group = group_of(("range",), ("range",))
    group.pending_sync_members |= {"0", "1"}
    group.discard_member(group.members["0"])
    assert (group.pending_sync_members, group.awaiting_join) == ({"1"}, 1)


def test_the_rebalance_timeout_is_the_longest_of_the_members() -> None:
    assert group_of(("range",), ("range",), ("range",)).rebalance_timeout_ms == 200
    assert group_of().rebalance_timeout_ms == 0


def test_a_rebalance_timeout_is_never_negative() -> None:
    group = group_of(("range",))
    group.members["0"].rebalance_timeout_ms = -5
    assert group.rebalance_timeout_ms == 0


def test_the_subscribed_topics_are_those_of_all_members() -> None:
    group = group_of(("range",), ("range",))
    group.protocol_name = "range"
    assert group.compute_subscribed_topics() == frozenset({"t0", "t1"})


def test_topics_of_metadata_that_is_no_subscription_are_unknown() -> None:
    group = group_of(("range",), ("range",))
    group.protocol_name = "range"
    group.members["1"].protocols = (("range", b"\x00"),)
    assert group.compute_subscribed_topics() is None


def test_topics_of_a_subscription_that_is_longer_than_it_is_cannot_be_computed() -> None:
    group = group_of(("range",), ("range",))
    group.protocol_name = "range"
    group.members["1"].protocols = (("range", b"\0\0\0\0\0\x09"),)
    with pytest.raises(
        UnexpectedBrokerError, match="the subscription of 1 cannot be read: 9 topics where 0 bytes are left"
    ):
        group.compute_subscribed_topics()


def test_a_call_that_was_answered_stays_parked_for_nobody() -> None:
    group = group_of(("range",), ("range",))
    join, sync = CALL._replace(correlation_id=2), CALL._replace(correlation_id=3)
    group.park_join(group.members["0"], join)
    group.members["1"].parked_sync = sync
    group.answered_already(join)
    group.answered_already(sync)
    assert group.members["0"].parked_join == join._replace(connection_id=NO_CONNECTION)
    assert group.members["1"].parked_sync == sync._replace(connection_id=NO_CONNECTION)
    assert group.members["1"].parked_join is CALL
    assert group.awaiting_join == 2


def test_topics_of_another_protocol_type_are_unknown() -> None:
    group = group_of(("range",), protocol_type="connect")
    group.protocol_name = "range"
    assert group.compute_subscribed_topics() is None
    assert not group.is_subscribed_to("t0")


def test_while_topics_are_unknown_a_consumer_group_counts_as_subscribed_to_all() -> None:
    group = group_of(("range",))
    assert group.is_subscribed_to("anything")
    group.subscribed_topics = frozenset({"t"})
    assert group.is_subscribed_to("t")
    assert not group.is_subscribed_to("anything")


def test_a_simple_group_only_holds_offsets() -> None:
    assert bare_group().is_simple
    assert not group_of(("range",)).is_simple


def test_a_group_that_has_handed_out_an_id_is_not_simple() -> None:
    group = bare_group()
    group.pending_join_members.add("x")
    assert not group.is_simple


def test_metadata_of_a_protocol_the_member_lacks() -> None:
    member = group_of(("range",)).members["0"]
    assert member.metadata_of("range") == subscription("t0")
    with pytest.raises(UnexpectedBrokerError, match="member 0 does not offer protocol sticky"):
        member.metadata_of("sticky")


def test_a_group_and_its_members_say_what_they_are() -> None:
    group = group_of(("range",))
    member = group.members["0"]
    assert repr(group) == "<ClassicGroup g Empty gen=0 members=1>"
    assert repr(member) == "<Member 0 parked in join>"
    group.park_join(member, None)
    assert repr(member) == "<Member 0>"
    member.parked_sync = CALL
    assert repr(member) == "<Member 0 parked in sync>"


def test_an_unknown_instance_id_is_of_nobody() -> None:
    assert bare_group().static_member("x") is None
    assert bare_group().static_member(None) is None
