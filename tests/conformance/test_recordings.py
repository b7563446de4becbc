"""Every story, told to groupcoord on a virtual clock, against what a real broker did when it was recorded.

What differs is printed as the first step that does, with the request and each field.
"""

import re

import pytest

from tests.conformance.faults import FAULTS, SOURCES, Fault
from tests.conformance.replay import differs
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales

pytestmark = pytest.mark.minutes(1)

SLOW = {
    "transactions_exhausted",
    "hostile.frames_that_are_none",
    "transactional_data.an_older_epoch_in_the_log",
    "transactional_lives.transactions_by_chance_0",
    "transactions_fencing.ids_that_are_not_its_own",
    "transactions_fencing.transactional_ids_that_nobody_has",
    "transactions_offsets.adding_offsets_while_a_transaction_ends",
    "transactions_partitions.adding_partitions_after_a_transaction",
    "transactions_timing_out.transactional_ids_are_forgotten",
}
"""Topics whose stories ask a hundred thousand times, and single stories that take more than a quarter of a second."""
LONG = re.compile("by_chance|every_version")
"""What is in the name of a story that asks for long, and mostly for what others ask for too."""


def _is_slow(tale: Tale, name: str) -> bool:
    return bool(SLOW & {tale.topic, name} or LONG.search(name))


TALES = [
    pytest.param(tale, id=name, marks=[pytest.mark.slow] if _is_slow(tale, name) else [])
    for tale in all_tales()
    for name in [f"{tale.topic}.{tale.name}"]
]


@pytest.mark.parametrize("tale", TALES)
def test_groupcoord_does_what_kafka_did(tale: Tale) -> None:
    assert not (lines := differs(tale)), "\n".join(lines)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.so)
def test_every_deliberate_fault_has_its_place(fault: Fault) -> None:
    assert (SOURCES / fault.file).read_text(encoding="utf-8").count(fault.right) == 1
    assert fault.story in {tale.name for tale in all_tales()}
