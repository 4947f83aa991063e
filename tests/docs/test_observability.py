"""The page on observability and the dashboard name what the code measures, as Prometheus names it."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from typing import Any, get_args

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry, generate_latest

from supermemory_livekit import Degraded, Recalled, Restored, Stored, events
from supermemory_livekit.observability import metrics
from tests.docs.update_readme import REPOSITORY

PAGE = (REPOSITORY / "docs" / "how-to" / "observability.md").read_text("utf-8")
DASHBOARD: dict[str, Any] = json.loads(
    (REPOSITORY / "docs" / "grafana" / "supermemory-livekit.json").read_text("utf-8")
)
SOURCE = inspect.getsource(metrics)
NAMES = re.findall(r'"(supermemory\.[a-z_.]+)"', SOURCE)


@pytest.fixture(scope="module")
def exported() -> str:
    """What Prometheus is shown once every instrument has measured something."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(registry=registry)
    provider = MeterProvider([reader])
    # Made anew by the code that makes them for everybody, on a provider that only this test reads.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "get_meter", provider.get_meter)
        made = metrics.instruments.__wrapped__()
    labels = {"outcome": "found", "source": "mirror", "request": "search", "part": "search", "tool": "forget"}
    labels["error.type"] = "ServiceTimeout"
    for field in fields(made):
        instrument = getattr(made, field.name)
        (instrument.record if hasattr(instrument, "record") else instrument.add)(1, labels)
    shown = generate_latest(registry).decode()
    provider.shutdown()
    return shown


def queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def test_every_query_of_the_dashboard_asks_for_metrics_that_prometheus_is_shown(exported: str) -> None:
    """Issue: the dashboard's names are those that the exporter gives, labels too."""
    known = set(re.findall(r"^(supermemory_\w+)\{", exported, re.MULTILINE))
    labels = set(re.findall(r'[{,](\w+)="', exported)) | {"job", "le"}
    for query in queries():
        asked = set(re.findall(r"supermemory_\w+", query))
        assert asked, query
        assert asked <= known
        used = set(re.findall(r"(\w+)(?:=~|=)\"", query))
        for group in re.findall(r"by \(([^)]*)\)", query):
            used |= {name.strip() for name in group.split(",")}
        assert used <= labels


def test_the_dashboard_shows_every_metric() -> None:
    """What is measured and never looked at is a cost."""
    asked = " ".join(queries())
    assert [name for name in NAMES if name.replace(".", "_") not in asked] == []


def test_the_page_names_every_metric_and_no_other() -> None:
    """Style 11: tables in the documentation are the code's."""
    listed = re.findall(r"^\| `(supermemory\.[a-z_.]+)`", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.parametrize("event", [Recalled, Stored, Degraded, Restored])
def test_the_page_names_every_field_of_an_event(event: type[Any]) -> None:
    """Style 11: tables in the documentation are the code's."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f'| `"{event.__name__.lower()}"`')]
    assert re.findall(r"`(\w+)`", row.partition("|")[2].partition("|")[2]) == [
        field.name for field in fields(event)
    ]


@pytest.mark.parametrize("values", [events.Outcome, events.Source, events.Part])
def test_the_page_names_every_value(values: Any) -> None:
    """Style 11: a value that is not explained is looked up in the code."""
    assert [value for value in get_args(values) if f"`{value}`" not in PAGE] == []


def test_the_code_of_the_page_runs() -> None:
    """Style 11: documentation is executed."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert blocks
    namespace: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"observability.md, block {number}", "exec"), namespace)
