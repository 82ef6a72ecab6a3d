"""The gateway's copy of the built-in tools is what the toolserver says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rollcage.core.environment import toolserver_config
from rollcage.gateway.definitions import definitions
from support.builtin_tools import COPY, told
from support.environments import environment

if TYPE_CHECKING:
    from support.stage import Stage

HOW = "PYTHONPATH=scripts:tests python -m support.builtin_tools writes it anew"


def test_the_copy_is_what_the_toolserver_says(stage: Stage) -> None:
    assert json.loads(COPY.read_text()) == told(stage.start("sbx-1")), HOW


def test_an_environments_tools_are_those_that_its_sandboxes_offer(stage: Stage) -> None:
    tool = {
        "name": "lint",
        "description": "Look for mistakes.",
        "command": ["/bin/true"],
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    chosen = environment(tools={"builtin": ["shell", "list"], "custom": [tool]})
    config = toolserver_config(chosen)
    offered = told(stage.start("sbx-1", tools=config["tools"], custom_tools=config["custom_tools"]))
    assert {one["name"]: one for one in offered} == {
        one.name: {"name": one.name, "description": one.description, "parameters": one.parameters}
        for one in definitions(chosen)
    }
