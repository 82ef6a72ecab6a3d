from __future__ import annotations

import json
import shlex
from types import SimpleNamespace
from typing import Any

from rollcage.sandboxes.local.tiers import Detection, Tier
from rollcage.wiring.announcing import announcement, curl
from rollcage.wiring.laptop import Laptop
from support.environments import environment


def running(tier: Tier = Tier.BUBBLEWRAP, **spec: Any) -> Laptop:
    source: Any = SimpleNamespace(detection=Detection(tier))
    store: Any = None
    return Laptop("http://127.0.0.1:1", "a-token", {"small": environment("small", **spec)}, source, store)


def test_the_line_to_try_survives_a_shell() -> None:
    laptop = running()

    program, _, target, *options = shlex.split(curl(laptop, laptop.environments["small"]))

    assert (program, target) == ("curl", "http://127.0.0.1:1/agent-rft/environments/small/tools")
    assert "Authorization: Bearer a-token" in options
    assert json.loads(json.loads(options[-1])["arguments"]) == {"command": "echo hello from $(hostname)"}


def test_an_environment_without_a_shell_is_asked_for_its_tools_instead() -> None:
    laptop = running(tools={"builtin": ["read_file"]})

    assert "/v1/environments/small/tools" in curl(laptop, laptop.environments["small"])


def test_that_nothing_is_isolated_is_said_in_capitals() -> None:
    assert "NOTHING IS ISOLATED" in announcement(running(Tier.NONE))
    assert "NOTHING IS ISOLATED" not in announcement(running())
