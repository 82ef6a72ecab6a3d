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
from grafana_foundation_sdk.models.common import (
    GraphDrawStyle,
    GraphTresholdsStyleMode,
    ScaleDistribution,
    StackingMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from monitoring.charts import SHOWN, Board, Chart, Kind, Query

_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT: Final = 8
# Grafana asks about windows that overlap when its points are closer than some scrapes; what is counted between two
# points would then be counted several times. With a minute between them the overlap is small.
_CLOSEST: Final = "1m"
_NO_COLOUR: Final = "text"
_DURATION: Final = "s"

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
    panel = panel.height(_HEIGHT).span(chart.width).thresholds(_thresholds(chart))
    if any("increase(" in query.expr and SHOWN not in query.expr for query in chart.queries):
        panel = panel.interval(_CLOSEST)
    for ending, colour in chart.paint.items():
        fixed = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
        panel = panel.override_by_regexp(f"/(^| )({ending})$/", [fixed])
    for number, query in enumerate(chart.queries):
        panel = panel.with_target(_target(query, chr(ord("A") + number), chart.kind))
    return panel


def _drawn(chart: Chart) -> _Panel:
    match chart.kind:
        case Kind.NUMBER:
            return stat.Panel().unit(chart.unit)
        case Kind.TABLE:
            # When it was asked is the same in every row, and Grafana calls every figure a value.
            (query,) = chart.queries
            named = {"excludeByName": {"Time": True}, "renameByName": {"Value": query.legend}}
            return table.Panel().unit(chart.unit).with_transformation(DataTransformerConfig("organize", options=named))
        case Kind.HEAT:
            # The unit is that of the axis; what a cell shows is a number of them.
            axis, cells = heatmap.YAxisConfig().unit(chart.unit), heatmap.CellValues().unit("short")
            return heatmap.Panel().y_axis(axis).cell_values(cells).unit("short").show_tooltip()
        case Kind.STACK:
            stacked = common.StackingConfig().mode(StackingMode.NORMAL)
            bars = timeseries.Panel().draw_style(GraphDrawStyle.BARS).fill_opacity(60).stacking(stacked)
            return bars.unit(chart.unit)
        case Kind.LINES:
            lines = timeseries.Panel().fill_opacity(5).unit(chart.unit)
            if chart.unit == _DURATION:
                # Powers of ten: what takes milliseconds and what takes minutes are in one picture.
                powers = common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10)
                return lines.scale_distribution(powers)
            # From zero on, unless something is below it: a ripple must not fill the panel.
            lines = lines.axis_soft_min(0)
            if chart.colours:
                style = common.GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED)
                # Also while all is well: how far it is from there is what one wants to see.
                lines = lines.thresholds_style(style).axis_soft_max(max(figure for figure, _ in chart.colours))
            return lines


def _thresholds(chart: Chart) -> boards.ThresholdsConfig:
    # Grafana's own default is red from 80 on, whatever is shown.
    steps = [Threshold(value=None, color=_NO_COLOUR), *(Threshold(value, colour) for value, colour in chart.colours)]
    return boards.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _target(query: Query, name: str, kind: Kind) -> Dataquery:
    target = Dataquery().ref_id(name).expr(query.expr).legend_format(query.legend)
    match kind:
        case Kind.TABLE:
            return target.instant().format(PromQueryFormat.TABLE).legend_format("__auto")
        case Kind.NUMBER:
            return target.instant()
        case Kind.HEAT:
            return target.range().format(PromQueryFormat.HEATMAP)
        case _:
            return target.range()
