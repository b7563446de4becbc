"""Saves a difference between Kafka and groupcoord in a folder, because it may not be reproducible.

A folder has the story as source (``story.py``), what each of the two did in the format of the recordings (``broker.json``,
``groupcoord.json``), and the first step in which they differ (``difference.txt``).
"""

from collections.abc import Sequence
from pathlib import Path

from tests.conformance.pasting import pasted
from tests.conformance.random_stories import Told
from tests.conformance.transcript import Step, from_text, to_text

BROKER, GROUPCOORD, STORY = "broker.json", "groupcoord.json", "story.py"


def keep(folder: Path, theirs: Told, ours: Told, difference: Sequence[str]) -> None:
    """Write the story that the broker told as ``theirs`` and groupcoord as ``ours`` into ``folder``, which is made."""
    folder.mkdir(parents=True)
    for file, told in ((BROKER, theirs), (GROUPCOORD, ours)):
        title = {"story": folder.name, "ids": {str(number): given for number, given in told.ids.items()}}
        (folder / file).write_text(to_text(title, told.steps))
    (folder / STORY).write_text(pasted(theirs.course, folder.name))
    (folder / "difference.txt").write_text("".join(f"{line}\n" for line in difference))


def kept(folder: Path) -> tuple[list[Step], list[Step]]:
    """What the broker did and what groupcoord did, as ``keep`` left it in ``folder``."""
    theirs, ours = (from_text((folder / file).read_text()) for file in (BROKER, GROUPCOORD))
    return theirs, ours
