"""``groupcoord cluster``: shows a running cluster (``tree``), and stops, kills or pauses brokers of a ``groupcoord serve
--control`` (``brokers`` and others)."""

import argparse
import json
import os
from http import HTTPStatus
from time import sleep
from typing import Any

from groupcoord.cli.main import complain
from groupcoord.client.client_errors import ClientError
from groupcoord.client.metadata_as_zookeeper_paths import ZooKeeperTree, tree_line
from groupcoord.client.option_value_parsing import Address, parse_addresses
from groupcoord.client.zookeeper_paths_reader import ZooKeeperTreeReader


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands of ``cluster``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Show a running cluster of groupcoord or Kafka (tree). All other commands show
or change the brokers of a cluster that groupcoord serve --control runs."""
    parser.epilog = """\
  groupcoord cluster tree
  groupcoord cluster tree /brokers/ids --bootstrap localhost:9092 --watch
  groupcoord cluster kill 2 --control http://127.0.0.1:9093"""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    _configure_tree(commands)
    _configure_failures(commands)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand; returns the exit code."""
    code: int = arguments.run_command(arguments)
    return code


# The tree.

_WATCH_S = 1.0


def _configure_tree(commands: "argparse._SubParsersAction[Any]") -> None:
    tree = commands.add_parser(
        "tree",
        help="show brokers, topics and controller as paths, as in ZooKeeper",
        description="""\
