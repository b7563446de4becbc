"""The options of ``groupcoord pipeline watch``, and how signals end it."""

import argparse
import signal
import socket
from pathlib import Path

import pytest

from groupcoord.cli import pipeline
from groupcoord.cli.main import main
from groupcoord.pipeline.open_and_hanging_transactions import HANGING_AFTER_S
from groupcoord.pipeline.watch.metric_names import LIMIT


def options(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    pipeline._configure_watch(parser)
    return parser.parse_args(["--source", "kafka:localhost:9092", "--out", "there", *argv])


@pytest.mark.parametrize(
    ("said", "seconds"), [("5", None), ("5s", 5), ("5 seconds", 5), ("1 minute", 60), ("2 h", 7200), ("1 day", 86_400)]
)
def test_times_have_a_unit(said: str, seconds: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    if seconds is not None:
        assert options("--every", said).every == seconds
        assert options("--for", said).for_s == seconds
        assert pipeline._retention_ms(options("--offsets-retention", said)) == 1000 * seconds
        return
    with pytest.raises(SystemExit):
        options("--every", said)
    assert "'5' is not a time such as '5 seconds' or '1 hour'" in capsys.readouterr().err


def test_without_options_it_looks_every_five_seconds_for_ever() -> None:
    asked = options()
    assert (asked.every, asked.for_s, asked.once, asked.merge_every) == (5, None, False, 100)
    assert (asked.hanging_after, asked.metrics, asked.metrics_limit) == (HANGING_AFTER_S, None, LIMIT)
    assert options("--metrics", "[::1]:0").metrics == ("::1", 0)
    assert options("--available-now").once
    assert pipeline._retention_ms(asked) is None


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--merge-every", "1"], "'1' is not a number of batches: 0, or 2 to 10,000"),
        (["--source-option", "maxrecords"], "'maxrecords' is not KEY=VALUE"),
        (["--once", "--for", "1 hour"], "not allowed with argument"),
        (["--metrics", "9308"], "'9308' is not an address such as 127.0.0.1:9308"),
        (["--metrics", "localhost:65536"], "'localhost:65536' is not an address such as 127.0.0.1:9308"),
        (["--metrics-limit", "0"], "'0' is not a number of series: 1 to 10,000,000"),
    ],
)
def test_what_cannot_be_is_said(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "watch", "--source", "kafka:localhost:9092", "--out", "there", *argv])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_metrics_at_a_port_in_use_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("prometheus_client")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        asked = ["--source", "kafka:127.0.0.1:1", "--out", str(tmp_path / "out"), "--metrics", address]
        assert main(["pipeline", "watch", *asked]) == 1
    said = f"groupcoord pipeline: cannot serve metrics at {address}: Address already in use; choose another"
    assert capsys.readouterr().err.startswith(said)


def test_alerts_that_cannot_be_written_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark")
    where = str(tmp_path / "none" / "alerts.jsonl")
    asked = ["--source", "kafka:127.0.0.1:1", "--out", str(tmp_path / "out"), "--alerts", where]
    assert main(["pipeline", "watch", *asked]) == 1
    said = f"groupcoord pipeline: cannot write alerts to {where}: No such file or directory\n"
    assert capsys.readouterr().err == said


def test_the_first_signal_asks_and_the_second_does_not() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pipeline.Stopping() as stopping:
        stopping.arm()
        signal.raise_signal(signal.SIGTERM)
        assert stopping.event.is_set()
        assert stopping.by == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_at_the_end_it_says_what_there_is() -> None:
    assert pipeline.outcome(1234, 2, "there") == "1,234 records in 2 batches: tables in there/tables"
    assert pipeline.outcome(0, 0, "there") == "ended before the first batch: there are no tables in there yet"
