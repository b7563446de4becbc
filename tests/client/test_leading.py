from groupcoord.assignors import Group, Subscription, read_assignment
from groupcoord.assignors.wire import write_subscription
from groupcoord.client import leading
from groupcoord.protocol.messages.join_group import JoinGroupResponseMember


def test_what_members_said_comes_with_who_they_are() -> None:
    said = Subscription(topics=("t",), user_data=b"x", owned_partitions=[("t", 1)], generation_id=3, rack_id="r")
    member = JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=write_subscription(said))
    (subscription,) = leading.subscriptions_of([member]).values()
    assert (subscription.instance_id, subscription.rack_id, subscription.generation_id) == ("i", "r", 3)
    assert list(subscription.owned_partitions) == [("t", 1)]


def test_withheld_is_what_is_owned_and_exists_and_goes_to_nobody() -> None:
    owner = Subscription(topics=("t",), owned_partitions=[("t", 0), ("t", 1), ("t", 2), ("gone", 0)])
    group = Group(subscriptions={"a": owner, "b": Subscription(topics=("t",))}, partitions={"t": 2})
    assert leading.withheld(group, {"a": [("t", 0)], "b": []}) == (("t", 1),)


def test_an_assignment_is_written_member_by_member() -> None:
    (entry,) = leading.written({"a": [("t", 1), ("t", 0)]})
    assert (entry.member_id, read_assignment(entry.assignment)) == ("a", [("t", 1), ("t", 0)])
