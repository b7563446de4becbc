"""``groupcoord assign``: shows what partition assignors assign to whom, and what changes when members join or leave."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from groupcoord.assignors.group_simulator import GroupSimulationError, GroupSimulator, RebalanceOutcome
from groupcoord.assignors.json_cases import CaseError, answer_case
from groupcoord.assignors.registry import ASSIGNORS, UnknownAssignorError
from groupcoord.assignors.validation import FaultyAssignorError
from groupcoord.cli.assignment_tables import assignment_table, comparison_table
from groupcoord.cli.main import complain

MOST_PARTITIONS = 10_000_000
"""More than any cluster has, and few enough for memory."""
MOST_MEMBERS = 100_000


class MemberSpec(NamedTuple):
    """A member's name, and the topics to which it subscribes; None: all."""

    name: str
    topics: tuple[str, ...] | None


class MemberChange(NamedTuple):
    """``what`` happens: join, leave or then; and ``who`` it is."""

    what: str
    who: MemberSpec | None


class _Note(argparse.Action):
    """Keeps --leave, --join and --then in the order in which they were given."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: object) -> None:
        """Append the change to the story."""
        del parser
        who = values if isinstance(values, MemberSpec) else None
        namespace.story = [*(namespace.story or []), MemberChange(self.dest, who)]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``assign``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Show which partitions each member gets: by one assignor, with the changes of each
member, or by several assignors side by side. The assignors return the same
partitions as Kafka's classes; no server is needed."""
    parser.epilog = """\
  groupcoord assign --members 3 --topics orders:8,payments:4 --assignor sticky --leave B
  groupcoord assign --members A:t0,B:t0+t1 --topics t0:1,t1:2 --leave A --then --join D
  groupcoord assign --cases FILE.json --json"""
    who = parser.add_argument_group("the group at the start")
    who.add_argument(
        "--members",
        type=_members,
        metavar="N|NAME[:TOPIC+…],…",
        help="the number of members, which are then named A, B, …, or their names; after a colon, the topics to which a "
        "member subscribes (default: all)",
    )
    who.add_argument(
        "--topics", type=_topics, metavar="NAME:PARTITIONS,…", help="the topics and their numbers of partitions"
    )
    who.add_argument(
        "--assignor",
        action="append",
        metavar="NAME",
        help="show this assignor; may be repeated (default: all assignors)",
    )
    story = parser.add_argument_group("then these changes, in the order in which they are given")
    parser.set_defaults(story=None)
    story.add_argument("--leave", action=_Note, type=_member, metavar="NAME", help="a member leaves")
    story.add_argument("--join", action=_Note, type=_member, metavar="NAME[:TOPIC+…]", help="a member joins")
    story.add_argument(
        "--then",
        action=_Note,
        nargs=0,
        help="rebalance the group, and make the changes after --then in another rebalance; if none follow, the group "
        "rebalances again without a change",
    )
    parser.add_argument("--cases", type=Path, metavar="FILE", help="compute all cases in this JSON file instead")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the assignments; returns the exit code."""
    if arguments.cases is not None:
        if any((arguments.members, arguments.topics, arguments.assignor, arguments.story)):
            return complain("assign", "--cases goes with --json only", 2)
        return _answer_cases(arguments.cases, as_json=arguments.json)
    if not arguments.members or not arguments.topics:
        return complain("assign", "--members and --topics are needed, or --cases", 2)
    names: list[str] = arguments.assignor or ASSIGNORS.names()
    steps = _steps(arguments.members, arguments.story or [])
    try:
        _check_topics(arguments.topics, steps)
        outcomes = {name: _play(name, arguments.topics, steps) for name in dict.fromkeys(names)}
    except (GroupSimulationError, UnknownAssignorError) as problem:
        return complain("assign", str(problem), 2)
    except FaultyAssignorError as problem:
        return complain("assign", str(problem), 1)
    titles = [_title(step) for step in steps]
    if arguments.json:
        print(json.dumps([_step_json(title, number, outcomes) for number, title in enumerate(titles)], indent=2))
    else:
        print("\n\n".join(_step_text(title, number, outcomes) for number, title in enumerate(titles)))
    return 0


def _play(name: str, topics: dict[str, int], steps: Sequence[Sequence[MemberChange]]) -> list[RebalanceOutcome]:
    simulator = GroupSimulator(name, topics)
    outcomes = []
    for step in steps:
        for change in step:
            if change.who is not None and change.what == "join":
                simulator.join(change.who.name, change.who.topics)
            elif change.who is not None:
                simulator.leave(change.who.name)
        outcomes.append(simulator.rebalance())
    return outcomes


def _steps(members: Sequence[MemberSpec], story: Sequence[MemberChange]) -> list[list[MemberChange]]:
    """The changes before each rebalance: first all members join, then those between one --then and the next."""
    steps = [[MemberChange("join", member) for member in members]]
    if story:
        steps.append([])
    for change in story:
        if change.what == "then":
            steps.append([])
        else:
            steps[-1].append(change)
    if len(steps) > 2 and story[0].what == "then":
        del steps[1]  # there is no change before the first --then
    return steps


def _check_topics(topics: dict[str, int], steps: Sequence[Sequence[MemberChange]]) -> None:
    for step in steps:
        for _, member in step:
            for topic in (member.topics if member is not None else None) or ():
                if topic not in topics:
                    raise GroupSimulationError(f"{member.name} wants {topic}, which --topics does not name")  # type: ignore[union-attr]


def _title(step: Sequence[MemberChange]) -> str:
    if not step:
        return "nobody comes or goes"
    parts = []
    for what, verbs in (("leave", ("leaves", "leave")), ("join", ("joins", "join"))):
        names = [change.who.name for change in step if change.what == what and change.who is not None]
        if len(names) > 6:
            names = [f"{len(names):,} members"]
        if names:
            several = len(names) > 1 or names[0].endswith(" members")
            parts.append(f"{' and '.join([', '.join(names[:-1]), names[-1]] if names[1:] else names)} {verbs[several]}")
    return ", ".join(parts)


def _step_text(title: str, number: int, outcomes: dict[str, list[RebalanceOutcome]]) -> str:
    if len(outcomes) == 1:
        [(name, steps)] = outcomes.items()
        return f"{title} ({name})\n\n{assignment_table(steps[number])}"
    return f"{title}\n\n{comparison_table({name: steps[number] for name, steps in outcomes.items()})}"


def _step_json(title: str, number: int, outcomes: dict[str, list[RebalanceOutcome]]) -> dict[str, Any]:
    return {"step": title, "assignors": {name: _outcome_json(steps[number]) for name, steps in outcomes.items()}}


def _outcome_json(outcome: RebalanceOutcome) -> dict[str, Any]:
    return {
        "assignment": outcome.assignment,
        "changes": {
            member_id: {"kept": change.kept, "gained": change.gained, "lost": change.lost}
            for member_id, change in outcome.changes.items()
        },
        "imbalance": outcome.spread,
        "moved": outcome.moved,
        "rebalances": outcome.rounds,
        "remark": outcome.remark,
    }


def _answer_cases(path: Path, *, as_json: bool) -> int:
    try:
        cases = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        return complain("assign", f"cannot read {path}: {problem.strerror}", 1)
    except ValueError as problem:
        return complain("assign", f"{path} is not JSON: {problem}", 1)
    if not isinstance(cases, list):
        return complain("assign", f"{path} is not a list of cases", 1)
    try:
        answers = [answer_case(case) for case in cases]
    except CaseError as problem:
        return complain("assign", f"{path}: {problem}", 1)
    if as_json:
        print("[\n" + ",\n".join(json.dumps(given) for given in answers) + "\n]")
    else:
        for given in answers:
            sizes = " ".join(str(len(partitions)) for partitions in given.get("assignment", {}).values())
            print(f"{given['id']}  {given['assignor']}  {given.get('error', sizes)}")
    return 0


def _members(text: str) -> list[MemberSpec]:
    if text.isascii() and text.isdecimal():
        count = int(text)
        if not 1 <= count <= MOST_MEMBERS:
            raise argparse.ArgumentTypeError(f"a group has 1 to {MOST_MEMBERS:,} members, not {text}")
        return [MemberSpec(_letters(number), None) for number in range(count)]
    members = [_member(part) for part in text.split(",")]
    for name, times in Counter(member.name for member in members).items():
        if times > 1:
            raise argparse.ArgumentTypeError(f"{name} is a member {'twice' if times == 2 else f'{times} times'}")
    return members


def _letters(number: int) -> str:
    """A, B, … Z, AA, AB, … as spreadsheets count."""
    name = ""
    while number >= 0:
        name = chr(ord("A") + number % 26) + name
        number = number // 26 - 1
    return name


def _member(text: str) -> MemberSpec:
    name, colon, topics = text.partition(":")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} does not name a member")
    wanted = tuple([topic for topic in topics.split("+") if topic])
    if colon and not wanted:
        raise argparse.ArgumentTypeError(f"{text!r} says a colon but no topic")
    return MemberSpec(name, wanted if colon else None)


def _topics(text: str) -> dict[str, int]:
    topics: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = part.rpartition(":")
        if not name or not (count.isascii() and count.isdecimal()):
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME:PARTITIONS")
        if name in topics:
            raise argparse.ArgumentTypeError(f"topic {name} is named twice")
        topics[name] = int(count[:12])
    if sum(topics.values()) > MOST_PARTITIONS:
        raise argparse.ArgumentTypeError(f"these are more than {MOST_PARTITIONS:,} partitions")
    return topics
