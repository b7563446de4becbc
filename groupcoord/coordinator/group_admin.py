"""DescribeGroups, ListGroups and DeleteGroups. Sources: ``GroupCoordinatorService`` and ``ClassicGroup``."""

from collections.abc import Callable, Iterable

from groupcoord.coordinator import records
from groupcoord.coordinator.append_errors import response_error
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.refusal import Refused, note_refusal
from groupcoord.coordinator.shard import Shard
from groupcoord.core.effects import Call, LogRecord
from groupcoord.core.java import computed_map_order, hash_set_order, string_hash
from groupcoord.core.turn import Turn
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from groupcoord.protocol.messages.delete_groups import DeletableGroupResult
from groupcoord.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from groupcoord.protocol.messages.list_groups import ListedGroup

NOT_FOUND_FROM = 6  # KIP-1043
NOT_ASKED_FOR = -2_147_483_648
ALL_GROUP_OPERATIONS = 3400
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: what anybody may do to a group where nothing is forbidden."""

ShardOf = Callable[[str], Shard]


def describe_groups(shard_of: ShardOf, turn: Turn, call: Call, request: DescribeGroupsRequest) -> None:
    """Answer ``call`` with each group as it is now, partition by partition of ``__consumer_offsets``."""
    answers = tuple(
        _describe(shard.groups.get(group_id), group_id, call, request)
        for shard, group_ids in _by_shard(shard_of, request.groups).items()
        for group_id in group_ids
    )
    turn.reply(call, DescribeGroupsResponse(groups=answers))


def _describe(group: ClassicGroup | None, group_id: str, call: Call, request: DescribeGroupsRequest) -> DescribedGroup:
    operations = ALL_GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED_FOR
    if group is None:
        missing = call.version >= NOT_FOUND_FROM
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE,
            error_message=f"Group {group_id} not found." if missing else None,
            group_id=group_id,
            group_state=GroupState.DEAD,
            protocol_type="",
            protocol_data="",
            members=(),
            authorized_operations=NOT_ASKED_FOR if missing else operations,
        )
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Until a protocol is chosen nobody knows which of a member's metadata counts.
                member_metadata=member.metadata_of(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
        authorized_operations=operations,
    )


def list_groups(shards: Iterable[Shard], turn: Turn, call: Call, request: ListGroupsRequest) -> None:
    """Answer ``call`` with the groups that pass both filters; an unknown state or type matches nothing."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = tuple(
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state,
            group_type="classic",
        )
        for shard in shards
        for group in shard.groups.values()
        if (not states or group.state.lower() in states) and (not types or "classic" in types)
    )
    turn.reply(call, ListGroupsResponse(groups=listed))


def delete_groups(shard_of: ShardOf, turn: Turn, call: Call, request: DeleteGroupsRequest) -> None:
    """Answer ``call`` when every group is deleted or refused; one that fails does not keep the others."""
    by_shard = {
        shard: hash_set_order(group_ids, string_hash)  # Kafka goes through them as a set
        for shard, group_ids in _by_shard(shard_of, dict.fromkeys(request.groups_names)).items()
    }
    answers: dict[str, ErrorCode] = {}

    def finish(later: Turn, codes: dict[str, ErrorCode]) -> None:
        answers.update(codes)
        if len(answers) == sum(map(len, by_shard.values())):
            results = tuple(
                DeletableGroupResult(group_id=group_id, error_code=answers[group_id])
                for group_ids in by_shard.values()
                for group_id in group_ids
            )
            later.reply(call, DeleteGroupsResponse(results=results))

    if not by_shard:
        finish(turn, {})
    for shard, group_ids in by_shard.items():
        _delete(shard, turn, call, group_ids, finish)


def _delete(
    shard: Shard,
    turn: Turn,
    call: Call,
    group_ids: list[str],
    finish: Callable[[Turn, dict[str, ErrorCode]], None],
) -> None:
    codes: dict[str, ErrorCode] = {}
    doomed: list[ClassicGroup] = []
    tombstones: list[LogRecord] = []
    for group_id in group_ids:
        group = shard.groups.get(group_id)
        codes[group_id] = _deletable(group)
        if group is None or codes[group_id]:
            why = "there is no such group" if group is None else f"it has members: it is {group.state}"
            note_refusal(turn, call, group_id, "", Refused(codes[group_id], why))
            continue
        doomed.append(group)
        tombstones += grave(shard, group)

    def stored(later: Turn) -> None:
        for group in doomed:
            bury(shard, later, group, "a client asked for it")
        finish(later, codes)

    def failed(later: Turn, error: ErrorCode) -> None:
        finish(later, dict.fromkeys(group_ids, response_error(error)))

    shard.store(turn, tuple(tombstones), stored, failed)


def grave(shard: Shard, group: ClassicGroup) -> list[LogRecord]:
    """The tombstones of ``group``: one per offset, then its own."""
    pairs = _offsets(shard, group)
    tombstones = [records.offset_tombstone(group.group_id, topic, partition) for topic, partition in pairs]
    return [*tombstones, records.group_tombstone(group.group_id)]


def bury(shard: Shard, turn: Turn, group: ClassicGroup, reason: str) -> None:
    """Forget ``group`` and its offsets: their tombstones are stored. A group that somebody joined meanwhile lives on."""
    pairs = _offsets(shard, group)
    for topic, partition in pairs:
        shard.offsets.remove(group.group_id, topic, partition)
    if pairs:
        turn.note(OffsetsRemoved, group=group.group_id, partitions=pairs, reason=reason)
    if group.state is GroupState.EMPTY:
        shard.drop_group(turn, group, reason)


def _offsets(shard: Shard, group: ClassicGroup) -> tuple[tuple[str, int], ...]:
    offsets = shard.offsets.of_group(group.group_id)
    return tuple((topic, partition) for topic, partitions in offsets for partition, _ in partitions)


def _deletable(group: ClassicGroup | None) -> ErrorCode:
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


def _by_shard(shard_of: ShardOf, group_ids: Iterable[str]) -> dict[Shard, list[str]]:
    """The groups of each shard; shards in the order of a Java map whose keys are the partitions of ``__consumer_offsets``."""
    asked = [(shard_of(group_id), group_id) for group_id in group_ids]
    by_shard: dict[Shard, list[str]] = {
        shard: [] for shard in computed_map_order((shard for shard, _ in asked), _topic_partition_hash)
    }
    for shard, group_id in asked:
        by_shard[shard].append(group_id)
    return by_shard


def _topic_partition_hash(shard: Shard) -> int:
    """``TopicPartition.hashCode``."""
    return 31 * (31 + shard.partition) + _OFFSETS_TOPIC_HASH


_OFFSETS_TOPIC_HASH = string_hash("__consumer_offsets")
