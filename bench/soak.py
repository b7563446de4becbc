"""Soak test under mixed load that looks for growth of memory and files: that of ``make break``, measured at five moments.

``BENCH_SOAK_MINUTES`` says how many minutes (60).
"""

import os
from collections.abc import Sequence

from bench.table import Table
from tests.reliability.soak import Moment, Sample, soak

MINUTES = float(os.environ.get("BENCH_SOAK_MINUTES", "60"))
SHARE = 0.25
_SEED = 1
_UNITS = Sample(memory_bytes=1_000_000, descriptors=1, log_bytes=1_000_000, data_bytes=1_000_000, groups=1)
_WHAT = ("memory MB", "descriptors", "log MB", "data directory MB", "groups")


def run() -> list[Table]:
    """The growth is that from the median of the second third of the time to that of the last, in an hour."""
    seconds = MINUTES * 60
    outcome, moments, growth = soak(seconds, _SEED, share=SHARE)
    table = Table(
        f"soak: {outcome.tried}, at most {SHARE:.0%} of one core for server and clients together",
        "when",
        "requests answered",
        *_WHAT,
    )
    for when, moment in _marks(moments):
        table.add(when, f"{moment.answers:,}", *_figures(moment.sample))
    rate = moments[-1].answers / moments[-1].seconds
    table.add("growth an hour, after warm-up", f"{rate:,.0f}/s", *_figures(growth, "+"))
    problems = Table("what is wrong", "problem")
    for problem in outcome.problems or ("nothing",):
        problems.add(problem)
    return [table, problems]


def _marks(moments: Sequence[Moment]) -> list[tuple[str, Moment]]:
    """The first moment, those after each quarter, and the last."""
    last = len(moments) - 1
    return [(f"after {moments[at].seconds / 60:.1f} min", moments[at]) for at in (last * n // 4 for n in range(5))]


def _figures(sample: Sample, sign: str = "") -> list[str]:
    """In megabytes, or as they are."""
    return [
        f"{value / unit:{sign},.1f}" if unit > 1 else f"{value:{sign},}"
        for value, unit in zip(sample, _UNITS, strict=True)
    ]
