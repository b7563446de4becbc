"""Sessions: when they time out, and which requests extend them. Real time, short timeouts."""

from tests.conformance.actors import Stagehand
from tests.conformance.admin import Admin
from tests.conformance.members import Member, share_out, stable
from tests.conformance.story import Story, story


@story(sections=["8"], lasts_ms=6000)
def a_silent_member_is_dropped(s: Story) -> None:
    """A follower that sends nothing is removed when its session times out, and the group rebalances."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2000)
    stable(a, b)
    s.wait(1000, "the session is not over")
    a.heartbeats()
    s.wait(2000, "the session is over")
    a.heartbeats()
    b.heartbeats()
    admin.describes(group)
    a.joins(does="rejoins")
    share_out(a)


@story(gotchas=[13], sections=["8", "1.2"], lasts_ms=6000)
def the_last_silent_member_empties_the_group(s: Story) -> None:
    """The only member's session times out: the group is empty in the next generation, which is stored in the log."""
    group, admin = s.group(), Admin(s, "admin")
    a = Member(s, "a", group_id=group, session_ms=1600)
    stable(a)
    s.wait(2800, "the session is over")
    admin.describes(group)
    a.heartbeats()
    a.joins(does="rejoins with its old id")
    a.enters()


@story(gotchas=[29], sections=["8"], lasts_ms=10000)
def heartbeats_and_commits_keep_a_session(s: Story) -> None:
    """A heartbeat resets the session timer, and so does a commit, even an empty one."""
    topic = Stagehand(s).topic("orders")
    for kind in ("heartbeat", "commit"):
        group = s.group(kind)
        a = Member(s, "a", group_id=group, session_ms=3000)
        stable(a)
        for _ in range(3):
            s.wait(1800, "less than the session")
            if kind == "heartbeat":
                a.heartbeats()
            else:
                a.commits({(topic, 0): 1})
        a.heartbeats()


@story(gotchas=[27, 29], sections=["8"], lasts_ms=10000)
def joins_syncs_and_fetches_keep_no_session(s: Story) -> None:
    """An identical rejoin, a SyncGroup in Stable, an OffsetFetch and a refused commit do not reset the session
    timer."""
    topic = Stagehand(s).topic("orders")
    for kind in ("join", "sync", "fetch", "refused commit"):
        group, admin = s.group(kind.replace(" ", "-")), Admin(s, "admin")
        a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2400)
        stable(a, b)
        s.wait(1400, "more than half of the session")
        match kind:
            case "join":
                b.joins(does="rejoins, nothing new")
            case "sync":
                b.syncs()
            case "fetch":
                admin.fetches(group, {topic: [0]})
            case _:
                b.commits({(topic, 0): 1}, does="commits in a wrong generation", generation_id_or_member_epoch=9)
        s.wait(2000, "the session, counted from its start, is over")
        b.heartbeats(does="heartbeats too late")
        a.heartbeats()


@story(gotchas=[29, 30], sections=["8", "9.1"], lasts_ms=8000)
def a_commit_during_a_rebalance_keeps_the_session(s: Story) -> None:
    """During a rebalance a commit in the old generation is accepted and resets the session timer; a heartbeat resets it,
    too."""
    topic = Stagehand(s).topic("orders")
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=3000)
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    for number in range(3):
        s.wait(1800, "less than the session")
        if number == 1:
            b.heartbeats()
        else:
            b.commits({(topic, 0): number})
    b.joins(does="rejoins")
    a.is_answered()


@story(gotchas=[28], sections=["8"], lasts_ms=8000)
def a_parked_member_is_not_dropped(s: Story) -> None:
    """The session timeout of a member that waits in JoinGroup has no effect; the session restarts with the response."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2000)
    stable(a, b)
    a.heartbeats()
    c = Member(s, "c", group_id=group)
    c.enters_parked()
    b.joins_parked(does="rejoins and waits")
    b.stays_unanswered(3200)
    admin.describes(group)
    a.joins(does="rejoins")
    b.is_answered()
    c.is_answered()
    s.wait(1000, "less than the session")
    share_out(a, b, c)
    b.heartbeats()


@story(gotchas=[28], sections=["8", "5"], lasts_ms=8000)
def a_member_with_a_parked_sync_is_not_dropped(s: Story) -> None:
    """The session timeout of a member that waits in SyncGroup has no effect."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2000)
    a.enters()
    b.enters_parked()
    a.joins(does="rejoins")
    b.is_answered()
    b.syncs_parked()
    b.stays_unanswered(3200)
    a.syncs({a: b"1", b: b"2"})
    b.is_answered()
    b.heartbeats()


