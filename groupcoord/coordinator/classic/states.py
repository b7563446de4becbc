"""The states of a classic group, which moves between them are legal, and how each state answers each request.

Source: ``org.apache.kafka.coordinator.group.classic.ClassicGroupState``. The wire says the names exactly as written here.
Both tables are what the code and the tests go by: ``may_move`` guards every transition, ``ANSWERS`` is what a member with the
right id and generation gets.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType

from groupcoord.protocol.errors import ErrorCode


class GroupState(enum.StrEnum):
    """Where a group is in the life of a generation."""

    EMPTY = "Empty"
    """No members. May hold offsets, and ids handed out to clients that have yet to come back with them."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for the members to send JoinGroup."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Every JoinGroup is answered; waiting for the leader's SyncGroup to bring the assignment."""
    STABLE = "Stable"
    """The assignment is stored."""
    DEAD = "Dead"
    """No longer coordinated here. On the wire it means that there is no such group."""


_E, _P, _C, _S, _D = GroupState

# to: the states it may come from
_LEGAL: Mapping[GroupState, frozenset[GroupState]] = MappingProxyType(
    {
        _E: frozenset({_P}),
        _P: frozenset({_E, _C, _S}),
        _C: frozenset({_P}),
        _S: frozenset({_C}),
        _D: frozenset({_E, _P, _C, _S, _D}),
    }
)


def may_move(origin: GroupState, target: GroupState) -> bool:
    """May a group go from ``origin`` to ``target``?"""
    return origin in _LEGAL[target]


_OK, _REBALANCING = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS
_UNKNOWN, _GONE = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.COORDINATOR_NOT_AVAILABLE

HEARTBEAT_ANSWERS: Mapping[GroupState, ErrorCode] = MappingProxyType(
    {_E: _UNKNOWN, _P: _REBALANCING, _C: _OK, _S: _OK, _D: _GONE}
)
"""What a member of the current generation is told when it sends a Heartbeat."""

COMMIT_ANSWERS: Mapping[GroupState, ErrorCode] = MappingProxyType(
    {_E: _UNKNOWN, _P: _OK, _C: _REBALANCING, _S: _OK, _D: _GONE}
)
"""What a member of the current generation is told when it commits offsets: in PREPARING_REBALANCE it still may."""
