"""Metrics: what a scrape gets after each batch."""

import urllib.request
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome
from groupcoord.pipeline.watch.metric_names import METRICS
from groupcoord.pipeline.watch.metrics import MetricsServer, WatchMetrics
from tests.pipeline.frames import at
from tests.pipeline.watch.outcomes import group_row, lag_row, outcome

pytestmark = pytest.mark.slow  # a server of metrics takes half a second to stop

Series = dict[tuple[str, ...], float]
VIEWS: dict[str, list[dict[str, Any]]] = {
    "lag": [
        {**lag_row("app", 1, 5, "STALL"), "lag_seconds": 1.5, "records_lost": 2},
        lag_row("app", 0, 10),
        lag_row("new", 0, None, None),
    ],
    "current_groups": [group_row("new"), group_row("app", 2, "consumer")],
    "storms": [
        {"group": "app", "from": at(10), "to": at(60)},
        {"group": "app", "from": at(500), "to": at(590)},
        {"group": "gone", "from": at(500), "to": at(590)},
    ],
    "open_transactions": [
        {
            "topic": "orders",
            "partition": 0,
            "stable_offset": 90,
            "end_offset": 100,
            "producer_id": 7,
            "transactional_id": None,
            "since": at(0),
            "groups": ["app"],
        }
    ],
}


class Scraped:
    """A server, and what it serves after each outcome."""

    def __init__(self, limit: int = 100) -> None:
        self.said: list[str] = []
        self.metrics = WatchMetrics(limit=limit, hanging_after_s=300, say=self.said.append)

    def after(self, *outcomes: BatchOutcome) -> dict[str, Series]:
        for one in outcomes:
            self.metrics.update(one)
        with MetricsServer("127.0.0.1", 0, self.metrics) as server, urllib.request.urlopen(server.url) as answer:
            text = answer.read().decode()
        return {
            family.name: {
                tuple(sample.labels[name] for name in SERVED[sample.name]): sample.value for sample in family.samples
            }
            for family in text_string_to_metric_families(text)
        }


SERVED = {metric.served_name: metric.labels for metric in METRICS}


def test_it_serves_what_the_views_say() -> None:
    found = Scraped().after(outcome(VIEWS, records=42, behind=3, took_s=1.5, rebalances={"app": 6, "gone": 1}))
    assert found["kafka_consumergroup_lag"] == {("app", "orders", "0"): 10, ("app", "orders", "1"): 5}
    assert found["kafka_consumergroup_current_offset"] == {
        ("app", "orders", "0"): 90,
        ("app", "orders", "1"): 95,
        ("new", "orders", "0"): 100,
    }
    assert found["kafka_consumergroup_lag_seconds"] == {("app", "orders", "1"): 1.5}
    assert found["kafka_consumergroup_records_lost"] == {("app", "orders", "1"): 2}
    assert found["kafka_consumergroup_lag_sum"] == {("app", "orders"): 15}
    assert found["kafka_consumergroup_partition_status"] == {("app", "orders", "0"): 1, ("app", "orders", "1"): 5}
    assert found["kafka_consumergroup_members"] == {("app",): 2, ("new",): 0}
    assert found["kafka_consumergroup_state"] == {("app", "consumer", "Stable"): 1, ("new", "classic", "Empty"): 1}
    assert found["kafka_consumergroup_rebalances"] == {("app",): 6, ("new",): 0}
    assert found["kafka_consumergroup_rebalance_storms"] == {("app",): 2, ("new",): 0}
    assert found["kafka_consumergroup_rebalance_storm"] == {("app",): 1, ("new",): 0}
    assert found["kafka_open_transactions"] == found["kafka_hanging_transactions"] == {(): 1}
    since = at(0).timestamp()
    assert found["kafka_topic_partition_open_transaction_start_timestamp_seconds"] == {("orders", "0"): since}
    assert found["kafka_topic_partition_last_stable_offset_lag"] == {("orders", "0"): 10}
    assert found["groupcoord_watch_log_offsets_behind"] == {(): 3}
    assert found["groupcoord_watch_records"] == {(): 42}
    assert found["groupcoord_watch_views_timestamp_seconds"] == {(): at(600).timestamp()}
    assert found["groupcoord_watch_last_batch_timestamp_seconds"] == {(): at(600).timestamp() + 1.5}
    assert found["groupcoord_watch_last_batch_duration_seconds"] == {(): 1.5}
    assert "groupcoord_watch_series_left_out" not in found


