"""``groupcoord cluster tree``: shows brokers, topics and controller of a running cluster, groupcoord's or Kafka's, as paths
like ZooKeeper's."""

import argparse
import json
from time import sleep
from typing import Any

from groupcoord.cli.main import complain
from groupcoord.client.client_errors import ClientError
from groupcoord.client.metadata_as_zookeeper_paths import ZooKeeperTree, tree_line
from groupcoord.client.option_value_parsing import Address, parse_addresses
from groupcoord.client.zookeeper_paths_reader import ZooKeeperTreeReader

_WATCH_S = 1.0


def configure(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the subcommand."""
    tree = commands.add_parser(
        "tree",
        help="show brokers, topics and controller as paths, as in ZooKeeper",
        description="""\
Show brokers, topics and controller of a cluster as the paths that Kafka used to have in ZooKeeper: on each line a path and
its JSON. Values that no Kafka API returns are -1. The exit code is 1 if the cluster cannot be reached or the path does not
exist.""",
    )
    tree.set_defaults(run_command=_run)
    tree.add_argument(
        "path", metavar="PATH", nargs="?", default="/", help="show only this path and the paths below it (default: /)"
    )
    tree.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        type=_addresses,
        default="localhost:9092",
        help="a broker of the cluster, or several, separated by commas (default: localhost:9092)",
    )
    tree.add_argument("--json", action="store_true", help="print one JSON object: the paths and their values")
    tree.add_argument(
        "--watch", action="store_true", help="then print changes as lines with + and - until ctrl-C is pressed"
    )


def _addresses(text: str) -> tuple[Address, ...]:
    try:
        return parse_addresses(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def _run(arguments: argparse.Namespace) -> int:
    """Show the tree; returns the exit code."""
    if arguments.json and arguments.watch:
        return complain("cluster tree", "--watch prints lines: it does not go with --json", 2)
    path = "/" + arguments.path.strip("/")
    try:
        with ZooKeeperTreeReader(arguments.bootstrap) as reader:
            found = reader.read()
            print(json.dumps(found.tree(path), indent=1) if arguments.json else found.text(path), flush=True)
            while arguments.watch:
                sleep(_WATCH_S)
                before, found = found, reader.read()
                for line in changes(before, found, path):
                    print(line, flush=True)
    except KeyError as problem:
        return complain("cluster tree", problem.args[0], 1)
    except ClientError as problem:
        return complain("cluster tree", str(problem), 1)
    return 0


def changes(before: ZooKeeperTree, after: ZooKeeperTree, path: str) -> list[str]:
    """The differences at ``path`` and below: ``-`` lines for what is gone, ``+`` lines for what is new, both for changes."""
    old, new = (tree.tree(path) if path in tree else {} for tree in (before, after))
    gone = [tree_line(each, stored) for each, stored in old.items() if each not in new or new[each] != stored]
    came = [tree_line(each, stored) for each, stored in new.items() if each not in old or old[each] != stored]
    return [*(f"- {line}" for line in gone), *(f"+ {line}" for line in came)]