Show brokers, topics and controller of a cluster as the paths that Kafka used to have in ZooKeeper: on each line a path and
its JSON. Values that no Kafka API returns are -1. The exit code is 1 if the cluster cannot be reached or the path does not
exist.""",
    )
    tree.set_defaults(run_command=_run_tree)
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


def _run_tree(arguments: argparse.Namespace) -> int:
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
                for line in _changes(before, found, path):
                    print(line, flush=True)
    except KeyError as problem:
        return complain("cluster tree", problem.args[0], 1)
    except ClientError as problem:
        return complain("cluster tree", str(problem), 1)
    return 0


def _changes(before: ZooKeeperTree, after: ZooKeeperTree, path: str) -> list[str]:
    """The differences at ``path`` and below: ``-`` lines for what is gone, ``+`` lines for what is new, both for changes."""
    old, new = (tree.tree(path) if path in tree else {} for tree in (before, after))
    gone = [tree_line(each, stored) for each, stored in old.items() if each not in new or new[each] != stored]
    came = [tree_line(each, stored) for each, stored in new.items() if each not in old or old[each] != stored]
    return [*(f"- {line}" for line in gone), *(f"+ {line}" for line in came)]


# Brokers and the controller.

_ACTIONS = {
    "stop": "shut a broker down cleanly: other in-sync replicas become leaders of its partitions first",
    "kill": "kill a broker; other in-sync replicas become leaders of its partitions when its session expires",
    "pause": "suspend a broker until it is resumed; its connections stay open",
    "resume": "resume a paused broker",
    "start": "start a broker again; after kill it waits until its old session has expired",
    "pause-replication": "pause the replication of a broker, as if it were a slow follower",
    "resume-replication": "resume the replication that pause-replication has paused",
    "cut-off": "cut the network between a broker and its clients, the controller or another broker",
    "reconnect": "restore the network that cut-off has cut",
    "slow-disk": "delay each append of a broker by this many seconds; 0 ends the delay",
    "lose-disk": "delete the data of a broker that does not run; it will start with empty logs",
    "unregister": "unregister a broker at the controller",
}
_ARGUMENTS = {
    "cut-off": ("peer", "the id of another broker, or clients, or controller"),
    "reconnect": ("peer", "the id of another broker, or clients, or controller"),
    "slow-disk": ("seconds", "the delay of each append, such as 0.5"),
}
"""The arguments of some actions besides the broker."""
_CONTROLLER = "controller"
_OF_CONTROLLER = ("kill", "pause", "resume", "start")
"""The actions that the controller has, too."""


def _configure_failures(commands: "argparse._SubParsersAction[Any]") -> None:
    summary = "list the brokers with their states and injected faults, and the controller if it does not run"
    brokers = commands.add_parser("brokers", help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    brokers.set_defaults(run_command=_run_failure, action=None)
    _add_control(brokers)
    for action, summary in _ACTIONS.items():
        command = commands.add_parser(action, help=summary)
        command.description = f"{summary[0].upper()}{summary[1:]}."
        command.set_defaults(run_command=_run_failure, action=action)
        if action in _OF_CONTROLLER:
            text = "the id of the broker, or controller"
            command.add_argument("broker", metavar="BROKER", type=_broker_or_controller, help=text)
        else:
            command.add_argument("broker", metavar="BROKER", type=_broker_id, help="the id of the broker")
        if action in _ARGUMENTS:
            name, meaning = _ARGUMENTS[action]
            command.add_argument(name, metavar=name.upper(), help=meaning)
        _add_control(command)


def _add_control(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--control",
        metavar="URL",
        required=True,
        help="the URL that groupcoord serve --control prints, such as http://127.0.0.1:9093; for a further cluster of that "
        "server, append /brokers/NAME",
    )
    parser.add_argument(
        "--control-token", metavar="TOKEN", help="the token of that server (or GROUPCOORD_CONTROL_TOKEN)"
    )


def _broker_id(text: str) -> int:
    if text == _CONTROLLER:
        raise argparse.ArgumentTypeError(f"this is for brokers alone; the controller has {', '.join(_OF_CONTROLLER)}")
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not the id of a broker, which is a number")
    return int(text)


def _broker_or_controller(text: str) -> int | str:
    return text if text == _CONTROLLER else _broker_id(text)


def _run_failure(arguments: argparse.Namespace) -> int:
    """Do the action, if there is one, on a broker or the controller, and print its new state; without an action print all
    brokers. Returns the exit code."""
    try:
        import httpx  # noqa: PLC0415 - an extra that need not be installed

        from groupcoord.control.broker_models import Controller, Node  # noqa: PLC0415
        from groupcoord.control.client import ControlClient, ControlError  # noqa: PLC0415
    except ImportError as problem:
        return complain("cluster", f"--control needs {problem.name}: pip install 'groupcoord[control]'", 1)
    url: str = arguments.control
    if not url.startswith(("http://", "https://")):
        return complain("cluster", f"--control {url}: a URL begins with http://", 2)
    token = arguments.control_token or os.environ.get("GROUPCOORD_CONTROL_TOKEN") or None
    try:
        controller = None
        with ControlClient(url, token) as control:
            if arguments.action is None:
                brokers = control.read(list[Node], "GET", "/nodes")
                controller = control.read(Controller, "GET", "/controller")
                controller = None if controller.state == "running" else controller
            elif arguments.broker == _CONTROLLER:
                brokers = []
                controller = control.read(Controller, "POST", f"/controller/{arguments.action}")
            else:
                name, _ = _ARGUMENTS.get(arguments.action, ("", ""))
                asked = {name: getattr(arguments, name)} if name else {}
                brokers = [control.read(Node, "POST", f"/nodes/{arguments.broker}/{arguments.action}", **asked)]
    except ControlError as refusal:
        if refusal.problem.status == HTTPStatus.UNAUTHORIZED:
            which = "another" if token else "a"
            return complain("cluster", f"{url} wants {which} token: --control-token, or GROUPCOORD_CONTROL_TOKEN", 1)
        return complain("cluster", refusal.problem.detail, 1)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as problem:
        reason = str(problem).partition("\n")[0]
        return complain("cluster", f"no control API answers at {url}: {reason}", 1)
    for broker in brokers:
        print(f"broker {broker.id} at {broker.address}: {broker.condition}")
    if controller is not None:
        print(f"controller {controller.id}: {controller.state}, epoch {controller.epoch}")
    return 0
