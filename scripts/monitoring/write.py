"""
Write every dashboard into the chart.
"""

from __future__ import annotations

from pathlib import Path

from monitoring.gateway import GATEWAY
from monitoring.grafana import rendered
from monitoring.pools import POOLS
from monitoring.rollouts import ROLLOUTS
from monitoring.tool_failures import TOOL_FAILURES

BOARDS = (TOOL_FAILURES, POOLS, ROLLOUTS, GATEWAY)
TARGET = Path(__file__).resolve().parents[2] / "helm/rollcage/dashboards"


def main() -> None:
    """Write them."""
    for board in BOARDS:
        (TARGET / f"{board.name}.json").write_text(rendered(board))


if __name__ == "__main__":
    main()
