"""Alerts: what is told when an incident begins and when it ends, once, also by a watch that is started again."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.watch import alert_sinks
from groupcoord.pipeline.watch.alert_sinks import AlertDeliveryError, alert_sink
from groupcoord.pipeline.watch.alerts import BUDGET_S, STATE_FILE, WatchAlerts
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome
from groupcoord.pipeline.watch.output_directory import WatchDirectory
from tests.pipeline.frames import at
from tests.pipeline.watch.outcomes import lag_row, outcome

STORM = {"group": "app", "from": at(500), "to": at(590), "rebalances": 7, "likely_causes": ["members joined: m1", "x"]}
HANGS: dict[str, Any] = {
    "topic": "orders",
    "partition": 0,
    "stable_offset": 100,
    "end_offset": 1101,
    "producer_id": 7,
    "transactional_id": "payments",
    "since": at(0),
    "groups": ["app", "audit", "backup", "cache"],
}
LOST = SourceWarning("kafka:x", "offsets 7 to 19 were deleted from the log before they were read", 1, None, None)


class Directory(WatchDirectory):
    """Stands for the directory of the watch: what it keeps outlives the watch."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.writes = 0

    def read_note(self, path: str) -> str | None:
        return self.notes.get(path)

    def write_note(self, path: str, text: str) -> None:
        self.notes[path] = text
        self.writes += 1


class Watch:
    """One run of a watch with alerts; the sink fails with ``failure`` while it is set."""

    def __init__(self, directory: Directory) -> None:
        self.told: list[dict[str, Any]] = []
        self.said: list[str] = []
        self.failure: AlertDeliveryError | None = None
        self.seconds_each = 0.0
        self._time = 0.0
        self.alerts = WatchAlerts(
            directory, self._sink, hanging_after_s=300, say=self.said.append, clock=lambda: self._time
        )

    def _sink(self, line: str) -> None:
        self._time += self.seconds_each
        if self.failure is not None:
            raise self.failure
        self.told.append(json.loads(line))

    def after(self, one: BatchOutcome) -> list[tuple[str, str]]:
        """What is new: id and state."""
        count = len(self.told)
        self.alerts.update(one)
        return [(event["id"], event["state"]) for event in self.told[count:]]


@pytest.fixture
def directory() -> Directory:
    return Directory()


@pytest.fixture
def watch(directory: Directory) -> Watch:
    return Watch(directory)


def test_each_incident_is_told_when_it_begins_and_when_it_ends(watch: Watch, directory: Directory) -> None:
    late = [
        lag_row("app", 0, 5, "STALL"),
        lag_row("app", 1, 5, "WARN"),
        lag_row("app", 2, 0),
        lag_row("b", 0, 9, "REWIND"),
    ]
    wrong = {"storms": [STORM], "lag": late, "open_transactions": [HANGS]}
    begun = watch.after(outcome(wrong, lost=[LOST]))
    assert begun == [
        ("storm:app", "firing"),
        ("late_partitions:app", "firing"),
        ("hanging_transaction:7", "firing"),
        ("log_lost:1", "firing"),
    ]
    assert [event["text"] for event in watch.told] == [
        "group app has had 7 rebalances in a row since 2026-01-01 00:08:20 UTC, most often because: members joined: m1",
        "of 3 partitions of group app are 1 STALL, 1 WARN",
        (
            "a transaction of producer 7 with transactional id payments is open since 2026-01-01 00:00:00 UTC: "
            "1,001 offsets are behind its begin in orders-0, which consumers that read committed do not get; groups there: "
            "app, audit, backup and 1 more"
        ),
        (
            "in partition 1 of the log offsets 7 to 19 were deleted from the log before they were read: "
            "the tables lack what they said"
        ),
    ]
    assert [event["group"] for event in watch.told] == ["app", "app", None, None]
    assert watch.after(outcome(wrong, now=at(605))) == [("log_lost:1", "resolved")]  # it was read on
    written = directory.writes
    assert watch.after(outcome(wrong, now=at(610))) == []
    assert directory.writes == written  # nothing is new
    ended = watch.after(outcome({"storms": [STORM], "lag": [lag_row("app", 0, 0)]}, now=at(700)))
    assert ended == [(name, "resolved") for name, _ in begun[:3]]
    assert watch.told[-1] == {
        "id": "hanging_transaction:7",
        "kind": "hanging_transaction",
        "state": "resolved",
        "group": None,
        "since": at(0).isoformat(),
        "until": at(700).isoformat(),
        "text": "the transaction of producer 7 with transactional id payments that was open since 2026-01-01 00:00:00 UTC "
        "has ended",
        "source": "kafka:broker:9092",
    }


