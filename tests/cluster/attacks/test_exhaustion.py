"""Attacks that use everything up: processes, memory, disk, descriptors, output. Limits hold; the next call works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollcage.wire.messages import OutcomeClass, Result
from support.sandboxes import assert_isolated

if TYPE_CHECKING:
    from support.sandboxes import Sandboxes, SandboxPod

MIB = 1 << 20
# Without a limit on processes nothing would end a real fork bomb but the machine.
BOUNDED_STORM = """
import os, time
for _ in range(2000):
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError as error:
        print(error)
        break
time.sleep(1000)
"""
ZOMBIES = """
import os, sys
made = 0
try:
    while made < 5000:
        if os.fork() == 0:
            os._exit(0)
        made += 1
except OSError as error:
    print(error)
print(made)
sys.stdout.flush()
os.kill(os.getpid(), 9)
"""
OPEN_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
try:
    while len(held) < 1_000_000:
        held.append(open("/dev/null"))
except OSError as error:
    print(len(held), error)
"""


def still_works(sandbox: SandboxPod) -> None:
    """The next call answers, and nothing of the attack is left."""
    assert sandbox.shell("echo alive").output == "alive\n"
    assert sandbox.processes() == []


def within_memory(sandbox: SandboxPod, command: str, **arguments: Any) -> Result | None:
    """Return the result, or None when the model ended its whole sandbox by using up its own memory."""
    try:
        return sandbox.shell(command, **{"timeout_ms": 60_000} | arguments)
    except ConnectionError:
        end = sandbox.namespace.ended(sandbox.name)
        assert (end.reason, end.exit_code) == ("OOMKilled", 137)
        return None


def test_a_fork_bomb(sandboxes: Sandboxes, name: str) -> None:
    """The real one where the pod has a limit on processes; where it has none, 2,000 processes that end there."""
    with sandboxes.start(name, limits={"memory": "1Gi"}) as sandbox:
        assert_isolated(sandbox)

        if sandboxes.pids_limit() > 0:
            sandbox.shell(":(){ :|:& };:; sleep 1000", timeout_ms=5000)
        else:
            sandbox.python(BOUNDED_STORM, timeout_ms=10_000)

        still_works(sandbox)


def test_many_processes_in_little_memory(sandbox: SandboxPod) -> None:
    """Each of them is smaller than PID 1, which the kernel may then choose instead."""
    result = within_memory(sandbox, 'exec python3 -c "$CODE"', env={"CODE": BOUNDED_STORM}, timeout_ms=10_000)

    if result is not None:
        still_works(sandbox)


def test_five_thousand_zombies(sandbox: SandboxPod) -> None:
    result = sandbox.python(ZOMBIES, timeout_ms=60_000)

    assert result.outcome == OutcomeClass.FAILED
    still_works(sandbox)
    assert sandbox.shell("grep -l 'State:.Z' /proc/[0-9]*/status | wc -l").output == "0\n"


def test_a_million_open_files(sandbox: SandboxPod) -> None:
    result = sandbox.python(OPEN_FILES, timeout_ms=60_000)

    assert "Too many open files" in result.output
    still_works(sandbox)


class TestMemory:
    BOMB = 'exec python3 -c "x = [bytearray(1 << 20) for _ in range(100000)]"'

    def test_a_bomb(self, sandbox: SandboxPod) -> None:
        result = within_memory(sandbox, self.BOMB)

        if result is not None:
            assert (result.outcome, result.facts.signal) == (OutcomeClass.FAILED, "SIGKILL")
            assert result.facts.oom_kills >= 1
            assert "out of memory" in result.output
            still_works(sandbox)

    def test_a_bomb_behind_a_shell(self, sandbox: SandboxPod) -> None:
        result = within_memory(sandbox, f"({self.BOMB}); echo code $?")

        if result is not None:
            assert "code 137" in result.output
            assert result.facts.oom_kills >= 1
            assert "out of memory" in result.output
            still_works(sandbox)

    def test_many_small_bombs(self, sandbox: SandboxPod) -> None:
        result = within_memory(sandbox, f"for n in $(seq 8); do ({self.BOMB}) & done; wait")

        if result is not None:
            assert result.facts.oom_kills >= 1
            still_works(sandbox)

    def test_a_bomb_under_gvisor(self, sandboxes: Sandboxes, name: str) -> None:
        """There the whole sandbox is killed; gVisor's shim reports it in its own way."""
        with sandboxes.start(name, runtimeClassName="gvisor") as sandbox:
            assert_isolated(sandbox)
            sandbox.seconds = 30.0
            try:
                sandbox.shell(self.BOMB, timeout_ms=20_000)
                still_works(sandbox)
            except OSError:  # The whole machine is gone, so its end of the connection may be silent.
                end = sandbox.namespace.ended(sandbox.name)
                assert end.exit_code in {128, 137}


