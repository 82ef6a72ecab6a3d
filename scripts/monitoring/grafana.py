"""
Turn a board into what Grafana reads.

Every panel is built by Grafana's own types, so that what cannot be read there
cannot be written here.
"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import common, heatmap, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as boards
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import GraphDrawStyle, StackingMode
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, VariableRefresh
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from monitoring.charts import Board, Chart, Kind, Query

_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT: Final = 8

_Panel = timeseries.Panel | stat.Panel | heatmap.Panel | table.Panel


def rendered(board: Board) -> str:
    """Return the dashboard as JSON."""
    made = (
        boards.Dashboard(board.title)
        .uid(f"rollcage-{board.name}")
        .description(board.says)
        .tags(["rollcage"])
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(boards.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_choice("namespace", "rollcage_store_up"))
    )
    if board.by_environment:
        made = made.with_variable(_choice("environment", "rollcage_pool_sandboxes"))
    for row in board.rows:
        made = made.with_row(boards.Row(row.title))
        for chart in row.charts:
            made = made.with_panel(_panel(chart))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _choice(label: str, metric: str) -> boards.QueryVariable:
    return (
        boards.QueryVariable(label)
        .label(label.capitalize())
        .datasource(_SOURCE)
        .query(f"label_values({metric}, {label})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(multi=True)
        .include_all(include_all=True)
        # Also where a series has no such label.
        .all_value(".*")
    )


def _panel(chart: Chart) -> _Panel:
    panel = _drawn(chart).title(chart.title).description(chart.says).datasource(_SOURCE)
    panel = panel.unit(chart.unit).height(_HEIGHT).span(chart.width)
    for number, query in enumerate(chart.queries):
        panel = panel.with_target(_target(query, chr(ord("A") + number), chart.kind))
    return panel


def _drawn(chart: Chart) -> _Panel:
    match chart.kind:
        case Kind.NUMBER:
            return stat.Panel()
        case Kind.TABLE:
            return table.Panel()
        case Kind.HEAT:
            return heatmap.Panel()
        case Kind.STACK:
            stacked = common.StackingConfig().mode(StackingMode.NORMAL)
            return timeseries.Panel().draw_style(GraphDrawStyle.BARS).fill_opacity(60).stacking(stacked)
        case Kind.LINES:
            return timeseries.Panel().fill_opacity(5)


def _target(query: Query, name: str, kind: Kind) -> Dataquery:
    target = Dataquery().ref_id(name).expr(query.expr).legend_format(query.legend or "__auto")
    match kind:
        case Kind.TABLE:
            return target.instant().format(PromQueryFormat.TABLE)
        case Kind.HEAT:
            return target.range().format(PromQueryFormat.HEATMAP)
        case _:
            return target.range()