@story(gotchas=[7], sections=["8", "4.5"], lasts_ms=6000)
def a_pending_id_expires(s: Story) -> None:
    """A member id that is not used within the session timeout of its request is dropped."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=1800)
    stable(a)
    b.asks_for_an_id()
    s.wait(3000, "the session it asked for is over")
    b.joins(does="joins with the expired id")
    a.heartbeats()
    admin.describes(group)


@story(gotchas=[5, 7], sections=["8"], lasts_ms=6000)
def an_expiring_pending_id_ends_the_wait(s: Story) -> None:
    """All members have rejoined and only a pending id is missing: when it expires the join phase completes."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=2400)
    stable(a)
    b.asks_for_an_id()
    a.joins_parked(does="rejoins and waits")
    a.stays_unanswered(1200)
    a.is_answered()
    share_out(a)


@story(gotchas=[7, 8], sections=["8", "4.10"], lasts_ms=8000)
def a_parked_newcomer_outlives_its_session(s: Story) -> None:
    """A new member's waiting JoinGroup is limited to five minutes, not by its session timeout."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group, session_ms=1000)
    stable(a)
    b.enters_parked()
    b.stays_unanswered(3000)
    admin.describes(group)
    a.joins(does="rejoins")
    b.is_answered()
    s.wait(2200, "the session of the newcomer is over")
    a.heartbeats()
    b.heartbeats()


@story(gotchas=[8], sections=["8", "4.10"], lasts_ms=305_000)
def a_newcomer_waits_five_minutes_in_vain(s: Story) -> None:
    """After five minutes a waiting new member gets UNKNOWN_MEMBER_ID without an id, and the group continues without it."""
    group, admin = s.group(), Admin(s, "admin")
    a, b = Member(s, "a", group_id=group, session_ms=600_000, rebalance_ms=600_000), Member(s, "b", group_id=group)
    stable(a)
    b.enters_parked()
    b.stays_unanswered(298_000)
    b.is_answered()
    admin.describes(group)
    a.joins(does="rejoins")
    share_out(a)


@story(sections=["8", "4.11"], lasts_ms=8000)
def a_session_ends_before_the_rebalance_timeout(s: Story) -> None:
    """A member that neither heartbeats nor rejoins in a rebalance is removed when its session times out: the phase
    completes."""
    group = s.group()
    a = Member(s, "a", group_id=group, rebalance_ms=60_000)
    b = Member(s, "b", group_id=group, rebalance_ms=60_000, session_ms=2400)
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    a.stays_unanswered(1200)
    a.is_answered()
    share_out(a)


@story(sections=["8", "5"], lasts_ms=8000)
def a_session_ends_while_completing(s: Story) -> None:
    """If a session times out before the leader has synced, the rebalance restarts; waiting SyncGroups get an error."""
    group = s.group()
    a = Member(s, "a", group_id=group, session_ms=2000)
    b = Member(s, "b", group_id=group)
    a.enters()
    b.enters_parked()
    a.joins(does="rejoins")
    b.is_answered()
    b.syncs_parked()
    b.is_answered()
    b.joins(does="rejoins")
    share_out(b)


@story(sections=["8", "4.6"], lasts_ms=10000)
def a_rejoin_changes_the_session(s: Story) -> None:
    """A rejoin that takes part in a rebalance stores the new session timeout, which starts at the response."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a, b)
    a.joins_parked(does="rejoins and waits")
    b.joins(does="rejoins with a short session", session_timeout_ms=2000)
    a.is_answered()
    share_out(a, b)
    s.wait(3200, "the new session is over")
    a.heartbeats()
    b.heartbeats()
