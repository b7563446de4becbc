"""``groupcoord page``: renders a saved trace as one HTML file."""

import argparse
from pathlib import Path

from groupcoord.cli.main import complain


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``page``."""
    parser.description = (
        "Show a trace that was saved by kafka.trace.save as a web page: one HTML file that needs no server and no network. "
        "For each moment of the trace it shows the groups, which member owned which partitions and why, every request, and "
        "the records appended to __consumer_offsets."
    )
    parser.add_argument("trace", metavar="TRACE", type=Path, help="the saved trace, a file of JSON lines")
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="where to write the page (default: beside the trace, with the suffix .html)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the page; returns the exit code."""
    from groupcoord.page.html_embedding import PageNotBuiltError  # noqa: PLC0415 - most of what there is to import
    from groupcoord.page.trace_page import saved_page  # noqa: PLC0415
    from groupcoord.storage.file_io import write_output  # noqa: PLC0415
    from groupcoord.testing.trace import Trace  # noqa: PLC0415

    path: Path = arguments.trace
    out: Path = arguments.out or path.with_suffix(".html")
    try:
        trace = Trace.load(path)
    except OSError as problem:
        return complain("page", f"cannot read {path}: {problem.strerror}", 2)
    except ValueError as problem:
        return complain("page", str(problem), 2)
    try:
        page = saved_page(trace, path.name)
    except PageNotBuiltError as problem:
        return complain("page", str(problem), 1)
    try:
        write_output(out, page)
    except OSError as problem:
        return complain("page", f"cannot write {out}: {problem.strerror}", 1)
    print(out)
    return 0
