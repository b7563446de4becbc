"""A client in a loop, small: the log of one kind of request, in each form."""

from pathlib import Path

import pytest

from tests.reliability.log_flood import LOOPS, flood

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "style"), [("refused heartbeats", "text"), ("joins of new groups", "json")])
def test_the_log_is_bounded_and_every_request_accounted_for(tmp_path: Path, name: str, style: str) -> None:
    size, problems = flood(tmp_path, name, LOOPS[name], 600, style)
    assert problems == []
    assert size > 0
