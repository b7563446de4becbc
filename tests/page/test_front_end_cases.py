"""The front end has some rules of the trace once more, in TypeScript; its tests have them from here."""

from pathlib import Path

from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.folding import QuietExchanges, folded
from groupcoord.testing.trace.short_member_names import ShortMemberNames

CASES = Path(__file__).parents[2] / "web" / "test" / "cases"


def test_what_the_front_end_must_fold_is_what_python_folds() -> None:
    entries = Trace.load(CASES / "baristas.jsonl").entries()
    rows = folded(entries, ShortMemberNames(entries))
    words = [each.words for each in rows if isinstance(each, QuietExchanges)]
    assert (CASES / "baristas.folded.txt").read_text(encoding="utf-8").splitlines() == words
