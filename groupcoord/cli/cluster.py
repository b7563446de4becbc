"""``groupcoord cluster``: shows a running cluster (``tree``), and stops, kills or pauses brokers of a ``groupcoord serve
--control`` (``brokers`` and others)."""

import argparse

from groupcoord.cli import cluster_failures, cluster_metadata_tree


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
    cluster_metadata_tree.configure(commands)
    cluster_failures.configure(commands)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand; returns the exit code."""
    code: int = arguments.run_command(arguments)
    return code
