"""The controller of a test's cluster that dies, pauses and comes back: what waits for it, what goes on, and what it makes of
brokers that failed meanwhile."""

import asyncio
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.leader_election_and_isr import NO_LEADER, PartitionState
from groupcoord.client.zookeeper_paths_reader import METADATA_QUORUM
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import CreateTopicsRequest, InitProducerIdRequest, MetadataRequest
from tests.testing import producing
from tests.testing.producing import outcome

asynchronous = pytest.mark.asyncio
SESSION_S, LAG_S, FORWARDING_S, REGISTRATION_S = 9.0, 30.0, 60.0, 60.0


def trio(**config: Any) -> gc.Cluster:
    given = {"default.replication.factor": 3, "offsets.topic.num.partitions": 3, **config}
    return gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}, config=given)


def state(kafka: gc.Cluster) -> PartitionState:
    return kafka.core.broker.topics["orders"].metadata.partitions[0]


async def produce(kafka: gc.Cluster, *, timeout_ms: int = 600_000) -> "asyncio.Task[Any]":
    return await producing.produce(kafka, state(kafka).leader, timeout_ms=timeout_ms)


async def begun(kafka: gc.Cluster, broker_id: int, request: Any) -> "asyncio.Task[Any]":
    """A request that may have to wait."""
    asked = asyncio.ensure_future(kafka.ask_broker(broker_id, request))
    await kafka.settle()
    return asked


async def create(kafka: gc.Cluster, broker_id: int, name: str = "fresh") -> "asyncio.Task[Any]":
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return await begun(kafka, broker_id, CreateTopicsRequest(topics=(topic,), timeout_ms=1000))


async def created(asked: "asyncio.Task[Any]") -> str:
    """What came of it, by the name of the error."""
    (topic,) = (await asked).topics
    return ErrorCode(topic.error_code).name


async def ask_about(kafka: gc.Cluster, name: str) -> None:
    """Metadata that creates a topic."""
    wanted = (MetadataRequestTopic(name=name),)
    await kafka.ask_broker(1, MetadataRequest(topics=wanted, allow_auto_topic_creation=True))


# --- what waits, and what goes on


@asynchronous
async def test_what_needs_the_controller_waits_for_a_minute() -> None:
    async with trio() as kafka:
        await kafka.controller.kill()
        first = await create(kafka, 1)
        await kafka.clock.advance(FORWARDING_S / 2)
        second = await create(kafka, 2)
        await kafka.clock.advance(FORWARDING_S / 2)
        assert (await created(first), second.done()) == ("REQUEST_TIMED_OUT", False)
        await kafka.clock.advance(FORWARDING_S / 2)
        assert await created(second) == "REQUEST_TIMED_OUT"
        assert "fresh" not in kafka.core.broker.topics


@asynchronous
@pytest.mark.parametrize(("goes", "comes"), [("kill", "start"), ("pause", "resume")])
async def test_what_waits_is_answered_when_the_controller_is_back(goes: str, comes: str) -> None:
    async with trio() as kafka:
        await getattr(kafka.controller, goes)()
        waiting = await create(kafka, 1)
        await kafka.clock.advance(FORWARDING_S - 1)
        assert not waiting.done()
        await getattr(kafka.controller, comes)()
        assert await created(waiting) == "NONE"
        assert not [each for each in kafka.clock.deadlines(everything=True) if each.kind == "forwarded request"]


@asynchronous
async def test_what_a_broker_was_asked_that_dies_is_forgotten() -> None:
    async with trio() as kafka:
        await kafka.controller.kill()
        dies, lives = await create(kafka, 1, "of-1"), await create(kafka, 2, "of-2")
        await kafka.broker(1).kill()
        await kafka.controller.start()
        assert await created(lives) == "NONE"
        with pytest.raises(ConnectionError):
            await dies
        assert "of-1" not in kafka.core.broker.topics


@asynchronous
async def test_producers_and_groups_go_on() -> None:
    async with trio() as kafka:
        (member,) = await kafka.consumers(1, group="app", topics="orders")
        await kafka.controller.kill()
        assert outcome(await (await produce(kafka))) == ("NONE", 0)
        await kafka.clock.advance(6)
        member.commit({("orders", 0): 1})
        await kafka.settle()
        assert (member.is_stable, await kafka.group("app").offsets()) == (True, {("orders", 0): 1})


@asynchronous
async def test_a_topic_that_clients_asked_about_is_created_when_the_controller_is_back_in_time() -> None:
    async with trio() as kafka:
        await kafka.controller.kill()
        await ask_about(kafka, "early")
        await kafka.clock.advance(FORWARDING_S)
        await ask_about(kafka, "late")
        assert not {"early", "late"} & set(kafka.core.broker.topics.names())
        await kafka.controller.start()
        assert {"early", "late"} & set(kafka.core.broker.topics.names()) == {"late"}
        await kafka.broker(1).cut_off("controller")
        await ask_about(kafka, "cut-off")
        assert "cut-off" not in kafka.core.broker.topics
        await kafka.broker(1).reconnect("controller")
        assert "cut-off" in kafka.core.broker.topics


