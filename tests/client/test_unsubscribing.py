"""A member that unsubscribes leaves its group, and may come back; one whose user assigns partitions stays out of it."""

import pytest

from groupcoord.client.client_errors import CommitFailedError
from groupcoord.client.member import actions as a
from groupcoord.client.member.consumer_heartbeat import ConsumerMemberState
from groupcoord.client.member.context import NO_GENERATION, MemberState
from groupcoord.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from groupcoord.protocol.apis.find_coordinator import FindCoordinatorRequest
from groupcoord.protocol.apis.join_group import JoinGroupRequest
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client import consumer_talk
from tests.client.consumer_talk import ConsumerTalk
from tests.client.talk import COOPERATIVE, EAGER, Conversation, Talk, partitions, settled

P = partitions


def unsubscribes(talk: Conversation) -> None:
    talk.hears(talk.membership.unsubscribe(talk.now_ms))


def assigns_itself(talk: Conversation) -> None:
    talk.hears(talk.membership.assign(talk.now_ms))


class TestClassicProtocol:
    @pytest.mark.parametrize("assignors", [EAGER, COOPERATIVE])
    def test_it_tells_its_user_leaves_and_joins_again_as_a_newcomer(self, assignors: tuple[str]) -> None:
        talk = settled(assignors, *P(0, 1))
        talk.goes_away()
        unsubscribes(talk)
        assert talk.wish(a.StopDelivery).partitions == frozenset(P(0, 1))
        talk.told("revoked", *P(0, 1))
        talk.owns()
        assert talk.leave().members[0].reason == "the consumer unsubscribed from all topics"
        assert talk.is_quiet()
        assert (talk.membership.state, talk.membership.generation) == (MemberState.UNJOINED, NO_GENERATION)
        talk.waits(1_000_000)
        assert talk.is_quiet()
        talk.polls()
        talk.subscribes("t")
        request = talk.join()
        assert (request.member_id, request.reason) == ("", "")

    def test_it_joins_again_when_its_callback_is_over(self) -> None:
        talk = settled(EAGER, *P(0))
        unsubscribes(talk)
        talk.wish(a.StopDelivery)
        tell = talk.wish(a.InvokeCallback)
        unsubscribes(talk)
        talk.subscribes("u")
        assert talk.is_quiet()
        talk.completes(tell)
        talk.owns()
        talk.leave()
        talk.join()
        assert talk.membership.watched_topics == {"u"}

    def test_it_may_be_closed_meanwhile(self) -> None:
        talk = settled(EAGER, *P(0))
        unsubscribes(talk)
        talk.wish(a.StopDelivery)
        tell = talk.wish(a.InvokeCallback)
        talk.closes("done")
        talk.completes(tell)
        talk.owns()
        assert talk.leave().members[0].reason == "the consumer unsubscribed from all topics"
        talk.wish(a.MembershipEnded)
        assert talk.is_quiet()

    def test_its_goodbye_is_awaited_when_it_is_closed(self) -> None:
        talk = settled(EAGER)
        unsubscribes(talk)
        send, _ = talk.sends(LeaveGroupRequest)
        talk.closes()
        assert talk.is_quiet()
        talk.fails(send)
        talk.wish(a.MembershipEnded)

    def test_a_join_under_way_is_given_up(self) -> None:
        talk = Talk(EAGER)
        talk.find()
        join, _ = talk.sends(JoinGroupRequest)
        unsubscribes(talk)
        assert talk.wish(a.CancelAction).ticket == join.ticket
        assert talk.is_quiet()

    def test_a_member_that_failed_stays_failed(self) -> None:
        talk = Talk(EAGER)
        talk.find()
        talk.join(E.GROUP_MAX_SIZE_REACHED)
        assert talk.wish(a.RaiseError).final
        unsubscribes(talk)
        talk.subscribes("t")
        assert talk.is_quiet()

    def test_it_commits_as_nobody_while_its_user_assigns_partitions(self) -> None:
        talk = Talk(EAGER, topics=())
        with pytest.raises(CommitFailedError):
            talk.membership.commits_as()
        assigns_itself(talk)
        talk.find()
        talk.polls()
        talk.goes_away()
        assert talk.membership.commits_as() == NO_GENERATION
        talk.hears(talk.membership.commit_answered(E.UNKNOWN_MEMBER_ID, NO_GENERATION, talk.now_ms))
        assert talk.is_quiet()
        assert talk.events[1:] == []
        unsubscribes(talk)
        talk.polls()
        talk.subscribes("t")
        talk.join()

    def test_one_that_assigned_partitions_just_ends(self) -> None:
        talk = Talk(EAGER, topics=())
        assigns_itself(talk)
        talk.sends(FindCoordinatorRequest)
        talk.closes()
        talk.wish(a.MembershipEnded)

    def test_without_a_group_it_looks_for_nobody(self) -> None:
        talk = Talk(EAGER, topics=(), group_id="")
        assigns_itself(talk)
        assert talk.is_quiet()
        talk.closes()
        talk.wish(a.MembershipEnded)