def test_before_the_first_batch_there_is_nothing() -> None:
    assert Scraped().after() == {}


def test_where_the_source_does_not_know_of_open_transactions_there_is_no_number_of_them() -> None:
    known, unknown = (Scraped().after(outcome(VIEWS, knows_transactions=knows)) for knows in (True, False))
    assert known.keys() - unknown.keys() == {
        "kafka_open_transactions",
        "kafka_hanging_transactions",
        "kafka_topic_partition_open_transaction_start_timestamp_seconds",
        "kafka_topic_partition_last_stable_offset_lag",
    }


def test_rebalances_add_up_and_what_belongs_to_a_group_that_is_gone_is_gone() -> None:
    scraped = Scraped()
    first = outcome(VIEWS, took_s=1.0, rebalances={"app": 6, "new": 1})
    later = {name: [row for row in rows if row.get("group") != "new"] for name, rows in VIEWS.items()}
    second = outcome(later, now=at(610), rebalances={"app": 2})
    found = scraped.after(first, second)
    assert found["kafka_consumergroup_rebalances"] == {("app",): 8}
    assert {labels[0] for series in found.values() for labels in series if len(labels) == 3} == {"app"}
    assert found["groupcoord_watch_last_batch_timestamp_seconds"] == {(): at(601).timestamp()}  # the second was none


def test_a_storm_is_over_a_minute_after_its_last_rebalance() -> None:
    going_on, over = (
        Scraped().after(outcome(VIEWS, now=at(590) + timedelta(seconds=passed)))["kafka_consumergroup_rebalance_storm"]
        for passed in (60, 61)
    )
    assert (going_on["app",], over["app",]) == (1, 0)


def test_no_metric_has_more_series_than_the_limit_and_it_is_said_what_is_left_out() -> None:
    scraped = Scraped(limit=2)
    many = {"lag": [lag_row("app", number, number) for number in range(5)], "current_groups": [group_row("app", 1)]}
    found = scraped.after(outcome(many), outcome(many))
    assert found["kafka_consumergroup_lag"] == {("app", "orders", "0"): 0, ("app", "orders", "1"): 1}
    assert found["kafka_consumergroup_lag_sum"] == {("app", "orders"): 10}  # also of what is left out
    assert found["groupcoord_watch_series_left_out"] == {
        ("kafka_consumergroup_current_offset",): 3,
        ("kafka_consumergroup_lag",): 3,
        ("kafka_consumergroup_partition_status",): 3,
    }
    assert scraped.said == ["metrics: up to 3 series of a metric are left out, above --metrics-limit 2"]


def test_a_port_in_use_is_one_sentence() -> None:
    metrics = Scraped().metrics
    with MetricsServer("127.0.0.1", 0, metrics) as server:
        port = int(server.url.removesuffix("/metrics").rpartition(":")[2])
        said = (
            rf"^cannot serve metrics at 127.0.0.1:{port}: Address already in use; choose another --metrics, or port 0"
        )
        with pytest.raises(PipelineError, match=said):
            MetricsServer("127.0.0.1", port, metrics)
    with MetricsServer("127.0.0.1", port, metrics):  # it is free again
        pass


def test_a_lag_that_does_not_fit_into_64_bits_is_still_summed() -> None:
    most = 2**63 - 1
    rows = [{**lag_row("app", number, 1), "lag": most} for number in range(3)]
    assert Scraped().after(outcome({"lag": rows}))["kafka_consumergroup_lag_sum"]["app", "orders"] == 3 * float(most)


def test_every_metric_that_has_a_name_is_served() -> None:
    found = Scraped(limit=1).after(outcome(VIEWS, behind=3, took_s=1.5))
    assert {metric.name for metric in METRICS} == {name for name, series in found.items() if series}
