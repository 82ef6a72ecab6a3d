"""
Bursts and runs to make pages of: ordinary ones, and ones whose every word a hostile model chose.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rollcage.reports.burst import burst_page
from rollcage.reports.burst_data import Burst, BurstRollout, PoolLevel
from rollcage.reports.run import run_page
from rollcage.reports.run_data import RunData, RunRollout, ToolCall

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e</title></style>"

BURST = Burst(
    title="A burst",
    url="http://service",
    environment="small",
    run="run-1",
    began_at=NOW,
    seconds=3.0,
    rollouts=(
        BurstRollout("good", 0.0, 0.5, 1.0, (0.5, 0.01), "trainable", "finished", "", "sbx-1"),
        BurstRollout("lost", 0.0, 0.7, 2.0, (0.7,), "masked", "node_lost", "", "sbx-2"),
        BurstRollout("late", 0.0, None, 3.0, (), "", "", "claim_timed_out"),
    ),
    pool=(PoolLevel(0, warm=3, claimed=0), PoolLevel(1, warm=0, claimed=3, queued=1)),
)


def rollout(number: int, score: float | None = None, item: str | None = None, **changes: object) -> RunRollout:
    made = RunRollout(f"r{number}", NOW + timedelta(minutes=number), number, 1, "trainable", "finished", score, item)
    return replace(made, **changes)  # type: ignore[arg-type]


RUN = RunData(
    run="run-1",
    url="http://service",
    now=NOW,
    advice="hold",
    reasons=("many_masked",),
    causes={"node_lost": 1},
    rollouts=(
        *(rollout(number, number / 10, "easy") for number in range(6)),
        *(rollout(number, 0.0, "hopeless") for number in range(6, 9)),
        rollout(9, word="masked", cause="node_lost"),
    ),
    calls=(ToolCall("shell", "ok", 0.2, 100), ToolCall("read_file", "failed", None, 0)),
    sampled=2,
)


def hostile_burst() -> str:
    first = replace(BURST.rollouts[1], rollout=HOSTILE, cause=HOSTILE, sandbox=HOSTILE)
    return burst_page(
        replace(BURST, title=HOSTILE, url=HOSTILE, environment=HOSTILE, notes=(HOSTILE,), rollouts=(first,))
    )


def hostile_run() -> str:
    bad = [rollout(n, n / 2, HOSTILE, rollout=HOSTILE, cause=HOSTILE, word="masked" if n else "") for n in range(3)]
    flat = [rollout(n, 1.0, HOSTILE) for n in range(2)]
    calls = (ToolCall(HOSTILE, HOSTILE, 1.0, 1),)
    return run_page(replace(RUN, run=HOSTILE, advice=HOSTILE, reasons=(HOSTILE,), rollouts=(*bad, *flat), calls=calls))