class TestConsumerProtocol:
    def test_it_tells_its_user_leaves_and_joins_again(self) -> None:
        talk = consumer_talk.settled(0, 1)
        talk.goes_away()
        unsubscribes(talk)
        assert talk.wish(a.StopDelivery).partitions == frozenset(P(0, 1))
        talk.told("revoked", *P(0, 1))
        talk.owns()
        assert talk.beat().member_epoch == -1
        assert talk.is_quiet()
        assert talk.membership.state is ConsumerMemberState.UNSUBSCRIBED
        unsubscribes(talk)
        talk.waits(1_000_000)
        assert talk.is_quiet()
        talk.polls()
        talk.subscribes("t")
        talk.settles(1)

    def test_it_joins_again_when_its_callback_is_over(self) -> None:
        talk = consumer_talk.settled(0)
        unsubscribes(talk)
        talk.wish(a.StopDelivery)
        tell = talk.wish(a.InvokeCallback)
        talk.subscribes("u")
        assert talk.is_quiet()
        talk.completes(tell)
        talk.owns()
        assert talk.beat().member_epoch == -1
        assert talk.beat(epoch=1).subscribed_topic_names == ("u",)

    def test_it_may_be_closed_meanwhile(self) -> None:
        talk = consumer_talk.settled(0)
        unsubscribes(talk)
        talk.wish(a.StopDelivery)
        tell = talk.wish(a.InvokeCallback)
        talk.closes("done")
        talk.completes(tell)
        talk.owns()
        assert talk.beat().member_epoch == -1
        talk.wish(a.MembershipEnded)
        assert talk.is_quiet()

    def test_its_goodbye_is_awaited_when_it_is_closed(self) -> None:
        talk = consumer_talk.settled()
        unsubscribes(talk)
        send, request = talk.sends(ConsumerGroupHeartbeatRequest)
        assert request.member_epoch == -1
        talk.closes()
        assert talk.is_quiet()
        talk.fails(send)
        talk.wish(a.MembershipEnded)

    def test_one_that_is_fenced_loses_what_it_owned_and_does_not_join(self) -> None:
        talk = consumer_talk.settled(0)
        talk.goes_away()
        talk.beat_brings(code=E.FENCED_MEMBER_EPOCH)
        talk.wish(a.StopDelivery)
        unsubscribes(talk)
        talk.wish(a.StopDelivery)
        talk.told("lost", *P(0))
        talk.owns()
        assert talk.is_quiet()
        assert talk.membership.state is ConsumerMemberState.UNSUBSCRIBED

    def test_a_member_that_failed_stays_failed(self) -> None:
        talk = ConsumerTalk()
        talk.find()
        talk.beat(code=E.GROUP_MAX_SIZE_REACHED)
        assert talk.wish(a.RaiseError).final
        unsubscribes(talk)
        assert talk.is_quiet()
        assert talk.membership.state is ConsumerMemberState.FATAL

    def test_it_commits_as_nobody_while_its_user_assigns_partitions(self) -> None:
        talk = ConsumerTalk(topics=())
        assigns_itself(talk)
        talk.find()
        assert talk.membership.commits_as() == NO_GENERATION
        assert talk.membership.fetches_as() is None
        unsubscribes(talk)
        with pytest.raises(CommitFailedError):
            talk.membership.commits_as()
        talk.closes()
        talk.wish(a.MembershipEnded)
