"""
What this machine allows: which capabilities a container can be given.
"""

from __future__ import annotations

import re
from pathlib import Path

# Those that machines are known to withhold, by their numbers in linux/capability.h.
# A name is needed to drop one; an unknown missing one is reported by its number.
NAMES = {
    12: "NET_ADMIN",
    16: "SYS_MODULE",
    17: "SYS_RAWIO",
    19: "SYS_PTRACE",
    21: "SYS_ADMIN",
    22: "SYS_BOOT",
    24: "SYS_RESOURCE",
    25: "SYS_TIME",
    34: "SYSLOG",
    38: "PERFMON",
    39: "BPF",
}


def missing_capabilities(proc: Path = Path("/proc")) -> list[str]:
    """Return the capabilities that no process started from here can have."""
    last = int((proc / "sys/kernel/cap_last_cap").read_text())
    status = (proc / "self/status").read_text()
    found = re.search(r"CapBnd:\s*([0-9a-f]+)", status)
    bounding = int(found[1], 16) if found else 0
    return [NAMES.get(n, f"#{n}") for n in range(last + 1) if not bounding >> n & 1]
