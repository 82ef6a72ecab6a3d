"""
Say what runs on a laptop and how it is used, in lines that can be pasted.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from rollcage.gateway.definitions import tool_names
from rollcage.sandboxes.local.tiers import Tier

if TYPE_CHECKING:
    from rollcage.core.environment import Environment
    from rollcage.wiring.laptop import Laptop


def announcement(running: Laptop) -> str:
    """Return the text for whoever started it."""
    tier = running.source.detection.tier
    warning = ["", "WARNING: NOTHING IS ISOLATED. A command that destroys files destroys yours."]
    first = next(iter(running.environments.values()))
    return "\n".join(
        [
            f"Rollcage is up. Sandboxes are held in by: {tier}",
            *(warning if tier is Tier.NONE else []),
            "",
            f"  console       {running.url}/console/",
            f"  Agent RFT     {running.url}/agent-rft/environments/ENVIRONMENT/tools",
            f"  native API    {running.url}/v1, described at {running.url}/openapi.json",
            f"  environments  {', '.join(running.environments)}",
            "",
            "For the other commands, in another terminal:",
            f"  export ROLLCAGE_URL={running.url} ROLLCAGE_TOKEN={running.token}",
            "",
            "Try it:",
            f"  {curl(running, first)}",
            "",
            "Ctrl-C stops it and leaves nothing behind.",
        ]
    )


def curl(running: Laptop, environment: Environment) -> str:
    """Return a command that does something in an environment."""
    header = shlex.quote(f"Authorization: Bearer {running.token}")
    if "shell" not in tool_names(environment):
        return f"curl -s {running.url}/v1/environments/{environment.name}/tools -H {header}"
    call = {"name": "shell", "arguments": json.dumps({"command": "echo hello from $(hostname)"})}
    target = f"{running.url}/agent-rft/environments/{environment.name}/tools"
    return f"curl -s {target} -H {header} -d {shlex.quote(json.dumps(call))}"