def test_a_storm_is_not_over_because_a_batch_took_long(watch: Watch) -> None:
    """What came into the log while the batch was written is not read yet."""
    watch.after(outcome({"storms": [STORM]}))
    assert watch.after(outcome({"storms": [STORM]}, now=at(650), took_s=50)) == []
    assert watch.after(outcome({"storms": [STORM]}, now=at(651), took_s=49)) == [("storm:app", "resolved")]


def test_a_transaction_in_flight_is_no_incident(watch: Watch) -> None:
    in_flight = [{**HANGS, "since": at(590)}, {**HANGS, "partition": 1, "producer_id": None, "since": None}]
    assert watch.after(outcome({"open_transactions": in_flight})) == []


def test_a_group_that_is_late_because_it_waits_for_a_transaction_says_so(watch: Watch) -> None:
    late = [lag_row(group, 0, 5, "STALL") for group in ("app", "audit", "cache")]
    waiting = [
        {**HANGS, "since": at(539), "waiting": ["app", "audit"]},
        {**HANGS, "since": at(539), "partition": 1, "waiting": ["app"]},
        {**HANGS, "since": at(541), "topic": "ledger", "producer_id": 8, "waiting": ["cache"]},
    ]
    watch.after(outcome({"lag": late, "open_transactions": waiting}))
    who = "producer 7 with transactional id payments"
    why = f"; it waits for the transaction of {who} in orders-0, orders-1, open since 2026-01-01 00:08:59 UTC"
    assert [event["text"] for event in watch.told] == [
        f"of 1 partitions of group app are 1 STALL{why}",
        f"of 1 partitions of group audit are 1 STALL{why}",
        "of 1 partitions of group cache are 1 STALL",  # it has not been open for a minute
    ]
    watch.after(outcome({"lag": late, "open_transactions": waiting}, now=at(900)))
    hanging = next(event for event in watch.told if event["id"] == "hanging_transaction:7")
    assert hanging["text"].endswith("do not get; groups that wait: app, audit")


def test_what_a_group_has_lost_is_one_incident_until_it_has_gone_on(watch: Watch) -> None:
    rows = [{**lag_row("app", number, 5), "records_lost": lost} for number, lost in enumerate((3, 0, 1_000))]
    assert watch.after(outcome({"lag": rows})) == [("records_lost:app", "firing")]
    said = "group app has lost what was deleted before it was read: 1,003 offsets of orders-0, orders-2"
    assert watch.told[-1]["text"] == said
    assert watch.after(outcome({"lag": [lag_row("app", 0, None)]})) == []  # unknown
    assert watch.after(outcome({"lag": rows[1:2]})) == [("records_lost:app", "resolved")]


def test_while_a_status_is_unknown_nothing_has_ended(watch: Watch) -> None:
    watch.after(outcome({"lag": [lag_row("app", 0, 5, "STOP")]}))
    assert watch.after(outcome({"lag": [lag_row("app", 0, None, None)]})) == []
    assert watch.after(outcome({"lag": []})) == [("late_partitions:app", "resolved")]  # the group is gone


def test_a_watch_that_is_started_again_repeats_nothing(watch: Watch, directory: Directory) -> None:
    watch.after(outcome({"storms": [STORM]}))
    again = Watch(directory)
    assert again.after(outcome({"storms": [STORM]}, now=at(620))) == []
    assert again.after(outcome({}, now=at(700))) == [("storm:app", "resolved")]
    assert Watch(directory).after(outcome({}, now=at(710))) == []


def test_after_a_kill_before_it_was_noted_it_is_told_once_more_with_the_same_id(directory: Directory) -> None:
    killed = Watch(directory)

    def kill(path: str, text: str) -> None:
        raise KeyboardInterrupt

    directory.write_note = kill  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        killed.after(outcome({"storms": [STORM]}))
    del directory.write_note
    again = Watch(directory)
    assert again.after(outcome({"storms": [STORM]}, now=at(610))) == [("storm:app", "firing")]
    assert again.told == killed.told


def test_a_loss_is_told_although_the_watch_is_killed_after_its_batch(watch: Watch, directory: Directory) -> None:
    watch.alerts.note_lost([LOST], at(5).isoformat())
    again = Watch(directory)
    assert again.after(outcome({}, lost=[LOST])) == [("log_lost:1", "firing")]
    third = Watch(directory)
    assert third.after(outcome({})) == [("log_lost:1", "resolved")]


