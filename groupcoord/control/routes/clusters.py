"""Routes of clusters, of one broker or several, which the paths call brokers: create, delete, show, stop, restart and reset
one; and the health check. Single brokers of a cluster are in ``nodes``."""

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Annotated

from fastapi import Path, Query
from fastapi.responses import PlainTextResponse

from groupcoord.control.controlled_clusters import ControlledCluster, taken
from groupcoord.control.models import Broker, Clock, GroupState, Health, NewBroker, Problems, Status
from groupcoord.control.problem_documents import ProblemError, argument_named, in_terms_of_http, responses
from groupcoord.control.route_dependencies import BODY, CONFLICT, TEXT, Clusters, Target, router
from groupcoord.testing.cluster_group import group_description
from groupcoord.testing.topic_settings import Topic

of_process = router("brokers")
"""Operations that are not about one broker."""
AT_ROOT = {"servers": [{"url": "/"}]}
"""For operations that do not exist under /brokers/NAME."""
of_broker = router("broker")

BrokerName = Annotated[str, Path(description="the name of the broker")]


def status_of(cluster: ControlledCluster) -> Status:
    """The status of ``cluster``: its addresses, clock, topics and groups."""
    groups = cluster.group_names()
    return Status(
        version=version("groupcoord"),
        name=cluster.name,
        state="up" if cluster.is_up else "stopped",
        address=cluster.address,
        brokers=[Broker.model_validate(each) for each in cluster.brokers.values()],
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
    """The clock of ``cluster``."""
    return Clock(mode=cluster.mode, now_ms=cluster.clock.now_ms(), speed=cluster.speed)


@of_process.get("/health", openapi_extra=AT_ROOT, summary="Check that the server is up; needs no token")
async def health() -> Health:
    """For health checks of containers, and scripts that wait until the server is up."""
    return Health()


@of_process.get("/brokers", openapi_extra=AT_ROOT, summary="List the brokers")
async def list_brokers(clusters: Clusters) -> list[Status]:
    """The first one is called ``default``."""
    return [status_of(cluster) for cluster in clusters]


@of_process.post(
    "/brokers",
    openapi_extra=AT_ROOT,
    status_code=201,
    summary="Create one more broker, with a port of its own",
    responses=BODY | responses(409, 503),
)
async def create_broker(body: NewBroker, clusters: Clusters) -> Status:
    """It shares nothing with the others, so that tests that run at the same time do not interfere.

    Every path also exists under ``/brokers/NAME`` and is then about that broker.
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


@of_process.delete("/brokers/{name}", openapi_extra=AT_ROOT, summary="End and delete a broker", responses=CONFLICT)
async def delete_broker(name: BrokerName, clusters: Clusters) -> Problems:
    """Its port is free then. The first broker ends only with the process. Returns the same as ``/check``."""
    return Problems(problems=await clusters.remove(name))


@of_process.get("/brokers/{name}", openapi_extra=AT_ROOT, summary="Show a broker")
async def show_broker(name: BrokerName, clusters: Clusters) -> Status:
    """The same as ``/brokers/NAME/status``."""
    return status_of(clusters[name])


@of_broker.get("/", include_in_schema=False)
@of_broker.get("/status", summary="Show the broker's addresses, clock, topics and groups")
async def status(cluster: Target) -> Status:
    """Addresses, clock, topics, groups, and what groups and transactions wait for."""
    return status_of(cluster)


@of_broker.get("/report", summary="Show the report of a failed test", response_class=PlainTextResponse, responses=TEXT)
async def report(
    cluster: Target, after: int = Query(0, ge=0, description="begin after the trace entry with this number")
) -> str:
    """The groups and why they are in their states, what they wait for, which rules acted, and the end of the trace."""
    return in_terms_of_http(cluster.report(after=after))


@of_broker.post("/check", summary="Return what should fail a test")
async def check(cluster: Target) -> Problems:
    """Unexpected errors of the server, each reported once, and fault and append rules that should have acted and never did."""
    return Problems(problems=await cluster.problems())


@of_broker.post(
    "/reset", summary="Replace the broker by a fresh one at the same address", responses=responses(409, 503)
)
async def reset(cluster: Target) -> Problems:
    """It has the same settings, and only the topics and rules of its start; a manual clock starts again. Connections are
    closed. Takes milliseconds. Returns what ``/check`` would have returned.

    A broker with ``--data-dir`` cannot be reset: 409.
    """
    async with cluster.changing:
        problems = await cluster.problems()
        await _listening(cluster.reset)
    return Problems(problems=problems)


@of_broker.post("/stop", status_code=204, summary="Stop the broker: close its port and all connections")
async def stop(cluster: Target) -> None:
    """Its logs are kept, and its clock goes on. ``/restart`` starts it again."""
    async with cluster.changing:
        await cluster.stop()


@of_broker.post("/restart", summary="Stop the broker, and start it again on the same port", responses=responses(503))
async def restart(cluster: Target) -> Status:
    """Groups and transactions are loaded from the logs."""
    async with cluster.changing:
        await _listening(cluster.restart)
    return status_of(cluster)


async def _listening(begin: Callable[[], Awaitable[None]]) -> None:
    try:
        await begin()
    except OSError as error:
        raise ProblemError(503, taken(error)) from error
