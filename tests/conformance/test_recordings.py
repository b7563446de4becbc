"""Every story, told to groupcoord on a virtual clock, against what a real broker did when it was recorded.

What differs is printed as the first step that does, with the request and each field.
"""

import pytest

from tests.conformance.faults import FAULTS, SOURCES, Fault
from tests.conformance.replay import differs
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales

pytestmark = pytest.mark.minutes(1)

SLOW = {"transactions_exhausted"}
"""Topics whose stories ask a hundred thousand times."""
TALES = [
    pytest.param(tale, id=f"{tale.topic}.{tale.name}", marks=[pytest.mark.slow] if tale.topic in SLOW else [])
    for tale in all_tales()
]


@pytest.mark.parametrize("tale", TALES)
def test_groupcoord_does_what_kafka_did(tale: Tale) -> None:
    assert not (lines := differs(tale)), "\n".join(lines)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.so)
def test_every_deliberate_fault_has_its_place(fault: Fault) -> None:
    assert (SOURCES / fault.file).read_text(encoding="utf-8").count(fault.right) == 1
    assert fault.story in {tale.name for tale in all_tales()}
