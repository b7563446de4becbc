"""The dashboard of the docs asks for what a watch serves, and for nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from groupcoord.pipeline.watch.metric_names import METRICS, Metric

DASHBOARD = json.loads(
    Path(__file__).parents[3].joinpath("docs", "grafana", "groupcoord-watch.json").read_text(encoding="utf-8")
)
QUERIES: list[str] = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
QUERIES += [variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query"]
SERVED = {metric.served_name: metric for metric in METRICS}
_METRIC = re.compile(r"\b(?:kafka|groupcoord)_\w+")


@pytest.mark.parametrize("query", QUERIES)
def test_every_metric_of_a_query_is_served(query: str) -> None:
    named = _METRIC.findall(query)
    assert named
    assert set(named) <= set(SERVED)


@pytest.mark.parametrize("target", [target for panel in DASHBOARD["panels"] for target in panel["targets"]])
def test_every_label_of_a_query_is_one_that_its_metric_has(target: dict[str, Any]) -> None:
    [metric] = [SERVED[name] for name in set(_METRIC.findall(target["expr"]))]
    asked = re.findall(r"(\w+)=~?\"", target["expr"]) + re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
    asked += [label for labels in re.findall(r"by \((\w+)\)", target["expr"]) for label in labels.split(",")]
    assert set(asked) <= set(metric.labels)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_shown(metric: Metric) -> None:
    assert any(metric.served_name in _METRIC.findall(query) for query in QUERIES)


def test_the_places_of_panels_do_not_overlap() -> None:
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