FILL = "head -c 1G /dev/zero > {place}; echo; df -k {place} | tail -1"


def test_filling_a_workspace_in_memory_ends_at_its_size(sandboxes: Sandboxes, name: str) -> None:
    with sandboxes.start(name, workspace={"medium": "Memory", "sizeLimit": "32Mi"}) as sandbox:
        assert_isolated(sandbox)

        result = sandbox.shell(FILL.format(place="/workspace/full"))

        assert "No space left on device" in result.output
        assert "no space" in sandbox.call("write_file", path="more", content="x" * 10_000).output
        assert sandbox.upload("more", b"x" * 10_000).refusal == (422, "file_error")
        still_works(sandbox)
        sandbox.shell("rm full")
        assert sandbox.call("write_file", path="more", content="x").outcome == OutcomeClass.OK


def test_filling_dev_shm_ends_at_its_size(sandbox: SandboxPod) -> None:
    result = sandbox.shell(FILL.format(place="/dev/shm/full"))  # noqa: S108

    assert "No space left on device" in result.output
    still_works(sandbox)


def test_using_up_the_inodes_of_a_workspace_in_memory_is_an_error_or_the_end(sandboxes: Sandboxes, name: str) -> None:
    with sandboxes.start(name, workspace={"medium": "Memory", "sizeLimit": "32Mi"}) as sandbox:
        assert_isolated(sandbox)
        code = "for n in range(300_000): open(f'/workspace/{n}', 'w').close()"
        try:
            result = sandbox.python(code, timeout_ms=60_000)
        except ConnectionError:
            assert sandbox.namespace.ended(sandbox.name).reason == "OOMKilled"
            return
        assert result.outcome in {OutcomeClass.FAILED, OutcomeClass.OK}


def test_filling_a_workspace_on_disk_ends_the_sandbox_and_says_why(sandbox: SandboxPod) -> None:
    """The kubelet measures now and then, and evicts; nothing else shares what was filled."""
    sandbox.shell("head -c 48M /dev/zero > full")

    sandbox.namespace.ended(sandbox.name)

    status = sandbox.namespace.pod(sandbox.name).status
    assert (status.phase, status.reason) == ("Failed", "Evicted")
    assert "exceeds the limit" in status.message


class TestOutput:
    def test_five_gigabytes_leave_the_memory_flat(self, sandbox: SandboxPod) -> None:
        before = sandbox.peak_memory()

        result = sandbox.shell("yes | head -c 5G", timeout_ms=280_000)

        assert result.facts.output_bytes == 5 << 30
        assert result.facts.truncated
        assert len(result.output) <= 65536
        assert sandbox.peak_memory() < before + 16 * MIB

    def test_endless_output_ends_at_the_time_limit(self, sandbox: SandboxPod) -> None:
        result = sandbox.shell("yes", timeout_ms=2000)

        assert result.outcome == OutcomeClass.TIMED_OUT
        still_works(sandbox)

    def test_binary_invalid_and_forged_output_stays_text_and_out_of_the_log(self, sandbox: SandboxPod) -> None:
        sandbox.shell("head -c 1M /dev/urandom")
        sandbox.shell(r"printf '\033[2J\377\n{\"level\":\"ERROR\",\"msg\":\"forged\"}\n' | tee /dev/stderr")

        assert "forged" not in {event["msg"] for event in sandbox.logs()}

    @pytest.mark.parametrize("place", ["/proc/1/fd/1", "/proc/1/fd/2", "/dev/console"])
    def test_the_log_cannot_be_written_to(self, sandbox: SandboxPod, place: str) -> None:
        assert sandbox.shell(f"echo forged > {place}").outcome == OutcomeClass.FAILED
