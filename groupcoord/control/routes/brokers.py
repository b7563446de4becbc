"""Brokers: what one is, and has; further ones beside the first; stopping, starting and resetting them."""

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Annotated

from fastapi import Path, Query
from fastapi.responses import PlainTextResponse

from groupcoord.control.controlled_cluster import ControlledCluster, taken
from groupcoord.control.models import Broker, Clock, GroupState, Health, NewBroker, Problems, Status
from groupcoord.control.problems import ProblemError, argument_named, in_terms_of_http, responses
from groupcoord.control.routing import BODY, CONFLICT, TEXT, Clusters, Target, router
from groupcoord.testing.cluster_group import group_description
from groupcoord.testing.topics import Topic

of_process = router("brokers")
"""Operations that are not about one broker."""
AT_ROOT = {"servers": [{"url": "/"}]}
"""These operations do not exist once more under /brokers/NAME."""
of_broker = router("broker")

BrokerName = Annotated[str, Path(description="what paths call the broker")]


def status_of(cluster: ControlledCluster) -> Status:
    """What ``cluster`` is, and has."""
    groups = cluster.group_names()
    return Status(
        version=version("groupcoord"),
        name=cluster.name,
        state="up" if cluster.is_up else "stopped",
        address=cluster.address,
        brokers=[Broker(id=each.id, address=each.address, rack=each.rack) for each in cluster.brokers.values()],
        listeners=cluster.listener_addresses,
        clock=clock_of(cluster),
        topics=[name for name in cluster.topic_names() if not name.startswith("__")],
        groups=[GroupState(group=name, state=group_description(cluster.core, name).state) for name in groups],
        transactional_ids=cluster.transactional_ids(),
        fault_rules=len(cluster.faults.book.active),
        run=cluster.run,
        last_seq=cluster.trace.last_seq,
        pending=[in_terms_of_http(line) for line in cluster.pending()],
    )


def clock_of(cluster: ControlledCluster) -> Clock:
    """The time of ``cluster``."""
    return Clock(mode=cluster.mode, now_ms=cluster.clock.now_ms(), speed=cluster.speed)


@of_process.get("/health", openapi_extra=AT_ROOT, summary="Say that the process serves; needs no token")
async def health() -> Health:
    """For containers and scripts that wait until it is there."""
    return Health()


@of_process.get("/brokers", openapi_extra=AT_ROOT, summary="List the brokers")
async def list_brokers(clusters: Clusters) -> list[Status]:
    """The first one is called ``default``."""
    return [status_of(cluster) for cluster in clusters]


@of_process.post(
    "/brokers",
    openapi_extra=AT_ROOT,
    status_code=201,
    summary="Make one more broker, with a port of its own",
    responses=BODY | responses(409, 503),
)
async def create_broker(body: NewBroker, clusters: Clusters) -> Status:
    """It has nothing in common with the others: tests that run at the same time do not meet.

    Every path also exists under ``/brokers/NAME``, and then speaks of that broker.
    """
    settings = body.model_dump(exclude={"name", "topics"})
    topics = {name: Topic(wanted.partitions, wanted.configs) for name, wanted in body.topics.items()}
    try:
        cluster = ControlledCluster(body.name or clusters.new_name(), topics=topics, host=clusters.host, **settings)
    except (TypeError, ValueError) as error:
        raise _unlike_a_broker(error) from error
    try:
        await clusters.add(cluster)
    except OSError as error:
        raise ProblemError(503, taken(error)) from error
    return status_of(cluster)


def _unlike_a_broker(error: Exception) -> ProblemError:
    key = getattr(error, "key", None)  # of a ConfigError
    field = f"config.{key}" if key else argument_named(str(error), NewBroker.model_fields, "body")
    return ProblemError.of_field(field, str(error))


@of_process.delete("/brokers/{name}", openapi_extra=AT_ROOT, summary="End a broker, and forget it", responses=CONFLICT)
async def delete_broker(name: BrokerName, clusters: Clusters) -> Problems:
    """Its port is free then. The first one ends with the process. Tells what went wrong in its server that should not have."""
    return Problems(problems=[f"{type(error).__name__}: {error}" for error in await clusters.remove(name)])


@of_process.get("/brokers/{name}", openapi_extra=AT_ROOT, summary="Show a broker")
async def show_broker(name: BrokerName, clusters: Clusters) -> Status:
    """As ``/brokers/NAME/status``."""
    return status_of(clusters[name])


@of_broker.get("/", include_in_schema=False)
@of_broker.get("/status", summary="Show the broker: where it listens, what it has")
async def status(cluster: Target) -> Status:
    """Addresses, clock, topics, groups, and what is pending."""
    return status_of(cluster)


@of_broker.get("/report", summary="Show what a failed test shows", response_class=PlainTextResponse, responses=TEXT)
async def report(
    cluster: Target, after: int = Query(0, ge=0, description="begin behind the entry of the trace with this number")
) -> str:
    """Groups and why they are as they are, what is pending, which rules acted, and the last of what happened."""
    return in_terms_of_http(cluster.report(after=after))


@of_broker.post("/check", summary="Tell what a test should hear of")
async def check(cluster: Target) -> Problems:
    """Errors of the server, which are told once, and rules for faults and appends that never acted and should have."""
    return Problems(problems=await cluster.problems())


@of_broker.post("/reset", summary="Make it a fresh broker at the same address", responses=responses(409, 503))
async def reset(cluster: Target) -> Problems:
    """In milliseconds: its settings, its first topics and its first rules, and nothing else; its clock begins anew if it is
    manual. Connections are closed. Tells what ``/check`` would have told.

    A broker with ``--data-dir`` keeps what it has: 409.
    """
    async with cluster.changing:
        problems = await cluster.problems()
        await _listening(cluster.reset)
    return Problems(problems=problems)


@of_broker.post("/stop", status_code=204, summary="Stop it: close its port and all connections")
async def stop(cluster: Target) -> None:
    """What is stored is kept, and its clock goes on. ``/restart`` starts it again."""
    async with cluster.changing:
        await cluster.stop()


@of_broker.post("/restart", summary="Stop it, and start it again on the same port", responses=responses(503))
async def restart(cluster: Target) -> Status:
    """Groups and transactions are what the logs say."""
    async with cluster.changing:
        await _listening(cluster.restart)
    return status_of(cluster)


async def _listening(begin: Callable[[], Awaitable[None]]) -> None:
    try:
        await begin()
    except OSError as error:
        raise ProblemError(503, taken(error)) from error
