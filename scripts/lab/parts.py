"""
Build the programs that a cluster is made of, from their Go modules.

Each part is a module of ours under ``images/kind-node/parts`` that pins one
upstream with its checksums and names, as ``tool``, the programs to build. What
is built lies in the cache under the part's name and a key made of everything
that went into it. How the programs become a node is ``node_image``'s business.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lab.places import NODE, cache, fingerprint, scratch
from lab.talk import LabError, run, step

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = NODE / "parts"
STATIC = {"CGO_ENABLED": "0"}


@dataclass(frozen=True)
class Patch:
    """One text of one upstream file, replaced at build time; the module cache stays untouched."""

    module: str
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Part:
    """One module to build, and what its build needs beside ``go build``."""

    name: str
    package: str = "tool"
    tags: str = ""
    ldflags: str = ""
    env: dict[str, str] = field(default_factory=lambda: STATIC)
    # Programs whose module path does not say what they are called.
    renames: dict[str, str] = field(default_factory=dict)
    patch: Patch | None = None

    @property
    def source(self) -> Path:
        """Where the module's own files are."""
        return SOURCES / self.name


def pinned(part: str, module: str) -> str:
    """Return the version that a part's go.mod requires of *module*, e.g. ``v1.36.3``."""
    found = re.search(rf"(?m)^(?:require)?\s*{re.escape(module)} (v\S+)", (SOURCES / part / "go.mod").read_text())
    if not found:
        raise LabError(f"{part}/go.mod does not require {module}")
    return found[1]


KUBERNETES_VERSION = pinned("kubernetes", "k8s.io/kubernetes")
_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR, *_ = KUBERNETES_VERSION.lstrip("v").split(".")

KIND = Part("kind")
HELM = Part("helm")
# Says what NetworkPolicies mean.
POLICIES = Part("policies", package=".")
# Without service discoveries and without the pages: it is told what to scrape, and asked by programs.
PROMETHEUS = Part("prometheus", tags="remove_all_sd")
NODE_PARTS = (
    Part(
        "kubernetes",
        # kubeadm chooses image names and feature defaults by this version.
        ldflags=f"-X {_VERSION}.gitVersion={KUBERNETES_VERSION} -X {_VERSION}.gitMajor={_MAJOR}"
        f" -X {_VERSION}.gitMinor={_MINOR} -X {_VERSION}.gitTreeState=clean",
    ),
    Part("etcd", renames={"server": "etcd"}),
    Part("coredns", package="."),
    Part(
        "containerd",
        # The snapshotters that are left out need C libraries and nobody here uses them.
        tags="no_btrfs,no_zfs,no_devmapper",
        # Each pod's shim collects all its garbage so often, needed or not: a seventh of a core with 500 idle pods.
        patch=Patch(
            "github.com/containerd/containerd/v2",
            "pkg/shim/shim.go",
            "time.Tick(30 * time.Second)",
            "time.Tick(10 * time.Minute)",
        ),
    ),
    Part("runc", tags="seccomp", env={"CGO_ENABLED": "1"}),
    Part("cni-plugins"),
    Part("node-network", package="."),
)
GVISOR = Part(
    "gvisor",
    renames={"shim": "containerd-shim-runsc-v1"},
    # The shim lowers its own OOM score and gives up when it may not, as on a
    # machine without CAP_SYS_RESOURCE. Zero needs no privilege.
    patch=Patch("gvisor.dev/gvisor", "pkg/shim/v1/manager.go", "oomScoreMax = -999", "oomScoreMax = 0"),
)


def build(part: Part) -> Path:
    """Return the directory with the part's programs, built if the cache has none."""
    return _cached(
        part.name,
        fingerprint(repr(part), _go("version"), files=[part.source]),
        lambda tmp: _compile(part, tmp),
    )


def pause() -> Path:
    """Return the directory with the static ``pause``."""
    source = SOURCES / "pause"

    def compile_c(tmp: Path) -> None:
        run(["gcc", "-Os", "-static", "-s", "-o", tmp / "bin" / "pause", source / "pause.c"])

    return _cached("pause", fingerprint(files=[source]), compile_c)


def module_files(part: str, module: str) -> Path:
    """Return where the module cache has the sources of an upstream module."""
    return Path(_go("list", "-m", "-f", "{{.Dir}}", module, cwd=SOURCES / part))


def _go(*args: str, cwd: Path = SOURCES) -> str:
    if not shutil.which("go"):
        raise LabError("there is no go on the PATH", "scripts/bootstrap puts one into .venv/bin")
    if args[0] == "list":
        run(["go", "mod", "download", args[-1]], cwd=cwd)
    return run(["go", *args], cwd=cwd).strip()


def _cached(name: str, key: str, compile_into: Callable[[Path], None]) -> Path:
    """Return the cached build, or make it; it appears in one step, so that the cache never holds half of one."""
    target = cache("parts") / f"{name}-{key}"
    if target.is_dir():
        return target
    with step(f"building {name}"), scratch() as tmp:
        built = tmp / "bin"
        built.mkdir()
        compile_into(tmp)
        try:
            built.rename(target)
        except OSError:
            if not target.is_dir():  # unless somebody else built the same at the same time
                raise
    return target


def _compile(part: Part, tmp: Path) -> None:
    argv = [
        "go",
        "build",
        "-trimpath",
        "-buildvcs=false",
        f"-ldflags=-s -w {part.ldflags}",
        f"-tags={part.tags}",
    ]
    if part.patch:
        argv.append(f"-modfile={_patched_modfile(part, part.patch, tmp)}")
    run(
        [*argv, "-v", "-o", f"{tmp}/bin/", part.package],
        cwd=part.source,
        env={**os.environ, **part.env},
        log=cache("logs") / f"{part.name}.log",
        hint="the first build downloads Go modules: is the module proxy reachable?",
    )
    for old, new in part.renames.items():
        (tmp / "bin" / old).rename(tmp / "bin" / new)


def _patched_modfile(part: Part, patch: Patch, tmp: Path) -> Path:
    """Copy the upstream module, patch the copy, and return a go.mod that builds from it."""
    copy = tmp / "module"
    shutil.copytree(module_files(part.name, patch.module), copy)
    run(["chmod", "-R", "u+w", copy])  # the module cache is read-only
    file = copy / patch.file
    text = file.read_text()
    if patch.old not in text:
        raise LabError(f"{patch.file} no longer contains {patch.old!r}", f"revise the patch of {part.name}")
    file.write_text(text.replace(patch.old, patch.new))
    for name in ("go.mod", "go.sum"):
        shutil.copy(part.source / name, tmp)
    run(["go", "mod", "edit", f"-replace={patch.module}={copy}", tmp / "go.mod"])
    return tmp / "go.mod"
