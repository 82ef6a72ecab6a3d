"""A picture of a dashboard shows every panel as its JSON says, and does not pass over what it does not understand."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from html import escape
from typing import Any

import pytest

from monitoring.pictures.asking import Answers, Series, Window, answers
from monitoring.pictures.page import page
from monitoring.pictures.panels import drawn
from monitoring.write import TARGET

WINDOW = Window(60_000, 60_600)
BOARDS = {file.stem: json.loads(file.read_text()) for file in TARGET.glob("*.json")}


def series(name: str, *figures: float, **labels: str) -> Series:
    points = [(WINDOW.begin + 60 * place, figure) for place, figure in enumerate(figures, 1)]
    return Series(name, labels, tuple(points))


def panel(kind: str, *, stacked: bool = False) -> Any:
    """Return some panel of a kind, without colours of its own."""
    panels = (one for board in BOARDS.values() for one in board["panels"] if one["type"] == kind)
    found = deepcopy(next(one for one in panels if ("stacking" in str(one)) == stacked))
    found["fieldConfig"]["overrides"] = []
    return found


def settings(**defaults: Any) -> dict[str, Any]:
    return {"fieldConfig": {"defaults": defaults, "overrides": []}}


def markup(shown: Any, *found: Series) -> str:
    return drawn(shown, Answers(found, step=60), window=WINDOW, width=800, height=300)


def rectangles(text: str) -> list[dict[str, float]]:
    found = re.findall(r"<rect ([^>]*)>", text)
    return [{name: float(value) for name, value in re.findall(r'\b(y|height)="([\d.]+)"', one)} for one in found]


@pytest.mark.parametrize("name", BOARDS)
def test_every_panel_of_a_dashboard_can_be_drawn(name: str) -> None:
    board = BOARDS[name]
    found = Answers((series("one of them", 1, 2, le="0.5"), series("another", 2, 4, le="+Inf")), step=60)
    picture = page(board, dict.fromkeys(range(len(board["panels"])), found), window=WINDOW)
    for one in board["panels"]:
        assert escape(one["title"]) in picture
    lines = sum(one["type"] == "timeseries" for one in board["panels"])
    assert picture.count("one of them") >= lines


def test_bars_that_are_stacked_stand_upon_each_other() -> None:
    lower, upper = rectangles(markup(panel("timeseries", stacked=True), series("a", 1), series("b", 3)))
    assert upper["y"] + upper["height"] == pytest.approx(lower["y"], abs=0.2)
    assert upper["height"] == pytest.approx(3 * lower["height"], abs=0.5)


def test_a_cell_of_a_heatmap_counts_its_own_bucket_alone() -> None:
    cumulated = [series("", 2, le="0.1"), series("", 2, le="1"), series("", 5, le="+Inf")]
    assert len(rectangles(markup(panel("heatmap"), *cumulated))) == 2


def test_a_panel_without_data_says_so() -> None:
    assert "No data" in markup(panel("timeseries"))


def test_a_series_has_the_colour_that_the_panel_gives_it() -> None:
    shown = panel("timeseries", stacked=True)
    fixed = {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}}
    shown["fieldConfig"]["overrides"] = [{"matcher": {"id": "byRegexp", "options": "/5xx$/"}, "properties": [fixed]}]
    colours = re.findall(r'fill="(#\w+)"', markup(shown, series("a 2xx", 1), series("a 5xx", 1)))
    assert colours == ["#73bf69", "#f2495c"]


@pytest.mark.parametrize(
    "strange",
    [{"type": "gauge"}, settings(unit="watt", custom={}), settings(unit="s", custom={"lineStyle": {"fill": "dash"}})],
    ids=["a kind", "a unit", "a style"],
)
def test_what_is_not_understood_is_an_error(strange: dict[str, Any]) -> None:
    with pytest.raises((NotImplementedError, KeyError)):
        markup({**panel("timeseries"), **strange}, series("a", 1))


class Asked:
    """A Prometheus that notes what it is asked, and knows nothing."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    async def ask(self, expr: str, *, at: float) -> list[Any]:
        del at
        self.questions.append(expr)
        return []

    async def between(self, expr: str, *, begin: float, end: float, step: float) -> list[Any]:
        del begin, end, step
        self.questions.append(expr)
        return []


@pytest.mark.parametrize(
    ("interval", "window"), [({}, "60s"), ({"interval": "1m"}, "75s")], ids=["by default", "with a bound of its own"]
)
async def test_a_rate_is_asked_about_the_window_that_grafana_takes(interval: dict[str, str], window: str) -> None:
    target = {"expr": 'rate(calls{namespace=~"$namespace"}[$__rate_interval])', "instant": False, "legendFormat": ""}
    asked: Any = Asked()
    await answers(
        {"targets": [target], **interval}, chosen={"namespace": ".*"}, prometheus=asked, window=WINDOW, width=800
    )
    assert asked.questions == [f'rate(calls{{namespace=~".*"}}[{window}])']
