import pytest

from tests.broker.data_plane import THEN_MS, DataPlane, batch


@pytest.fixture
def plane() -> DataPlane:
    """A topic ``orders`` with five records in partition 0, a hundred milliseconds apart."""
    made = DataPlane()
    made.topic("orders", 2)
    for index in range(5):
        made.produced("orders", batch(b"x", at_ms=THEN_MS + 100 * index))
    return made
