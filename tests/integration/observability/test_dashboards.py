"""Every question of every panel is answered by a real Prometheus over a real service that has had every trouble."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from monitoring.grafana import rendered
from monitoring.write import BOARDS, TARGET
from rollcage.telemetry.labels import OutcomeLabel
from support.busy_service import busy_service
from support.prometheus import scraping

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = sorted((Path(__file__).parents[3] / "helm/rollcage/rules").glob("*.yaml"))
# What Grafana puts in: everything chosen, and an interval that spans the whole trouble.
FILLED = {"$namespace": ".*", "$environment": ".*", "$__rate_interval": "3m", "$__range": "5m"}
# More than the test takes.
HISTORY = 300.0
# Answered with zeros: the one would take longer to go wrong than this test may, and a laptop has no archive.
MAY_BE_ZERO = {"rollcage_records_dropped_total", "rollcage_archives_total"}


def questions(board: Any) -> Iterator[tuple[str, str]]:
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            expr = target["expr"]
            for name, value in FILLED.items():
                expr = expr.replace(name, value)
            assert "$" not in expr
            yield f"{board['title']} / {panel['title']} / {target['refId']}", expr


def boards() -> dict[str, Any]:
    return {file.stem: json.loads(file.read_text()) for file in sorted(TARGET.glob("*.json"))}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_charts_dashboards_are_those_of_the_code(board: Any) -> None:
    assert (TARGET / f"{board.name}.json").read_text() == rendered(board), "run scripts/dashboards"


def test_there_is_no_dashboard_without_code() -> None:
    assert boards().keys() == {board.name for board in BOARDS}


@pytest.mark.parametrize("name", boards())
def test_grafanas_own_types_read_a_dashboard_and_lose_nothing(name: str) -> None:
    written = boards()[name]
    assert json.loads(JSONEncoder().encode(Dashboard.from_json(written))) == written


@pytest.mark.parametrize("name", boards())
def test_every_panel_says_what_it_shows_and_in_which_unit(name: str) -> None:
    for panel in boards()[name]["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["description"], panel["title"]
        heat = panel["type"] == "heatmap"
        assert panel["options"]["yAxis"]["unit"] if heat else panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        # A table's columns are its labels; anything else needs a name for each line.
        if panel["type"] != "table":
            assert all(target["legendFormat"] != "__auto" for target in panel["targets"]), panel["title"]


@pytest.mark.parametrize("name", boards())
def test_every_panel_has_a_title_a_question_and_a_place_of_its_own(name: str) -> None:
    panels = [panel for panel in boards()[name]["panels"] if panel["type"] != "row"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["title"]
        assert panel["targets"]
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not taken & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


async def test_every_panel_shows_what_happened(binary: Path, tmp_path: Path) -> None:
    async with busy_service(binary) as busy:
        target = busy.service.url.removeprefix("http://")
        with scraping(target, rules=RULES, home=tmp_path) as prometheus:
            await prometheus.until('rollcage_pool_sandboxes{environment="swe", state="ready"} > 0')
            await busy.reserved()
            for _ in range(2):
                # Twice: a histogram that has not been seen before tells nothing of its first figures.
                await prometheus.scraped()
                await busy.trouble(prometheus)
            await busy.without_redis(prometheus)
            await prometheus.scraped()
            await prometheus.until('ALERTS{alertname="RollcageMisroutes", alertstate="firing"}')
            # Over a while: a scrape that a busy machine missed leaves a gap.
            outcomes = await prometheus.ask("sum by (outcome) (last_over_time(rollcage_calls_total[3m])) > 0")
            assert {series["metric"]["outcome"] for series in outcomes} == set(OutcomeLabel)
            asked = [one for board in boards().values() for one in questions(board)]
            answers = {what: (expr, await prometheus.history(expr, seconds=HISTORY)) for what, expr in asked}
    empty = [what for what, (expr, answer) in answers.items() if not _shows(expr, answer)]
    assert not empty, empty


def _shows(expr: str, answer: list[Any]) -> bool:
    figures = [float(figure) for series in answer for _, figure in series["values"]]
    if any(metric in expr for metric in MAY_BE_ZERO):
        return bool(figures)
    return any(figure > 0 for figure in figures)
