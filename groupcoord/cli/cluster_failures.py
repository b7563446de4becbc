"""``groupcoord cluster brokers``, ``stop``, ``kill``, ``pause``, ``resume``, ``start`` …: inject failures into brokers and the
controller by hand.

They need ``groupcoord serve --brokers 3 --control PORT``; docs/brokers.md describes each.
"""

import argparse
import os
from http import HTTPStatus
from typing import Any

from groupcoord.cli.main import complain

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


def configure(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the subcommands."""
    summary = "list the brokers with their states and injected faults, and the controller if it does not run"
    brokers = commands.add_parser("brokers", help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    brokers.set_defaults(run_command=_run, action=None)
    _add_control(brokers)
    for action, summary in _ACTIONS.items():
        command = commands.add_parser(action, help=summary)
        command.description = f"{summary[0].upper()}{summary[1:]}."
        command.set_defaults(run_command=_run, action=action)
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


def _run(arguments: argparse.Namespace) -> int:
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
