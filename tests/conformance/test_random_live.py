"""Random stories told to a real broker and to groupcoord: nobody must be able to tell the two apart.

``RANDOM_STORIES`` says how many, ``RANDOM_STORIES_SEED``, a number, which. Without them each run is like the last.
``RANDOM_STORIES_KEEP`` names the folder in which the first story that shows a difference is left; without it that is in
pytest's own for temporary files.
"""

import os
import uuid
from pathlib import Path

import pytest

from tests.conformance.chance import RandomStory, tell_random_stories
from tests.conformance.judging import Judge
from tests.conformance.settings import FAST
from tests.conformance.telling import ready
from tests.conformance.wire import SocketTarget
from tests.conftest import StartRealKafka

pytestmark = pytest.mark.minutes(1)

STORIES = int(os.environ.get("RANDOM_STORIES", "60"))
SEED = int(os.environ.get("RANDOM_STORIES_SEED", "0"))
STEPS = 50 * STORIES
"""With the usual number of stories 3,000; fewer, and the stories are not what they were meant to be."""

SETTLE_MS = 2
"""How long to look for an answer before groupcoord says whether there should be one, see random_stories.py."""


IN_ORDER = {"num.network.threads": "1", "num.io.threads": "1"}
"""Requests of two connections are not to overtake each other inside the broker."""


def judged(bootstrap: str, keep_in: Path) -> Judge:
    """Tell all stories to the broker at ``bootstrap``. Raises AssertionError with a story that shows a difference."""
    broker = SocketTarget.at(bootstrap)
    ready(broker)
    broker.settle_ms = SETTLE_MS
    judge = Judge(broker, f"random{uuid.uuid4().hex[:8]}", keep_in)
    try:
        tell_random_stories(RandomStory, judge.tell, stories=STORIES, chance=SEED)
    except BaseException as problem:  # Hypothesis has an exception of its own for a difference that does not come again
        if judge.differing is None:
            raise
        raise AssertionError(judge.report()) from problem
    return judge


@pytest.mark.slow
def test_nobody_can_tell_the_two_apart_by_chance(start_real_kafka: StartRealKafka, tmp_path: Path) -> None:
    with start_real_kafka({**FAST.properties, **IN_ORDER}) as broker:
        judge = judged(broker.bootstrap_servers, Path(os.environ.get("RANDOM_STORIES_KEEP") or tmp_path))
    assert judge.stories >= STORIES
    assert judge.steps >= STEPS
    for outcome in ("JoinGroup v9: no answer yet", "SyncGroup v5: no answer yet", "Stable with 6", "Empty with 0"):
        assert judge.outcomes[outcome], f"it never came to {outcome}"
