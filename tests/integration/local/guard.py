"""
What must be true before a test lets a sandbox destroy anything.
"""

# A look at a file holds nobody up: the loop has nothing else to do.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.local_sandboxes import LocalSandbox

NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "user")


async def assert_own_root(sandbox: LocalSandbox, canary: Path) -> None:
    """Make sure that commands run in a root and with processes of their own, and nowhere else."""
    assert (await sandbox.run("cat /proc/1/comm")).strip() == "toolserver"
    assert (await sandbox.run("cat /proc/sys/kernel/hostname")).strip() == "sandbox" != socket.gethostname()
    assert (await sandbox.run("id -u")).strip() == "1000"
    theirs = (await sandbox.run(f"cd /proc/self/ns && readlink {' '.join(NAMESPACES)}")).split()
    ours = [str(Path(f"/proc/self/ns/{name}").readlink()) for name in NAMESPACES]
    assert len(theirs) == len(ours)
    assert not set(theirs) & set(ours)
    # What is made inside is not outside, and what is outside is not inside.
    marker = f"/workspace/marker-{os.getpid()}"
    assert await sandbox.run(f"touch {marker} && echo made") == "made\n"
    assert not Path(marker).exists()
    assert canary.read_text() == "sings"
    assert await sandbox.run(f"test -e {canary} || echo nothing there") == "nothing there\n"
    assert "Read-only file system" in await sandbox.run("touch /usr/marker")
