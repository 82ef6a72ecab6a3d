"""
The system's own programs that the lab needs, and the Debian packages that bring them.

Nothing is installed unless asked: what is missing is named, with the line that
installs it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from lab.places import cache
from lab.talk import LabError, complain, run, step

PACKAGE_OF = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "iptables": "iptables",
    "ip": "iproute2",
    "nft": "nftables",
    "conntrack": "conntrack",
    "debootstrap": "debootstrap",
    "gcc": "gcc",
    "/usr/include/seccomp.h": "libseccomp-dev",
    "/usr/include/stdlib.h": "libc6-dev",
    "pkg-config": "pkg-config",
    "chromium": "chromium",
    "bwrap": "bubblewrap",
}

RUN_ENGINE = ("dockerd", "docker", "iptables", "ip")
BUILD_NODE = ("debootstrap", "gcc", "/usr/include/seccomp.h", "/usr/include/stdlib.h", "pkg-config")


def need(*programs: str, install: bool) -> None:
    """Make sure that programs (or, given as a path, files) are there."""
    missing = sorted({PACKAGE_OF[name] for name in programs if not _there(name)})
    if not missing:
        return
    line = f"apt-get install -y --no-install-recommends {' '.join(missing)}"
    if not install:
        raise LabError(f"missing: {', '.join(missing)}", f"{line}    (or pass --install)")
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise LabError(f"cannot install {', '.join(missing)}: that takes root and apt-get", line)
    with step(f"installing {', '.join(missing)}"):
        # Debian starts a daemon it installs; ours is started by us, with our own directories.
        guard = Path("/usr/sbin/policy-rc.d")
        ours = not guard.exists()
        if ours:
            guard.write_text("#!/bin/sh\nexit 101\n")
            guard.chmod(0o755)
        try:
            env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            run(["apt-get", "update"], env=env, log=cache("logs") / "apt-update.log")
            run(line.split(), env=env, log=cache("logs") / "apt-install.log")
        finally:
            if ours:
                guard.unlink()


def main() -> int:
    """Install what the programs named on the command line need."""
    try:
        need(*sys.argv[1:], install=True)
    except LabError as error:
        return complain(error)
    return 0


def _there(name: str) -> bool:
    return Path(name).exists() if name.startswith("/") else shutil.which(name) is not None


if __name__ == "__main__":
    sys.exit(main())
