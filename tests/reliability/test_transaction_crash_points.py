"""A short history of transactions dies at its file operations; and an attack notices a transaction that is not whole."""

import random
from pathlib import Path

import pytest

from groupcoord.coordinator.transaction.metadata import TransactionData, TransactionMetadata
from groupcoord.coordinator.transaction.transaction_coordinator_shard import TransactionCoordinatorShard
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.transaction_verification_types import TopicPartition
from tests.reliability import exactly_once
from tests.reliability.crash_points import KINDS, fault_at, operations, try_point
from tests.reliability.transaction_crash_points import TransactionHistory, attack

pytestmark = pytest.mark.slow


STEPS = 30
SHARES, STRIDE = 2, 90


@pytest.mark.parametrize("share", range(SHARES))
def test_whatever_happens_no_transaction_is_lost_or_read_in_part(tmp_path: Path, share: int) -> None:
    directory, history = tmp_path / "data", "short.1"
    rng = random.Random(share)
    count = operations(directory, history, STEPS, TransactionHistory)
    assert count > 200
    for at in range(1 + share * STRIDE // SHARES, count + 1, STRIDE):
        kind = rng.choice(KINDS)
        fault = fault_at(at, kind, rng)
        power_cut = kind == "power cut"
        tell = TransactionHistory
        assert try_point(directory, history, fault, rng, power_cut=power_cut, steps=STEPS, tell=tell) is None


def test_a_partition_that_is_never_told_the_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = TransactionCoordinatorShard._tell

    def tell_only_one(
        machine: TransactionCoordinatorShard,
        ctx: HandlerContext,
        metadata: TransactionMetadata,
        complete: TransactionData,
        partitions: tuple[TopicPartition, ...],
    ) -> None:
        for partition in partitions[1:]:
            metadata.without_partition(partition)
        tell(machine, ctx, metadata, complete, partitions[:1])

    monkeypatch.setattr(TransactionCoordinatorShard, "_tell", tell_only_one)
    monkeypatch.setattr(exactly_once, "PATIENCE_SECONDS", 0.1)
    problems = attack(20, 3).problems
    assert problems
    assert problems[0].startswith("history 3.1, ")
