"""What other assignors would have done, as bars side by side."""

from groupcoord.pipeline.report.page.markup import Markup, join, tag
from groupcoord.pipeline.report.page.parts import Cell, Head, counted, figure, table, with_bar
from groupcoord.pipeline.report.report_model import AssignorResult, WhatIfResults

TABLE = "what_if_summary"


def together(what_if: WhatIfResults | None) -> Markup:
    """All groups together; nothing where the run was not asked for it."""
    if what_if is None:
        return join()
    said = (
        "The members of every generation, given to other assignors: how many partitions would have moved, how many of them "
        "needlessly, and how many would have stopped meanwhile. Fewer is better."
    )
    return tag(
        "section",
        tag("h2", "What if: other assignors"),
        tag("p", said, class_="lead"),
        _bars("All groups together", what_if.together),
        id="what-if",
    )


def of_group(what_if: WhatIfResults | None, group: str) -> Markup:
    """One group."""
    found = what_if.groups.get(group, ()) if what_if is not None else ()
    return _bars("With other assignors", found) if found else join()


def _bars(caption: str, alternatives: tuple[AssignorResult, ...]) -> Markup:
    heads = (
        Head("Assignor"),
        counted("Moved", "partitions"),
        counted("Needlessly", "partitions"),
        counted("Stopped", "partitions"),
        counted("Rebalances"),
        counted("Worst imbalance", "partitions"),
        counted("Without an answer", "generations"),
    )
    moved = max(one.moved for one in alternatives)
    pauses = max(one.pauses for one in alternatives)
    rows = [
        (
            Cell(tag("b", one.assignor) if one.assignor == "as it was" else one.assignor),
            with_bar(one.moved, moved),
            with_bar(one.moved_needlessly, moved, kind="bar-r"),
            with_bar(one.pauses, pauses),
            figure(one.rebalances),
            figure(one.imbalance_worst),
            figure(one.problems),
        )
        for one in alternatives
    ]
    return table(caption, [TABLE], heads, rows, is_sortable=True)
