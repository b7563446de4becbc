from itertools import pairwise

from groupcoord.pipeline.watch.journal import Span
from groupcoord.pipeline.watch.merge import to_merge


def test_so_many_batches_become_one_and_so_many_of_those() -> None:
    """As a counter: with three of each level merged, no level ever has more than two for long."""
    spans: list[Span] = []
    for batch in range(200):
        spans.append(Span(batch, batch, 1))
        while chosen := to_merge(spans, 3):
            assert len(chosen) == 3
            whole = Span(chosen[0].first, chosen[-1].last, sum(span.rows for span in chosen), chosen[0].level + 1)
            spans = sorted([whole, *(span for span in spans if span not in chosen)], key=lambda span: span.first)
        assert sum(span.rows for span in spans) == batch + 1
        assert all(before.last + 1 == after.first for before, after in pairwise(spans))
        assert len({span.folder for span in spans}) == len(spans)
    assert len(spans) == 2 + 1 + 1 + 0 + 2  # the digits of 200 in base three are 2 1 1 0 2


def test_few_are_left_alone() -> None:
    assert to_merge([Span(0, 0, 1), Span(1, 1, 1)], 3) == []
    assert to_merge([], 2) == []
