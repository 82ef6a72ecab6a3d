"""What a sandbox may use is bounded, and the next call works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollcage.sandboxes.local import cgroups
from rollcage.sandboxes.local.tiers import Tier
from support.local_sandboxes import OWN_ROOT, environment, need, opened, started

if TYPE_CHECKING:
    from pathlib import Path

    from rollcage.core.environment import Environment

PROCESSES = 128
SMALL: Any = {
    "workspace": {"size": "16Mi"},
    "resources": {
        "requests": {"memory": "64Mi"},
        "limits": {"memory": "128Mi", "ephemeral-storage": "32Mi", "cpu": "1"},
    },
}

# Never more than this many, whatever the limit.
STORM = """
import os, time
children = []
try:
    for _ in range(400):
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
        children.append(pid)
    print("no limit")
except BlockingIOError:
    print("refused after", len(children))
for pid in children:
    os.kill(pid, 9)
"""
# Never more than this much, whatever the limit.
HOARD = "kept = [bytes(1 << 20) for _ in range({mebibytes})]; print('no limit')"


@pytest.fixture
def small() -> Environment:
    return environment(**SMALL)


async def test_a_fork_storm_is_refused(tier: Tier, toolserver: Path, small: Environment) -> None:
    async with opened(tier, toolserver, processes=PROCESSES) as source:
        sandbox, neighbour = await started(source, "a", small), await started(source, "b", small)
        output = await sandbox.python(STORM)

        word, _, count = output.strip().rpartition(" ")
        assert word == "refused after"
        # The toolserver's threads count as well, and without a user id of its own so do others'.
        assert int(count) <= PROCESSES * 2
        assert await sandbox.run("echo still here") == "still here\n"
        assert await neighbour.run("echo still here") == "still here\n"


async def test_a_process_that_hoards_memory_is_refused(tier: Tier, toolserver: Path, small: Environment) -> None:
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "a", small)

        assert "MemoryError" in await sandbox.python(HOARD.format(mebibytes=300))
        assert await sandbox.run("echo still here") == "still here\n"


async def test_processes_that_hoard_memory_together_are_killed(
    tier: Tier, toolserver: Path, small: Environment
) -> None:
    _need_cgroups()
    # Each stays below its own limit; all together are above that of the sandbox.
    together = (
        f"for i in 1 2 3 4; do python3 -c '{HOARD.format(mebibytes=80)}; import time; time.sleep(5)' & done; wait"
    )
    async with opened(tier, toolserver) as source:
        sandbox, neighbour = await started(source, "a", small), await started(source, "b", small)
        result = sandbox.shell(together)

        assert result.facts.oom_kills > 0 or result.output.count("no limit") < 4
        assert await sandbox.run("echo still here") == "still here\n"
        assert await neighbour.run("echo still here") == "still here\n"


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])  # noqa: S108 - the sandbox's own
async def test_a_full_disk_is_an_error_inside(own_root: Tier, toolserver: Path, small: Environment, place: str) -> None:
    async with opened(own_root, toolserver) as source:
        sandbox = await started(source, "a", small)
        output = await sandbox.run(f"dd if=/dev/zero bs=1M count=70 of={place}/fill; stat -c %s {place}/fill")

        assert "No space left" in output or "File too large" in output
        assert int(output.split()[-1] if output.split()[-1].isdigit() else 0) <= 64 << 20
        assert await sandbox.run(f"rm {place}/fill && echo still here") == "still here\n"


async def test_everything_else_is_read_only(own_root: Tier, toolserver: Path, small: Environment) -> None:
    async with opened(own_root, toolserver) as source:
        sandbox = await started(source, "a", small)
        writable = await sandbox.run(
            "find / -xdev -type d -writable; for d in /etc /dev /usr /var /opt; do touch $d/x; done"
        )

        assert writable.count("Read-only file system") == 5
        assert await sandbox.run("touch /x; ls /x") != "/x\n"


async def test_files_without_number_are_refused(toolserver: Path, small: Environment) -> None:
    # Bubblewrap has no such option; there it takes a cgroup.
    async with opened(need(Tier.NAMESPACES, toolserver), toolserver) as source:
        sandbox = await started(source, "a", small)

        assert "No space left" in await sandbox.run("for i in $(seq 6000); do : > f$i || exit; done")


async def test_a_file_larger_than_the_disk_is_refused(tier: Tier, toolserver: Path, small: Environment) -> None:
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "a", small)

        assert "SIGXFSZ" in await sandbox.run("exec truncate -s 10G sparse")


async def test_open_files_are_bounded(tier: Tier, toolserver: Path) -> None:
    hoard = "k = []\ntry:\n    while len(k) < 9000: k.append(open('/dev/null'))\nexcept OSError as e: print(e.errno)"
    async with opened(tier, toolserver) as source:
        assert await (await started(source, "a")).python(hoard) == "24\n"


async def test_it_gives_way_to_the_service(tier: Tier, toolserver: Path) -> None:
    async with opened(tier, toolserver) as source:
        assert int(await (await started(source, "a")).run("nice")) >= 5


async def test_it_sees_its_own_counters(tier: Tier, toolserver: Path, small: Environment) -> None:
    _need_cgroups()
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "a", small)
        if tier in OWN_ROOT:
            limit = await sandbox.run(
                "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2> /dev/null"
            )
            assert int(limit.split()[0]) < 1 << 30


def _need_cgroups() -> None:
    try:
        cgroups.find("rollcage-local-test").remove()
    except cgroups.NoCgroup as refusal:
        pytest.skip(f"no cgroups here: {refusal}")
