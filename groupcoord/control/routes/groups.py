"""Routes of groups: their state, members, offsets and lag, waiting for a state, and forced events (expire a member, rebalance,
unload or move the coordinator)."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path, Query

from groupcoord.assignors import TopicPartition
from groupcoord.control.models import (
    Group,
    InstanceId,
    Lag,
    Member,
    MemberName,
    NewCoordinator,
    Offset,
    Offsets,
    Reason,
)
from groupcoord.control.problem_documents import ProblemError, wrong_argument
from groupcoord.control.route_dependencies import (
    BODY,
    CONFLICT,
    WAITS,
    Target,
    Timeout,
    partition_of,
    require_one_of,
    router,
    waited,
)
from groupcoord.testing.cluster_group import ClusterGroup

groups = router("groups")

GroupName = Annotated[str, Path(description="group.id")]


def _answer(group: ClusterGroup) -> Group:
    return Group.model_validate(group.description())


@groups.get("/groups", summary="List the groups")
async def list_groups(cluster: Target) -> list[Group]:
    """All groups, sorted by name."""
    return [_answer(cluster.group(name)) for name in cluster.group_names()]


@groups.get("/groups/{group:name}", summary="Show a group")
async def show_group(group: GroupName, cluster: Target) -> Group:
    """Its state and its members; the state is ``Dead`` if the group does not exist, as in Kafka."""
    return _answer(cluster.group(group))


@groups.delete("/groups/{group:name}", status_code=204, summary="Delete a group", responses=CONFLICT)
async def delete_group(group: GroupName, cluster: Target) -> None:
    """Its offsets are deleted, too. 409 while it has members."""
    await cluster.group(group).delete()


@groups.get("/groups/{group:name}/members", summary="List the members of a group")
async def list_members(group: GroupName, cluster: Target) -> list[Member]:
    """Each with its assignment."""
    return _answer(cluster.group(group)).members


@groups.get("/groups/{group:name}/offsets", summary="List the committed offsets of a group")
async def list_offsets(group: GroupName, cluster: Target) -> list[Offset]:
    """The committed offsets, as OffsetFetch would return them."""
    return _offsets(await cluster.group(group).offsets())


def _offsets(found: Mapping[TopicPartition, int]) -> list[Offset]:
    return [Offset(topic=topic, partition=number, offset=offset) for (topic, number), offset in sorted(found.items())]


@groups.put(
    "/groups/{group:name}/offsets", summary="Commit offsets for a group without members", responses=BODY | CONFLICT
)
async def commit_offsets(group: GroupName, body: Offsets, cluster: Target) -> list[Offset]:
    """As an administrator does; a group that does not exist is created. Returns all committed offsets of the group."""
    await cluster.group(group).commit({(each.topic, each.partition): each.offset for each in body.offsets})
    return _offsets(await cluster.group(group).offsets())


@groups.delete("/groups/{group:name}/offsets", status_code=204, summary="Delete committed offsets", responses=CONFLICT)
async def delete_offsets(
    group: GroupName,
    cluster: Target,
    partition: Annotated[
        list[str], Query(min_length=1, description="TOPIC:PARTITION, such as orders:0; may be repeated")
    ],
) -> None:
    """It is no error if no offset is committed for a partition."""
    await cluster.group(group).delete_offsets(*(partition_of(text, "partition") for text in partition))


@groups.get("/groups/{group:name}/lag", summary="Show the lag of a group")
async def show_lag(group: GroupName, cluster: Target) -> list[Lag]:
    """For every partition of each topic for which the group has committed offsets or assigned partitions."""
    found = await cluster.group(group).lag()
    return [Lag(topic=topic, partition=number, lag=lag) for (topic, number), lag in sorted(found.items())]


# Waiting.


@groups.get("/groups/{group:name}/wait", summary="Wait for a state of a group", responses=WAITS)
async def wait_group(
    group: GroupName,
    cluster: Target,
    timeout: Timeout,
    stable: Annotated[
        str | None, Query(pattern=r"^(\d+|any)$", description="Stable with so many members; any: with however many")
    ] = None,
    generation: Annotated[
        int | None,
        Query(ge=0, description="in this generation or a later one; alone: that it begins; goes with stable, too"),
    ] = None,
    epoch: Annotated[
        int | None,
        Query(
            ge=0, description="of a consumer group: at this epoch or a later one; goes with stable and reconciled, too"
        ),
    ] = None,
    empty: Annotated[bool, Query(description="it exists and has no members")] = False,
    dead: Annotated[bool, Query(description="there is no such group")] = False,
    rebalancing: Annotated[bool, Query(description="it rebalances")] = False,
    reconciled: Annotated[
        str | None,
        Query(
            description="of a consumer group: these members, with commas between them, have what they should; all: each of them"
        ),
    ] = None,
    committed: Annotated[
        str | None,
        Query(description="TOPIC:PARTITION:OFFSET, such as orders:0:5: that offset or a later one is committed"),
    ] = None,
) -> Group:
    """A long poll: the response comes when the condition holds, with the group as it is then. Give exactly one condition.

    After the timeout the status is 504, and the problem says what the group waits for, and until when. (Not 408, after which
    some HTTP clients repeat the request by themselves.)
    """
    handle = cluster.group(group)
    asked = {
        "stable": stable is not None,
        "reconciled": reconciled is not None,
        "committed": committed is not None,
        "empty": empty,
        "dead": dead,
        "rebalancing": rebalancing,
        "generation": generation is not None and stable is None,
        "epoch": epoch is not None and stable is None and reconciled is None,
    }
    match require_one_of(asked):
        case "stable":
            members = None if stable in (None, "any") else int(stable)
            wait = handle.wait_stable(members, generation=generation, epoch=epoch, timeout=timeout)
        case "reconciled":
            names = [] if reconciled in (None, "all") else reconciled.split(",")
            wait = handle.wait_reconciled(*names, epoch=epoch, timeout=timeout)
        case "committed":
            return await waited(cluster, _wait_committed(handle, committed or "", timeout))
        case "generation":
            wait = handle.wait_generation(generation or 0, timeout=timeout)
        case "epoch":
            wait = handle.wait_epoch(epoch or 0, timeout=timeout)
        case simple:
            wait = getattr(handle, f"wait_{simple}")(timeout=timeout)
    return Group.model_validate(await waited(cluster, wait))


async def _wait_committed(group: ClusterGroup, text: str, timeout: float) -> Group:
    partition, _, offset = text.rpartition(":")
    if not (offset.isascii() and offset.isdecimal()):
        raise ProblemError.of_field("committed", f"{text!r} is no TOPIC:PARTITION:OFFSET, such as orders:0:5")
    await group.wait_committed(*partition_of(partition, "committed"), int(offset), timeout=timeout)
    return _answer(group)


# Acting.


@groups.post(
    "/groups/{group:name}/remove-member",
    summary="Remove a member, as an administrator does, with LeaveGroup",
    responses=BODY | CONFLICT,
)
async def remove_member(group: GroupName, body: MemberName, cluster: Target) -> Group:
    """The member is named by member id, instance id or client id."""
    await cluster.group(group).remove_member(body.member)
    return _answer(cluster.group(group))


@groups.post(
    "/groups/{group:name}/expire-member", summary="Let the session of a member time out now", responses=BODY | CONFLICT
)
async def expire_member(group: GroupName, body: MemberName, cluster: Target) -> Group:
    """The same happens as when its session timer expires."""
    await cluster.group(group).expire_member(body.member)
    return _answer(cluster.group(group))


@groups.post(
    "/groups/{group:name}/fence-member",
    summary="Fence a static member",
    responses=BODY | CONFLICT,
)
async def fence_member(group: GroupName, body: InstanceId, cluster: Target) -> Group:
    """Another member takes over its group.instance.id."""
    await cluster.group(group).fence_member(body.instance_id)
    return _answer(cluster.group(group))


@groups.post(
    "/groups/{group:name}/force-rebalance", summary="Force a rebalance of a classic group", responses=BODY | CONFLICT
)
async def force_rebalance(group: GroupName, cluster: Target, body: Reason | None = None) -> Group:
    """The members have to join again."""
    await cluster.group(group).force_rebalance((body or Reason()).reason)
    return _answer(cluster.group(group))


@groups.post("/groups/{group:name}/unload-coordinator", summary="Unload the coordinator of a group", responses=CONFLICT)
async def unload_coordinator(group: GroupName, cluster: Target) -> Group:
    """All groups of its partition of ``__consumer_offsets`` are unloaded: clients get NOT_COORDINATOR until the coordinator is
    loaded again."""
    await cluster.group(group).unload_coordinator()
    return _answer(cluster.group(group))


@groups.post("/groups/{group:name}/load-coordinator", summary="Load the coordinator of a group", responses=CONFLICT)
async def load_coordinator(group: GroupName, cluster: Target) -> Group:
    """All groups of its partition are loaded from ``__consumer_offsets``."""
    await cluster.group(group).load_coordinator()
    return _answer(cluster.group(group))


@groups.post(
    "/groups/{group:name}/move-coordinator",
    summary="Move the coordinator of a group to another broker",
    responses=BODY | CONFLICT,
)
async def move_coordinator(group: GroupName, body: NewCoordinator, cluster: Target) -> Group:
    """All groups of its partition of ``__consumer_offsets`` move with it."""
    with wrong_argument("to"):
        await cluster.group(group).move_coordinator(body.to)
    return _answer(cluster.group(group))
