"""
Grading for tests: environments with graders, a desk over a stage, team functions that misbehave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rollcage.gateway.app import gateway
from rollcage.grading.desk import Desk
from support.environments import environment
from support.gateways import Caller, all_is_well, parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollcage.core.environment import Environment
    from rollcage.grading.workers import Workers
    from support.stage import Stage


def graded(name: str = "small", *, grader: Mapping[str, Any], **grading: Any) -> Environment:
    """Return the small environment with a grader."""
    return environment(name, grading={"grader": grader, **grading})


def function(name: str, **options: Any) -> dict[str, Any]:
    """Return a grader that is a team's own function."""
    return {"kind": "function", "function": f"misbehaving:{name}", "options": options}


class Grader:
    """A gateway over a stage, whose one environment can be given another grader."""

    def __init__(self, stage: Stage, workers: Workers) -> None:
        self.stage = stage
        self.environments = {"small": environment()}
        made = parts(stage.use_cases, records=stage.store.rollouts, environments=self.environments)
        self.desk = Desk(
            use_cases=stage.use_cases,
            scores=stage.store.scores,
            environments=self.environments,
            workers=workers,
            metrics=made.metrics,
        )
        self.metrics = made.metrics
        made.metrics.environments.know(["small"])
        self.ask = Caller(gateway(replace(made, graders=self.desk), checks=all_is_well))

    def use(self, grader: Mapping[str, Any], **grading: Any) -> None:
        """Grade by this from now on."""
        self.environments["small"] = graded(grader=grader, **grading)

    async def shell(self, command: str, rollout: str = "trace_1") -> str:
        body = {"name": "shell", "arguments": {"command": command}, "trace_id": rollout}
        reply = await self.ask("POST", "/agent-rft/runs/run-1/environments/small/tools", body)
        assert reply.status == 200, reply
        output: str = reply.json()["output"]
        return output

    async def grade(self, text: str = "", item: Mapping[str, Any] | None = None, **fields: Any) -> Any:
        """Ask as a trainer does; return the score, or status and code."""
        body = {"sample": {"output_text": text, "output_json": None}, "item": item or {}, "trace_id": "trace_1"}
        reply = await self.ask("POST", "/agent-rft/runs/run-1/environments/small/grade", {**body, **fields})
        return reply.json()["score"] if reply.status == 200 else reply.code