NEW_PRODUCER = InitProducerIdRequest(
    transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
)


@asynchronous
async def test_a_broker_has_no_more_producer_ids_than_the_controller_gave_it() -> None:
    async with trio() as kafka:
        first = (await kafka.ask_broker(1, NEW_PRODUCER)).producer_id
        await kafka.controller.kill()
        assert (await kafka.ask_broker(1, NEW_PRODUCER)).producer_id == first + 1
        assert (await kafka.ask_broker(2, NEW_PRODUCER)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await kafka.controller.start()
        assert not (await kafka.ask_broker(2, NEW_PRODUCER)).error_code
        await kafka.broker(3).cut_off("controller")
        assert (await kafka.ask_broker(3, NEW_PRODUCER)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@asynchronous
async def test_a_broker_has_asked_for_more_producer_ids_when_a_tenth_of_them_is_left() -> None:
    async with trio() as kafka:
        ids = [kafka.core.broker.new_producer_id() for _ in range(901)]
        of_another = kafka.core.broker.new_producer_id(1)
        await kafka.controller.kill()
        ids += [kafka.core.broker.new_producer_id() for _ in range(1099)]
        assert ids == [*range(1000), *range(1000, 2000)]
        assert of_another == 2000
        assert (await kafka.ask_broker(1, NEW_PRODUCER)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@asynchronous
async def test_who_is_cut_off_from_the_controller_waits_for_it_too() -> None:
    async with trio() as kafka:
        await kafka.broker(2).cut_off("controller")
        waiting = await create(kafka, 2)
        assert (await created(await create(kafka, 1, "other")), waiting.done()) == ("NONE", False)
        await kafka.broker(2).reconnect("controller")
        assert await created(waiting) == "NONE"
        await kafka.broker(3).cut_off("controller")
        waiting = await create(kafka, 3, "too-late")
        await kafka.clock.advance(FORWARDING_S)
        assert await created(waiting) == "REQUEST_TIMED_OUT"


# --- the quorum


@asynchronous
async def test_a_controller_that_starts_again_is_elected_in_the_next_epoch() -> None:
    async with trio() as kafka:
        before = kafka.core.controller.quorum.log_end_offset(kafka.clock.now_ms())
        await kafka.controller.kill()
        assert (kafka.controller.state, kafka.controller.epoch) == ("stopped", 1)
        assert repr(kafka.controller) == "<ControllerHandle 3000, stopped, epoch 1>"
        assert "/controller" not in kafka.registry
        assert kafka.registry["/controller_epoch"] == 1
        await kafka.clock.advance(60)
        await kafka.controller.start()
        quorum = (await kafka.ask_broker(1, METADATA_QUORUM)).topics[0].partitions[0]
        assert (quorum.leader_epoch, quorum.high_watermark) == (2, before + 1)
        assert kafka.registry["/controller"]["brokerid"] == kafka.controller.id == 3000
        changes = [(each.state, each.epoch) for each in kafka.trace.of(gc.events.ControllerStateChanged)]
        assert changes == [("stopped", 1), ("running", 2)]
        assert (
            kafka.trace.of(gc.events.ControllerStateChanged).last.text().endswith("the controller is running (epoch 2)")
        )


@asynchronous
async def test_a_controller_that_was_paused_goes_on_in_its_epoch_and_one_that_was_killed_then_does_not() -> None:
    async with trio() as kafka:
        await kafka.controller.pause()
        await kafka.controller.resume()
        assert (kafka.controller.state, kafka.controller.epoch) == ("running", 1)
        await kafka.controller.pause()
        await kafka.controller.kill()
        await kafka.controller.start()
        assert (kafka.controller.state, kafka.controller.epoch) == ("running", 2)


# --- brokers that fail meanwhile


@asynchronous
async def test_nobody_leads_what_a_broker_led_that_dies_until_its_session_ends_at_the_next_controller() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        await kafka.controller.kill()
        await kafka.broker(leader).kill()
        await kafka.clock.advance(600)
        assert (state(kafka).leader, kafka.broker(leader).is_fenced) == (leader, False)
        await kafka.controller.start()
        await kafka.clock.advance(SESSION_S - 1)
        assert state(kafka).leader == leader
        await kafka.clock.advance(1)
        assert state(kafka).leader not in (leader, NO_LEADER)
        assert kafka.broker(leader).is_fenced


@asynchronous
@pytest.mark.parametrize(("paused_s", "left_s"), [(1.0, 3.0), (600.0, 0.0)])
async def test_a_session_that_had_begun_to_end_goes_on_at_a_controller_that_was_paused(
    paused_s: float, left_s: float
) -> None:
    async with trio() as kafka:
        broker = kafka.broker(state(kafka).leader)
        await broker.kill()
        await kafka.clock.advance(5)
        await kafka.controller.pause()
        await kafka.clock.advance(paused_s)
        assert not broker.is_fenced
        await kafka.controller.resume()
        assert broker.is_fenced is (left_s == 0)
        await kafka.clock.advance(left_s)
        assert broker.is_fenced


@asynchronous
async def test_acks_all_waits_for_a_follower_that_is_gone_until_the_controller_takes_it_out_of_the_isr() -> None:
    async with trio() as kafka:
        dead = state(kafka).replicas[1]
        await kafka.controller.kill()
        await kafka.broker(dead).kill()
        in_vain, waiting = await produce(kafka, timeout_ms=5000), await produce(kafka)
        await kafka.clock.advance(LAG_S * 2)
        assert (outcome(await in_vain)[0], waiting.done(), len(state(kafka).isr)) == ("REQUEST_TIMED_OUT", False, 3)
        await kafka.controller.start()
        assert outcome(await waiting) == ("NONE", 1)
        assert dead not in state(kafka).isr


@asynchronous
async def test_a_follower_that_is_back_before_the_controller_stays_in_the_isr() -> None:
    async with trio() as kafka:
        paused = state(kafka).replicas[1]
        await kafka.broker(paused).pause()
        await kafka.controller.kill()
        waiting = await produce(kafka)
        await kafka.clock.advance(LAG_S * 2)
        await kafka.broker(paused).resume()
        assert outcome(await waiting) == ("NONE", 0)
        await kafka.controller.start()
        await kafka.clock.advance(LAG_S)
        assert paused in state(kafka).isr


@asynchronous
async def test_a_follower_that_has_caught_up_is_in_the_isr_when_the_controller_is_back() -> None:
    async with trio() as kafka:
        slow = state(kafka).replicas[1]
        await kafka.broker(slow).pause_replication()
        waiting = await produce(kafka)
        await kafka.clock.advance(LAG_S)
        assert outcome(await waiting) == ("NONE", 0)
        await kafka.controller.kill()
        await kafka.broker(slow).resume_replication()
        assert slow not in state(kafka).isr
        await kafka.controller.start()
        assert slow in state(kafka).isr


@asynchronous
async def test_a_broker_that_starts_is_let_in_by_the_next_controller_when_its_session_has_ended() -> None:
    async with trio() as kafka:
        await kafka.controller.kill()
        await kafka.broker(2).kill()
        await kafka.broker(2).start()
        assert kafka.broker(2).state == "starting"
        await kafka.controller.start()
        assert kafka.trace.of(gc.events.RegistrationRefused).last.broker == 2
        await kafka.clock.advance(SESSION_S)
        assert (kafka.broker(2).state, kafka.broker(2).is_fenced) == ("running", False)
        await kafka.clock.advance(REGISTRATION_S)
        assert kafka.broker(2).state == "running"


@asynchronous
async def test_a_broker_that_was_fenced_is_let_in_at_once_by_the_next_controller() -> None:
    async with trio() as kafka:
        await kafka.broker(2).stop()
        await kafka.controller.kill()
        await kafka.broker(2).start()
        assert (kafka.broker(2).state, kafka.broker(2).is_fenced) == ("starting", True)
        await kafka.controller.start()
        assert (kafka.broker(2).state, kafka.broker(2).is_fenced) == ("running", False)
        assert set(state(kafka).isr) == {1, 2, 3}


@asynchronous
async def test_a_broker_that_cannot_register_for_a_minute_ends_and_can_be_started_again() -> None:
    async with trio() as kafka:
        await kafka.controller.kill()
        await kafka.broker(2).kill()
        await kafka.broker(2).start()
        await kafka.clock.advance(REGISTRATION_S - 1)
        assert kafka.broker(2).state == "starting"
        await kafka.clock.advance(1)
        assert kafka.broker(2).state == "stopped"
        with pytest.raises(ConnectionError):
            await kafka.ask_broker(2, MetadataRequest(topics=()))
        await kafka.broker(2).start()
        await kafka.broker(2).kill()
        await kafka.clock.advance(REGISTRATION_S)
        await kafka.broker(2).start()
        await kafka.controller.start()
        await kafka.clock.advance(SESSION_S)
        assert len((await kafka.ask_broker(2, MetadataRequest(topics=()))).brokers) == 3


@asynchronous
async def test_a_fenced_broker_that_goes_on_leads_nothing_until_the_controller_is_back() -> None:
    async with trio(**{"default.replication.factor": 1}) as kafka:
        broker = kafka.broker(state(kafka).leader)
        await broker.pause()
        await kafka.clock.advance(SESSION_S)
        await kafka.controller.pause()
        await broker.resume()
        assert (broker.state, broker.is_fenced, state(kafka).leader) == ("running", True, NO_LEADER)
        await kafka.controller.resume()
        assert (broker.state, broker.is_fenced, state(kafka).leader) == ("running", False, broker.id)


@asynchronous
async def test_the_next_controller_hears_nothing_of_who_is_cut_off_from_it_unknown_to_it_or_stopped() -> None:
    async with trio() as kafka:
        await kafka.broker(1).unregister()
        await kafka.broker(2).cut_off("controller")
        await kafka.broker(3).stop()
        await kafka.controller.kill()
        await kafka.clock.advance(SESSION_S)
        assert not kafka.broker(2).is_fenced
        await kafka.controller.start()
        await kafka.clock.advance(SESSION_S)
        assert kafka.broker(2).is_fenced
        assert (kafka.broker(1).is_registered, kafka.broker(3).state) == (False, "stopped")
        await kafka.broker(2).reconnect("controller")
        assert not kafka.broker(2).is_fenced


@asynchronous
async def test_preferred_leaders_lead_again_by_the_intervals_of_the_next_controller() -> None:
    async with trio(**{"leader.imbalance.check.interval.seconds": 100}) as kafka:
        preferred, other, _ = state(kafka).replicas
        await kafka.broker(preferred).stop()
        await kafka.broker(preferred).start()
        assert state(kafka).leader == other
        await kafka.controller.kill()
        await kafka.clock.advance(150)
        await kafka.controller.start()
        await kafka.clock.advance(99)
        assert state(kafka).leader == other
        await kafka.clock.advance(1)
        assert state(kafka).leader == preferred


@asynchronous
async def test_a_wait_that_is_in_vain_without_a_controller_says_so() -> None:
    async with trio() as kafka:
        await kafka.broker(2).kill()
        await kafka.controller.kill()
        with pytest.raises(gc.testing.WaitTimeoutError) as waited:
            await kafka.broker(2).wait_fenced(timeout=0.01)
        assert "the controller is stopped: it fences and elects nobody, and lets nobody in" in str(waited.value)


# --- what cannot be done


@asynchronous
async def test_what_the_controller_cannot_do_in_its_state_is_said() -> None:
    async with trio() as kafka:
        for action in ("start", "resume"):
            with pytest.raises(ValueError, match="the controller is running: it cannot be"):
                await getattr(kafka.controller, action)()
        await kafka.controller.kill()
        for action in ("kill", "pause", "resume"):
            with pytest.raises(ValueError, match="the controller is stopped: it cannot be"):
                await getattr(kafka.controller, action)()
        await kafka.controller.start()
        await kafka.controller.pause()
        for action in ("pause", "start"):
            with pytest.raises(ValueError, match="the controller is paused: it cannot be"):
                await getattr(kafka.controller, action)()


@asynchronous
async def test_what_cannot_be_done_without_a_controller_is_said() -> None:
    async with trio() as kafka:
        leader, follower, other = state(kafka).replicas
        await kafka.broker(other).cut_off("controller")
        await kafka.controller.kill()
        for act, reason in (
            (kafka.broker(2).stop(), "broker 2 would wait for it, and serve on: kill it"),
            (kafka.broker(2).unregister(), "nobody unregisters broker 2"),
            (kafka.broker(leader).cut_off("controller"), f"broker {leader} does not reach it anyway"),
            (
                kafka.broker(other).reconnect("controller"),
                f"start it before broker {other} is connected to it again",
            ),
            (
                kafka.move_leader("orders", 0, follower),
                f"nobody decides that broker {follower} leads orders-0",
            ),
            (kafka.create_topic("more"), "nobody creates more"),
            (kafka.add_partitions("orders", 1), "nobody adds partitions to orders"),
            (kafka.delete_topic("orders"), "nobody deletes orders"),
        ):
            with pytest.raises(ValueError, match=f"the controller does not run: {reason}"):
                await act
        with pytest.raises(ValueError, match="broker 2 is running: it cannot be started"):
            await kafka.broker(2).start()


@asynchronous
async def test_a_lone_broker_is_its_own_controller() -> None:
    async with gc.Cluster(clock="manual") as kafka:
        assert (kafka.controller.id, kafka.controller.state) == (1, "running")
        with pytest.raises(ValueError, match="a lone broker has no others that go on without it"):
            await kafka.controller.kill()


def test_the_controller_without_await() -> None:
    with trio().sync() as kafka:
        kafka.controller.kill()
        assert kafka.controller.state == "stopped"
        kafka.controller.start()
        assert kafka.controller.epoch == 2
