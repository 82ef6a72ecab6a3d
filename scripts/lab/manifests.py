"""
Plain manifests out of the chart, and what the chart has of the resource definition: a copy, and part of its schema.

The command line of ``scripts/manifests``. What is written depends on the tree
alone: secrets are named, never generated.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from lab import parts
from lab.places import ROOT
from lab.talk import LabError, complain, run
from lab.values_schema import with_environments

if TYPE_CHECKING:
    from pathlib import Path

CHART = ROOT / "helm" / "rollcage"
MANIFESTS = ROOT / "manifests"
DEFINITION = MANIFESTS / "crd" / "environments.rollcage.dev.yaml"
COPY = CHART / "crds" / DEFINITION.name
SCHEMA = CHART / "values.schema.json"
VALUES = MANIFESTS / "values.yaml"

MONITORING = ("monitors", "rules", "dashboards")

_HEAD = "# Rendered by scripts/manifests from helm/rollcage with manifests/values.yaml; do not edit.\n"


def helm() -> Path | str:
    """Return helm: the one on the PATH, else one built from its Go module."""
    return shutil.which("helm") or parts.build(parts.HELM) / "helm"


def template(*options: str | Path, namespace: str = "rollcage", release: str = "rollcage") -> str:
    """Return what the chart makes of some options, without a cluster."""
    version = parts.KUBERNETES_VERSION
    return run([helm(), "template", release, CHART, f"--namespace={namespace}", f"--kube-version={version}", *options])


def rendered() -> dict[Path, str]:
    """Return every file that belongs to the chart's content, with the text that it should have."""
    definition = DEFINITION.read_text()
    plain = ("--skip-tests", "--no-hooks", f"--values={VALUES}")
    everything = _tidy(template(*plain))
    watched = _tidy(template(*plain, *(f"--set=monitoring.{one}.enabled=true" for one in MONITORING)))
    # What monitoring adds to the rest.
    known = set(_documents(everything))
    monitoring = [document for document in _documents(watched) if document not in known]
    return {
        COPY: definition,
        SCHEMA: with_environments(SCHEMA.read_text(), definition),
        MANIFESTS / "rollcage.yaml": _HEAD + everything,
        MANIFESTS / "monitoring.yaml": _HEAD + "---\n" + "---\n".join(monitoring),
    }


def _documents(text: str) -> list[str]:
    return [document for document in text.split("---\n") if document.strip()]


def _tidy(text: str) -> str:
    """Drop what Helm adds for itself, and the space that templates leave behind."""
    lines = (line.rstrip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("# Source:"))


def main() -> int:
    """Write the files that differ."""
    try:
        for path, text in rendered().items():
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
                print(path.relative_to(ROOT))
    except LabError as error:
        return complain(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
