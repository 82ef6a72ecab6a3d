"""Every alert has a page that says what it means, how to look and what to do, in words that the service knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from integration.observability.test_rules import ALERTS
from rollcage.core.verdict_words import Cause, Word
from rollcage.telemetry.labels import GradeLabel, RefusalLabel, StartLabel
from rollcage.telemetry.metrics import Metrics
from rollcage.telemetry.zeroes import word_of

if TYPE_CHECKING:
    from enum import StrEnum

ROOT = Path(__file__).parents[3]
RUNBOOKS = ROOT / "docs/runbooks"
PAGES = {page.stem: page.read_text() for page in RUNBOOKS.glob("*.md") if page.stem != "README"}
# Prometheus' and openssl's own.
FUNCTIONS = {"histogram_quantile", "s_client"}

# What an alert may be about, and the page that must say something of each.
ABOUT: dict[str, list[StrEnum]] = {
    "RollcageInfraFailures": [cause for cause in Cause if word_of(cause) is Word.MASKED],
    "RollcageStartFailures": list(StartLabel),
    "RollcageGradingRefused": [one for one in GradeLabel if one not in {GradeLabel.SCORED, GradeLabel.MASKED}],
    "RollcageGatewayErrors": list(RefusalLabel),
}


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert PAGES.keys() == ALERTS.keys()
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/runbooks/{name}.md"
        assert rule["labels"]["severity"] in {"warning", "critical"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_it_means_how_to_look_and_what_to_do(name: str) -> None:
    lines = PAGES[name].splitlines()
    assert lines[0] == f"# {name}"
    assert [line for line in lines if line.startswith("## ")] == ["## What it means", "## Look", "## Do"]
    assert f"({name}.md)" in (RUNBOOKS / "README.md").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_no_metric_event_or_cause_that_does_not_exist(name: str) -> None:
    families = Metrics(CollectorRegistry()).registry.collect()
    metrics = {family.name.removesuffix("_total") for family in families}
    sources = "".join(file.read_text() for file in (ROOT / "service/rollcage").rglob("*.py"))
    words = {
        word
        for code in re.findall("`([^`]+)`", PAGES[name])
        for word in re.findall("[a-z]+(?:_[a-z]+)+", code)
        if word not in FUNCTIONS
    }

    for word in words:
        if word.startswith("rollcage_"):
            assert re.sub("_(total|bucket)$", "", word) in metrics
        else:
            assert re.search(rf"\b{word}\b", sources), word


@pytest.mark.parametrize("name", ABOUT)
def test_a_page_leaves_out_nothing_that_its_alert_may_be_about(name: str) -> None:
    assert [one.value for one in ABOUT[name] if f"`{one}`" not in PAGES[name]] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_leads_only_where_there_is_something(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGES[name]):
        assert (RUNBOOKS / target).exists(), target
