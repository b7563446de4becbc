"""Random histories of groups for the server-side assignors, with the assignments that Kafka's own classes compute for them.

`make assignor-vectors` writes ``server-side-vectors.json`` anew.
"""

import base64
import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Protocol

from groupcoord.assignors.json_cases import spec_of
from groupcoord.assignors.server_side import SERVER_ASSIGNORS
from tests.real_kafka.kafka_java import libs_of, why_not

FOLDER = Path(__file__).parent
VECTORS = FOLDER / "server-side-vectors.json"
LIBS = libs_of("4.3.1")
Case = dict[str, Any]


class Ask(Protocol):
    """Answers a case: ``expected``, member → topic → partitions, or ``expected_error``."""

    def __call__(self, case: Case) -> Case: ...


@contextmanager
def kafkas_classes() -> Iterator[Ask]:
    """Kafka's own classes, in a process of Java for as long as the context lasts."""
    command = ["java", "-cp", f"{LIBS}/*", str(FOLDER / "ServerSideAnswers.java")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def ask(case: Case) -> Case:
            asked.write(json.dumps(case) + "\n")
            asked.flush()
            answer: Case = json.loads(answers.readline())
            return answer

        yield ask
        asked.close()


def why_no_classes() -> str | None:
    """Why Kafka's classes cannot be asked here, or None."""
    java = shutil.which("java")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr if java else ""
    return why_not(LIBS, java, said)


def life(seed: int, ask: Ask, *, steps: int, most: int = 30) -> Iterator[Case]:
    """The cases of one group's life, each with its answer; what is answered is what the members have in the next.

    ``most``: how many members there are at most, and how many partitions a topic has.
    """
    chance = Random(seed)
    group = _Group(chance, most)
    for step in range(steps):
        if step:
            group.change()
        case = {"id": f"{seed}-{step}", **group.case()}
        answer = ask(case)
        yield {**case, **{name: answer[name] for name in ("expected", "expected_error") if name in answer}}
        group.take_over(answer.get("expected", {}))


def check(case: Case) -> None:
    """This project's answer is Kafka's, in the order in which Kafka's maps have it."""
    spec, names = spec_of(case)
    try:
        target = SERVER_ASSIGNORS[case["assignor"].removeprefix("server-")](spec)
    except Exception as failure:
        name = getattr(failure, "exception", type(failure).__name__)
        assert {"PartitionAssignorError": "PartitionAssignorException"}.get(name, name) == case.get("expected_error")
        return
    assert sorted(target) == sorted(case["expected"])
    before = {member["id"]: member["assigned"] for member in case["members"]}
    for member_id, topics in case["expected"].items():
        given = {names[topic_id]: list(partitions) for topic_id, partitions in target[member_id].items()}
        if same(topics, before[member_id]):  # Kafka writes no record for it, so that its order never shows
            assert same(given, topics)
        else:
            assert list(given.items()) == list(topics.items())


def same(one: dict[str, list[int]], other: dict[str, list[int]]) -> bool:
    """Do both hold the same partitions, in whatever order?"""
    return {topic: set(given) for topic, given in one.items()} == {topic: set(given) for topic, given in other.items()}


class _Group:
    def __init__(self, chance: Random, most: int) -> None:
        self._chance = chance
        self._most = most
        self._assignor = chance.choice(["uniform", "uniform", "simple", "simple", "range", "range"])
        self._alike = chance.random() < 0.35
        self._strict = chance.random() < 0.9
        self._ids: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._unknown = chance.choice([0, 0, 1, 3])
        for _ in range(chance.choice([1, 2, 3, 5, 14])):
            self._add_topic()
        self._wanted = self._wish()
        self._members: dict[str, Case] = {}
        for _ in range(chance.randint(0, chance.choice([3, 8, most]))):
            self._join()

    def change(self) -> None:
        """One thing or several happen to the group."""
        chance = self._chance
        for _ in range(chance.choice([1, 1, 1, 2, 4])):
            what = chance.random()
            if what < 0.35 or not self._members:
                self._join()
            elif what < 0.6:
                del self._members[chance.choice(list(self._members))]
            elif what < 0.75:
                self._wanted = self._wish()
                changed = list(self._members) if self._alike else [chance.choice(list(self._members))]
                for member_id in changed:
                    self._members[member_id]["topics"] = list(self._wanted if self._alike else self._wish())
            elif what < 0.9 and self._counts:
                self._counts[chance.choice(list(self._counts))] += chance.randint(1, 4)
            else:
                self._add_topic()

    def case(self) -> Case:
        names = [{*member["topics"]} for member in self._members.values()]
        alike = all(wanted == names[0] for wanted in names)
        used = {topic for member in self._members.values() for topic in [*member["topics"], *member["assigned"]]}
        case: Case = {
            "assignor": f"server-{self._assignor}",
            "subscription_type": "HOMOGENEOUS" if alike else "HETEROGENEOUS",
            "partitions_per_topic": {topic: count for topic, count in self._counts.items() if topic in used},
            "topic_ids": {topic: known for topic, known in self._ids.items() if topic in used},
            "members": [{"id": member_id, **member} for member_id, member in self._members.items()],
        }
        if self._assignor == "simple" and self._chance.random() < 0.3:
            case["assignable"] = {
                topic: [partition for partition in range(count) if self._chance.random() < 0.9]
                for topic, count in case["partitions_per_topic"].items()
            }
        return case

    def take_over(self, target: dict[str, dict[str, list[int]]]) -> None:
        """From now on the members have ``target``; in some groups they have what no coordinator would let them have."""
        for member_id, topics in target.items():
            if not same(topics, self._members[member_id]["assigned"]):
                self._members[member_id]["assigned"] = topics
            if not self._strict:
                self._members[member_id]["assigned"] = {
                    topic: self._chance.sample(range(count), self._chance.randint(0, count))
                    for topic, count in self._counts.items()
                    if self._chance.random() < 0.5
                }

    def _add_topic(self) -> None:
        name = f"t{len(self._ids)}"
        self._ids[name] = base64.urlsafe_b64encode(self._chance.randbytes(16)).decode().rstrip("=")
        self._counts[name] = self._chance.randint(0, self._chance.choice([3, 8, self._most]))

    def _wish(self) -> list[str]:
        return self._chance.sample(
            list(self._counts), self._chance.randint(0 if self._chance.random() < 0.1 else 1, len(self._counts))
        )

    def _join(self) -> None:
        chance = self._chance
        if len(self._members) >= self._most:
            return
        member: Case = {"topics": list(self._wanted) if self._alike else self._wish(), "assigned": {}}
        if self._unknown:
            member["unknown_topics"] = self._unknown if self._alike else chance.randint(0, self._unknown)
        if chance.random() < 0.2:
            member["instance_id"] = f"i{chance.randrange(1 << 20)}"
            left = [member_id for member_id, one in self._members.items() if "instance_id" in one]
            if left and chance.random() < 0.5:  # a static member comes back with another id
                replaced = self._members.pop(chance.choice(left))
                member["instance_id"], member["assigned"] = replaced["instance_id"], replaced["assigned"]
        self._members[f"m{chance.randrange(1 << 24):x}"] = member


def write_vectors(seeds: Iterable[int], steps: int) -> None:
    """Ask Kafka's classes about small groups, and write down what they say."""
    with kafkas_classes() as ask:
        cases = [case for seed in seeds for case in life(seed, ask, steps=steps, most=8)]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    VECTORS.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    write_vectors(
        [*range(76), 133, 205, 387, 735], 5
    )  # the last four: Kafka fails, or shares a partition twice with one
