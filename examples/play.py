"""
Play an example's scripted rollouts against a running service, as Agent RFT would, and compare the scores.

Usage: rollcage dev --example finqa, and in another terminal
       ROLLCAGE_TOKEN=... python examples/play.py finqa [--url http://127.0.0.1:8080] [--json]

Every rollout stands in the example's rollouts.yaml: its calls, its final
answer, and the score it must get. Exit code 1 if one got another.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

HERE = Path(__file__).parent
# Longer than a grading with a sandbox of its own takes on a busy machine.
SECONDS = 300


@dataclass(frozen=True)
class Played:
    """What became of one rollout."""

    name: str
    expected: float
    score: float | None
    outputs: tuple[str, ...]
    parts: dict[str, float]
    notes: tuple[str, ...]

    @property
    def as_expected(self) -> bool:
        """Whether it got the score it must get."""
        return self.score is not None and abs(self.score - self.expected) < 0.001  # noqa: PLR2004


class Trainer:
    """Speaks Agent RFT to one environment, and asks for details in the service's own language."""

    def __init__(self, url: str, token: str, environment: str) -> None:
        self._base = f"/agent-rft/runs/examples/environments/{environment}"
        # No proxy: the service is on this machine.
        headers = {"authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=SECONDS, trust_env=False)

    def call(self, trace: str, item: dict[str, Any], call: dict[str, Any], number: int) -> str:
        """Make a tool call and return what the model sees."""
        arguments = json.dumps(call.get("arguments", {}))
        body = {"type": "function_call", "name": call["tool"], "arguments": arguments}
        named = {"trace_id": trace, "call_id": f"call_{number}", "id": f"fc_{number}", "item": item}
        reply = self._http.post(f"{self._base}/tools", json={**body, **named}).raise_for_status()
        return str(reply.json()["output"])

    def grade(self, trace: str, item: dict[str, Any], answer: str) -> dict[str, Any]:
        """Ask for the score, and return it with its parts; a refusal has none."""
        sample: dict[str, Any] = {"output_text": answer, "output_json": None, "choices": [], "output_tools": []}
        reply = self._http.post(f"{self._base}/grade", json={"sample": sample, "item": item, "trace_id": trace})
        if reply.is_error:
            return {"score": None, "parts": {}, "notes": [f"{reply.status_code}: {reply.text[:300]}"]}
        details: dict[str, Any] = self._http.get(f"/v1/rollouts/{trace}/score").raise_for_status().json()
        assert details["score"] == reply.json()["score"]  # noqa: S101 - the trainer is told what is recorded
        return details


def play(trainer: Trainer, script: dict[str, Any], item: dict[str, Any]) -> Played:
    """Play one rollout: its calls, all at once where the script says so, then the grading."""
    trace = f"trace_{secrets.token_hex(16)}"
    calls = [(trace, item, call, number) for number, call in enumerate(script.get("calls", ()))]
    with ThreadPoolExecutor(8 if script.get("parallel") else 1) as threads:
        outputs = tuple(threads.map(lambda one: trainer.call(*one), calls))
    details = trainer.grade(trace, item, script.get("answer", ""))
    return Played(
        name=script["name"],
        expected=script["score"],
        score=details["score"],
        outputs=outputs,
        parts=details["parts"],
        notes=tuple(details["notes"]),
    )


def main() -> None:
    """Play all rollouts of an example."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("example", choices=sorted(path.parent.name for path in HERE.glob("*/rollouts.yaml")))
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--json", action="store_true", help="one JSON text per rollout")
    given = parser.parse_args()
    folder = HERE / given.example
    items = {item["id"]: item for item in map(json.loads, (folder / "data.jsonl").read_text().splitlines())}
    trainer = Trainer(given.url, os.environ.get("ROLLCAGE_TOKEN", ""), given.example)
    wrong = 0
    for script in yaml.safe_load((folder / "rollouts.yaml").read_text()):
        played = play(trainer, script, items[script["item"]])
        wrong += not played.as_expected
        print(json.dumps(vars(played)) if given.json else _line(played), flush=True)
    sys.exit(1 if wrong else 0)


def _line(played: Played) -> str:
    score = "refused" if played.score is None else f"{played.score:.3f}"
    mark = "" if played.as_expected else f"  EXPECTED {played.expected:.3f}"
    return f"{score:>8}  {played.name}{mark}  {'; '.join(played.notes)}"


if __name__ == "__main__":
    main()
