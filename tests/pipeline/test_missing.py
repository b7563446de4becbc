"""What happens where the extra is not installed."""

from importlib.util import find_spec

import pytest

from groupcoord.cli.main import main

MISSING = [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (pip install 'groupcoord[pipeline]')")
def test_everything_for_spark_is_installed() -> None:
    """Its reason says why the other tests of this folder do not run."""
    assert MISSING == []


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("groupcoord.cli.pipeline.find_spec", lambda name: None)
    assert main(["pipeline", "run", "--source", "segments:nowhere", "--out", "nowhere"]) == 1
    error = capsys.readouterr().err
    assert error == "groupcoord pipeline: pyspark, pyarrow, pandas missing: pip install 'groupcoord[pipeline]'\n"