def test_what_cannot_be_told_is_told_later_and_that_is_said_once(watch: Watch) -> None:
    watch.failure = AlertDeliveryError("http://x: Connection refused")
    for second in (600, 605, 610):
        assert watch.after(outcome({"storms": [STORM], "lag": [lag_row("b", 0, 1, "WARN")]}, now=at(second))) == []
    assert watch.said == ["alerts cannot be told: http://x: Connection refused; trying again after each batch"]
    watch.failure = None
    assert watch.after(outcome({"storms": [STORM]}, now=at(615))) == [("storm:app", "firing")]  # the other is over
    assert watch.said[1:] == ["alerts can be told again"]
    watch.failure = AlertDeliveryError("no")
    assert watch.after(outcome({}, now=at(700))) == []
    watch.failure = None
    assert watch.after(outcome({}, now=at(710))) == [("storm:app", "resolved")]
    assert watch.told[-1]["until"] == at(700).isoformat()


def test_what_is_refused_is_not_tried_again(watch: Watch) -> None:
    watch.failure = AlertDeliveryError("http://x answers 400 Bad Request", is_final=True)
    watch.after(outcome({"storms": [STORM]}))
    assert watch.said == ["an alert was refused and is not told again (storm:app): http://x answers 400 Bad Request"]
    watch.failure = None
    assert watch.after(outcome({"storms": [STORM]}, now=at(605))) == []


def test_a_batch_is_not_held_up_for_long(watch: Watch) -> None:
    watch.seconds_each = BUDGET_S / 2
    storms = {"storms": [{**STORM, "group": f"g{number}"} for number in range(5)]}
    assert [len(watch.after(outcome(storms))) for _ in range(4)] == [2, 2, 1, 0]


def test_a_state_that_is_none_is_one_sentence(directory: Directory) -> None:
    for text in ("{}", "no", '{"format": 1, "open": [{"incident": {"id": "x"}}]}'):
        directory.notes[STATE_FILE] = text
        with pytest.raises(PipelineError, match="is not what pipeline watch writes there: delete it"):
            Watch(directory)
    directory.notes[STATE_FILE] = '{"format": 2}'
    with pytest.raises(PipelineError, match="was written by another version of groupcoord"):
        Watch(directory)


def test_a_file_gets_a_line_each_and_keeps_what_it_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "alerts.jsonl"
    for line in ("1", "2"):
        alert_sink(str(path))(line)
    assert path.read_text() == "1\n2\n"
    alert_sink("-")("3")
    assert capsys.readouterr().out == "3\n"
    with pytest.raises(PipelineError, match=r"^cannot write alerts to .*: No such file or directory$"):
        alert_sink(str(tmp_path / "none" / "alerts"))
    sink = alert_sink(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(AlertDeliveryError, match="Is a directory"):
        sink("4")


@contextmanager
def webhook(status: int | None) -> Iterator[tuple[str, list[bytes]]]:
    """Its URL and what came; ``status`` None: it never answers."""
    came: list[bytes] = []
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(self.rfile.read(int(self.headers["Content-Length"])))
            if status is None:
                ended.wait(30)
                return
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's name
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", came
        finally:
            ended.set()
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "said", "is_final"),
    [
        (204, None, False),
        (400, "answers 400 Bad Request", True),
        (429, "answers 429", False),
        (503, "answers 503", False),
    ],
)
def test_a_webhook_gets_a_post_each(status: int, said: str | None, is_final: bool) -> None:
    with webhook(status) as (url, came):
        if said is None:
            alert_sink(url)('{"id": "ü"}')
        else:
            with pytest.raises(AlertDeliveryError, match=said) as raised:
                alert_sink(url)('{"id": "ü"}')
            assert "hook" not in str(raised.value)  # a path may be a secret
            assert raised.value.is_final == is_final
    assert came == ['{"id": "ü"}'.encode()]


def test_what_is_no_http_is_not_told_and_what_names_no_host_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"no\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(AlertDeliveryError, match=r"^127\.0\.0\.1:\d+: no$"):
            alert_sink(f"http://127.0.0.1:{server.getsockname()[1]}/hook")("{}")
        thread.join()
    with pytest.raises(PipelineError, match=r"^http:///hook names no host: --alerts wants a URL such as"):
        alert_sink("http:///hook")


def test_a_webhook_that_does_not_answer_or_is_not_there_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_sinks, "TIMEOUT_S", 0.05)
    with webhook(None) as (url, _), pytest.raises(AlertDeliveryError, match="timed out"):
        alert_sink(url)("{}")
    with pytest.raises(AlertDeliveryError, match="Connection refused"):
        alert_sink(url)("{}")
