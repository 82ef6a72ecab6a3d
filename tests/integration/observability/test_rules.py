"""Every alert fires when it should and only then, and says what it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from integration.observability.rules import CASES, Case
from rollcage.core.health import HOLD_SHARE, SKIP_SHARE
from rollcage.telemetry.metrics import Metrics
from support.prometheus import promtool

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "helm/rollcage/rules").glob("*.yaml"))


def rules() -> list[dict[str, Any]]:
    groups = [group for file in FILES for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}


def test_the_rules_are_what_prometheus_takes() -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", *FILES)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.says}")
def test_an_alert_fires_when_it_should(case: Case, tmp_path: Path) -> None:
    trial = tmp_path / "trial.yaml"
    trial.write_text(yaml.safe_dump(_trial(case)))
    done = promtool("test", "rules", trial)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_firing_and_silent() -> None:
    assert {case.alert for case in CASES if case.fires} == ALERTS.keys()
    assert {case.alert for case in CASES if not case.fires} == ALERTS.keys()


def test_the_bounds_are_those_of_a_runs_health() -> None:
    assert f"> {HOLD_SHARE}" in ALERTS["RollcageInfraFailures"]["expr"]
    assert f"> {SKIP_SHARE}" in ALERTS["RollcageStepUnsafe"]["expr"]


def test_no_rule_asks_for_a_metric_that_nobody_exposes() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.know(["swe"])
    exposed = {family.name.removesuffix("_total") for family in metrics.registry.collect()}
    for rule in rules():
        for word in rule["expr"].replace("(", " ").replace("{", " ").replace("[", " ").replace(")", " ").split():
            if word.startswith("rollcage_"):
                assert word.removesuffix("_total").removesuffix("_bucket") in exposed, rule


def _trial(case: Case) -> dict[str, Any]:
    expected = []
    if case.fires:
        rule = ALERTS[case.alert]
        expected.append(
            {
                "exp_labels": {**case.labels, **rule["labels"]},
                "exp_annotations": {"summary": case.summary, "runbook": f"docs/runbooks/{case.alert}.md"},
            }
        )
    series = [{"series": name, "values": values} for name, values in case.series.items()]
    asked = {"eval_time": case.at, "alertname": case.alert, "exp_alerts": expected}
    return {
        "rule_files": [str(file) for file in FILES],
        "evaluation_interval": "1m",
        "tests": [{"name": case.says, "interval": "1m", "input_series": series, "alert_rule_test": [asked]}],
    }
