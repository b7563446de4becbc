"""A command sets up the log of its process, which is that of all other tests, too."""

import pytest


@pytest.fixture(autouse=True)
def log_of_its_own(logging_restored: None) -> None:
    """Each test leaves the log as it was."""
