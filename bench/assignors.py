"""(f) Benchmark of partition assignors: the time for large groups, whose assignments are verified by digests."""

import gc
import resource
import sys
import time
from typing import Any

from bench.table import Table
from groupcoord.assignors import ASSIGNORS, Assignment
from groupcoord.assignors.server_side import SERVER_ASSIGNORS
from tests.assignors import shapes
from tests.assignors.known import DIGESTS

CLIENT_SIDE = [
    ("A", "range", "fresh"),
    ("A", "roundrobin", "fresh"),
    *((shape, name, op) for shape in "ABC" for name in ("sticky", "cooperative-sticky") for op in shapes.OPS),
    *((shape, "sticky", op) for shape in ("D", "D2") for op in shapes.OPS if (shape, op) != ("D2", "join")),
]
SERVER_SIDE = [
    (shape, name, op) for shape in ("S1", "S2", "S3b") for name in ("uniform", "range") for op in ("fresh", "join")
]
_WIDTH = 1 << 20 if sys.platform == "darwin" else 1 << 10


def run() -> list[Table]:
    """Seconds per answer; ``digest`` says whether the answer is Kafka's, where that is known."""
    return [_client_side(), _server_side()]


def _client_side() -> Table:
    table = Table("assignors", "group", "members", "partitions", "what", "seconds", "digest")
    kept: tuple[tuple[str, str], Assignment] | None = None
    for shape, name, op in CLIENT_SIDE:
        if op != "fresh" and (kept is None or kept[0] != (shape, name)):
            kept = (shape, name), ASSIGNORS.create(name).assign(shapes.group(shape, name, "fresh"))
        group = shapes.group(shape, name, op, kept[1] if kept is not None and op != "fresh" else None)
        assignor = ASSIGNORS.create(name)
        gc.collect()
        begin = time.perf_counter()
        assignment = assignor.assign(group)
        seconds = time.perf_counter() - begin
        if op == "fresh":
            kept = (shape, name), assignment
        topics, partitions, members = shapes.CLIENT_SHAPES[shape]
        verdict = _verdict(shape, name, op, shapes.digest(assignment))
        table.add(f"{shape} {op}", f"{members:,}", f"{topics * partitions:,}", name, f"{seconds:.2f}", verdict)
    table.add("peak memory, MB", "", "", "", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _WIDTH, "")
    return table


def _server_side() -> Table:
    table = Table("server-side assignors", "group", "members", "partitions", "what", "seconds", "digest")
    for shape, name, op in SERVER_SIDE:
        assign = SERVER_ASSIGNORS[name]
        spec, names = shapes.spec(shape, "fresh")
        if op != "fresh":
            spec, names = shapes.spec(shape, op, assign(spec))
        gc.collect()
        begin = time.perf_counter()
        target = assign(spec)
        seconds = time.perf_counter() - begin
        topics, partitions, members = shapes.SERVER_SHAPES[shape]
        verdict = _verdict(shape, f"server-{name}", op, shapes.digest(shapes.named_target(target, names)))
        table.add(f"{shape} {op}", f"{members:,}", f"{topics * partitions:,}", name, f"{seconds:.2f}", verdict)
    return table


def _verdict(shape: str, name: str, op: str, digest: str) -> str:
    known: list[dict[str, Any]] = [
        entry for entry in DIGESTS if (entry["shape"], entry["assignor"], entry["op"]) == (shape, name, op)
    ]
    return "unknown" if not known else "Kafka's" if known[0]["sha256"] == digest else "NOT KAFKA'S"
