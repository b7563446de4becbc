"""Heartbeat in every state of a group, in every version, with every kind of error."""

from tests.conformance.members import Member, share_out, stable
from tests.conformance.story import Story, story


@story(sections=["6"])
def heartbeats_through_a_life(s: Story) -> None:
    """The response in every state: REBALANCE_IN_PROGRESS while rebalancing, NONE in the others."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    a.asks_for_an_id()
    a.heartbeats(does="heartbeats with a pending id", generation_id=0)
    a.joins()
    a.heartbeats(does="heartbeats before anybody synced")
    a.syncs({a: b"x"})
    a.heartbeats()
    b.enters_parked()
    a.heartbeats(does="heartbeats while the group rebalances")
    b.heartbeats(does="heartbeats while its own join is parked", generation_id=1)
    b.heartbeats(does="heartbeats in no generation while its own join is parked")
    a.joins_parked(does="rejoins")
    b.is_answered()
    share_out(a, b)
    b.heartbeats()
    a.leaves()
    b.heartbeats()
    b.leaves()
    b.heartbeats(does="heartbeats in an empty group")


@story(gotchas=[26, 39], sections=["6", "4.6.1"])
def refusals_of_heartbeat(s: Story) -> None:
    """Every error of Heartbeat, and which of two comes first."""
    group, missing = s.group(), s.group("missing")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, instance="instance-b")
    stable(a)
    b.joins_parked()
    a.joins(does="rejoins")
    b.is_answered()
    share_out(a, b)
    a.heartbeats(does="heartbeats for no group", group_id="")
    a.heartbeats(does="heartbeats for no group as nobody", group_id="", member_id="")
    a.heartbeats(does="heartbeats for a missing group", group_id=missing)
    a.heartbeats(does="heartbeats as a stranger", member_id="stranger")
    a.heartbeats(does="heartbeats as nobody", member_id="")
    a.heartbeats(does="heartbeats as a stranger in a wrong generation", member_id="stranger", generation_id=99)
    a.heartbeats(does="heartbeats as an unknown instance", group_instance_id="nobody")
    a.heartbeats(does="heartbeats as another's instance", group_instance_id="instance-b")
    a.heartbeats(
        does="heartbeats as another's instance in a wrong generation", group_instance_id="instance-b", generation_id=99
    )
    b.heartbeats(does="heartbeats without its instance id", group_instance_id=None)
    b.heartbeats(does="heartbeats with a stranger's id", member_id="stranger")
    b.heartbeats(
        does="heartbeats with a stranger's id and no instance id", member_id="stranger", group_instance_id=None
    )
    for generation in (1, 3, -1, 0, 2147483647, -2147483648):
        a.heartbeats(does=f"heartbeats in generation {generation}", generation_id=generation)
    a.heartbeats()


@story(sections=["6"])
def every_version_of_heartbeat(s: Story) -> None:
    """The responses in every version: success, unknown member, wrong generation."""
    group = s.group()
    a = Member(s, "a", group_id=group)
    stable(a)
    for version in range(5):
        a.heartbeats(version)
        a.heartbeats(version, does="heartbeats as a stranger", member_id="stranger")
        a.heartbeats(version, does="heartbeats in a wrong generation", generation_id=7)
        a.heartbeats(version, does="heartbeats for no group", group_id="")
