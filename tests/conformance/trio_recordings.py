"""Records and compares the responses of three real brokers in the stories of ``trio_stories``.

python -m tests.conformance.trio_recordings [STORY ...]     # record anew: a minute or two for each
"""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import groupcoord as gc
from groupcoord.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.conformance import trio_stories
from tests.conformance.transcript import differences
from tests.conformance.trio_stories import (
    administrators,
    consumers,
    controllers,
    cuts,
    groups,
    producers,
    transactions,
)
from tests.conformance.trio_story import PROPERTIES, Look, TrioStory
from tests.conformance.trios import OwnTrio, RealTrio, Trio, create_topics, real_trio
from tests.conformance.wire import Hungup
from tests.real_kafka.waiting import until

FOLDER = Path(trio_stories.__file__).parent
STORIES: Mapping[str, Any] = {
    module.__name__.rpartition(".")[2]: module
    for module in (controllers, producers, transactions, cuts, groups, consumers, administrators)
}
"""The longest ones first, and administrators last: Kafka's controller does not note for brokers that a change of
min.insync.replicas clears an ELR (ClearElrRecord), and fails when such a topic is deleted and one of them is killed."""
PATIENCE_S = 60.0

Answers = dict[str, Any]


def tell(name: str, trio: Trio, look: Look) -> None:
    """Tell a story. groupcoord has the topics of its coordinators from the beginning: here they are placed by hand."""
    story = STORIES[name]
    internal = tuple(DeleteTopicState(name=topic) for topic in story.TOPICS if topic.startswith("__"))
    trio.ask(1, DeleteTopicsRequest(topics=internal, timeout_ms=9000), 6)
    placed = {topic: brokers for topic, (brokers, _) in story.TOPICS.items()}
    configs = {topic: {"retention.ms": "-1", **configs} for topic, (_, configs) in story.TOPICS.items()}
    topic_ids = create_topics(trio, placed, configs)
    with closing(TrioStory(trio, look, topic_ids)) as told:
        told.partitions("begin", 1, *story.TOPICS)
        story.tell(told)


def told_by_groupcoord(name: str, look: Look) -> None:
    """Tell a story to groupcoord's brokers."""
    with gc.Cluster(brokers=3, clock="manual", config=properties_of(name)).sync() as kafka:
        tell(name, OwnTrio(kafka), look)


def properties_of(name: str) -> Mapping[str, str]:
    """Those of the brokers that a story is told to: new ones, if it has properties of its own."""
    own: Mapping[str, str] = getattr(STORIES[name], "PROPERTIES", PROPERTIES)
    return own


class RealTrios(ExitStack):
    """Real brokers that are told one story after the other, as many trios as there are threads that tell at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._free: SimpleQueue[RealTrio] = SimpleQueue()

    def tell(self, name: str, expected: Answers) -> Answers:
        """See ``told_by_kafka``."""
        if properties_of(name) is not PROPERTIES:
            with real_trio(properties_of(name)) as trio:
                return told_by_kafka(name, trio, expected)
        trio = self.enter_context(real_trio(PROPERTIES)) if self._free.empty() else self._free.get()
        try:
            return told_by_kafka(name, trio, expected)
        finally:
            self._free.put(trio)


def told_by_kafka(name: str, trio: RealTrio, expected: Answers) -> Answers:
    """What real brokers answer from a new beginning; where something has to come about first they are asked until it is as
    ``expected``."""
    seen: Answers = {}

    def look(step: str, find: Callable[[], Any], settles: bool) -> None:
        def is_expected() -> bool:
            try:
                seen[step] = as_recorded(find())
            except (OSError, Hungup) as problem:
                seen[step] = f"{type(problem).__name__}: {problem}"
            return not settles or bool(seen[step] == expected.get(step))

        until(is_expected, PATIENCE_S)

    trio.restore()
    tell(name, trio, look)
    return seen


def as_recorded(answer: Any) -> Any:
    """``answer`` as it comes back from a file."""
    return json.loads(json.dumps(answer))


def recorded(name: str) -> Answers:
    """What three real brokers answered, by step."""
    answers: Answers = json.loads((FOLDER / f"{name}.json").read_text())
    return answers


def record(name: str, trios: RealTrios) -> None:
    """Write down what real brokers answer, and say where groupcoord answers otherwise."""
    ours: Answers = {}

    def look(step: str, find: Callable[[], Any], _settles: bool) -> None:
        ours[step] = as_recorded(find())

    told_by_groupcoord(name, look)
    theirs = trios.tell(name, ours)
    lines = ",\n".join(f" {json.dumps(step)}: {json.dumps(answer)}" for step, answer in theirs.items())
    (FOLDER / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")
    told = [f"{name}: {len(theirs)} steps", *(f"groupcoord: {each}" for each in differences(theirs, ours))]
    sys.stdout.write("\n".join([*told, ""]))


if __name__ == "__main__":
    with RealTrios() as trios:
        for chosen in sys.argv[1:] or STORIES:
            record(chosen, trios)
