"""Restores the logging set-up after each test, because commands configure the logging of the whole process."""

import pytest


@pytest.fixture(autouse=True)
def log_of_its_own(logging_restored: None) -> None:
    """Each test leaves the log as it was."""
