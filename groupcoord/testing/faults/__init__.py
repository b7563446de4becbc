"""Faults as data: rules that say which requests are refused, delayed, lost, held, answered otherwise or damaged.

``kafka.when(Heartbeat, group="app").refuse("REBALANCE_IN_PROGRESS")``: docs/faults.md has the grammar.
"""

from groupcoord.testing.faults.apis import (
    ApiVersions,
    CreatePartitions,
    CreateTopics,
    DeleteGroups,
    DeleteRecords,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
    DescribeGroups,
    Fetch,
    FindCoordinator,
    Heartbeat,
    IncrementalAlterConfigs,
    InitProducerId,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Produce,
    SyncGroup,
)
from groupcoord.testing.faults.asked import TopicsKnown
from groupcoord.testing.faults.damage import Damage
from groupcoord.testing.faults.events import FaultInjected, FaultOver
from groupcoord.testing.faults.face import Faults, Hold, NotArrived
from groupcoord.testing.faults.files import FaultsFileError, NamedRule, faults_from_file
from groupcoord.testing.faults.grammar import when
from groupcoord.testing.faults.installed import FaultRulesFailed, Held, Installed
from groupcoord.testing.faults.match import Match
from groupcoord.testing.faults.node import FaultyNode
from groupcoord.testing.faults.problems import RuleProblems
from groupcoord.testing.faults.rule import Rule
from groupcoord.testing.faults.rulebook import Rulebook
from groupcoord.testing.faults.verdicts import Verdict

__all__ = [
    "ApiVersions",
    "CreatePartitions",
    "CreateTopics",
    "Damage",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteTopics",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeGroups",
    "FaultInjected",
    "FaultOver",
    "FaultRulesFailed",
    "Faults",
    "FaultsFileError",
    "FaultyNode",
    "Fetch",
    "FindCoordinator",
    "Heartbeat",
    "Held",
    "Hold",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "Installed",
    "JoinGroup",
    "LeaveGroup",
    "ListGroups",
    "ListOffsets",
    "Match",
    "Metadata",
    "NamedRule",
    "NotArrived",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Produce",
    "Rule",
    "RuleProblems",
    "Rulebook",
    "SyncGroup",
    "TopicsKnown",
    "Verdict",
    "faults_from_file",
    "when",
]
