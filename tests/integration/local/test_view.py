"""What a sandbox can see: its own, and the programs of the host."""

# A look at a file holds nobody up: the loop has nothing else to do.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.local_sandboxes import LocalSandbox, opened, started
from support.local_toolserver import alive
from support.waiting import until

if TYPE_CHECKING:
    from rollcage.sandboxes.local.tiers import Tier

REPOSITORY = Path(__file__).parents[3]


async def test_host_files_are_not_there(own_root: Tier, toolserver: Path) -> None:
    async with opened(own_root, toolserver) as source:
        sandbox = await started(source, "a")
        for path in ("/root", "/home", str(REPOSITORY), "/etc/shadow", "/run", str(toolserver), "/sys/kernel"):
            assert "No such file" in await sandbox.run(f"ls -d {path}"), path


async def test_host_files_cannot_be_read(landlock: Tier, toolserver: Path) -> None:
    async with opened(landlock, toolserver) as source:
        sandbox = await started(source, "a")
        for path in ("/", "/root", "/home", str(REPOSITORY), "/run", "/tmp", "/var"):  # noqa: S108 - the host's own
            assert "ermission denied" in await sandbox.run(f"ls {path}"), path
        assert "ermission denied" in await sandbox.run(f"cat /etc/shadow {REPOSITORY}/README.md")


async def test_no_variable_of_the_service_gets_in(
    tier: Tier, toolserver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLCAGE_TEST_TOKEN", "hunter2")
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "a")
        seen = await sandbox.run("env; cat /proc/$PPID/environ /proc/self/environ | tr '\\0' '\\n'")

    names = {line.partition("=")[0] for line in seen.splitlines() if "=" in line}
    assert names <= {"GIT_CONFIG_NOSYSTEM", "HOME", "LANG", "PATH", "PWD", "SHLVL", "TMPDIR", "USER", "_"}
    assert "hunter2" not in seen


async def test_the_toolserver_tells_nothing(tier: Tier, toolserver: Path) -> None:
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "a")
        for file in ("environ", "mem", "maps", "fd/2"):
            output = await sandbox.run(f"head -c 10 /proc/$PPID/{file}")
            assert "ermission denied" in output or "No such file" in output, (file, output)


async def test_programs_of_the_host_are_the_image(tier: Tier, toolserver: Path) -> None:
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "a")

        assert await sandbox.python("print(6 * 7)") == "42\n"
        assert await sandbox.run("echo a > x && git init -q . && git add x && git diff --cached --name-only") == "x\n"
        assert await sandbox.run("mktemp > t && rm $(cat t) && echo made") == "made\n"


async def test_processes_of_others_are_not_there(own_root: Tier, toolserver: Path) -> None:
    async with opened(own_root, toolserver) as source:
        first, second = await started(source, "a"), await started(source, "b")
        word = _busy(second)

        assert word not in await first.run("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'")
        assert len((await first.run("ls -d /proc/[0-9]*")).split()) < 10


async def test_processes_of_others_cannot_be_touched(landlock: Tier, toolserver: Path) -> None:
    async with opened(landlock, toolserver) as source:
        first, second = await started(source, "a"), await started(source, "b")
        (pid,) = alive(_busy(second))

        assert "not permitted" in await first.run(f"kill -9 {pid}")
        assert "denied" in await first.run(f"cat /proc/{pid}/environ")
        assert "denied" in await first.run(f"cat /proc/{pid}/fd/0")
        assert Path(f"/proc/{pid}").exists()


async def test_files_and_sockets_of_others_cannot_be_reached(tier: Tier, toolserver: Path) -> None:
    async with opened(tier, toolserver) as source:
        first, second = await started(source, "a"), await started(source, "b")
        await second.run("echo secret > file")
        elsewhere = (await second.run("pwd")).strip()
        if elsewhere != "/workspace":
            assert "secret" not in await first.run(f"cat {elsewhere}/file; ls {elsewhere}")
        assert second.shown.address
        path = second.shown.address.removeprefix("unix:")
        dial = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r}); print('reached')"

        assert "reached" not in await first.python(dial)


NETWORK = """
import socket, sys
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", PORT)),
    (socket.AF_INET, socket.SOCK_STREAM, ("HOST", PORT)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", PORT)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53)),
    (socket.AF_UNIX, socket.SOCK_STREAM, "\\0ABSTRACT"),
    (socket.AF_INET, socket.SOCK_RAW, ("127.0.0.1", 0)),
):
    try:
        s = socket.socket(family, kind, 1 if kind == socket.SOCK_RAW else 0)
        s.settimeout(2)
        s.connect(address)
        s.send(b"out")
        if kind == socket.SOCK_STREAM:
            print("reached", address)
    except OSError as error:
        print("refused", error.errno)
"""


async def test_nothing_is_reached_over_the_network(tier: Tier, toolserver: Path) -> None:
    abstract = f"rollcage-test-{os.getpid()}"
    with (
        socket.create_server(("0.0.0.0", 0)) as tcp,  # noqa: S104 - on every address, so that none is forgotten
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        udp.settimeout(0)
        unix.bind(f"\0{abstract}")
        unix.listen()
        own = socket.gethostbyname(socket.gethostname())
        code = NETWORK.replace("PORT", str(port)).replace("HOST", own).replace("ABSTRACT", abstract)
        async with opened(tier, toolserver) as source:
            output = await (await started(source, "a")).python(code)

        assert "reached" not in output
        assert output.count("refused") >= 4
        with pytest.raises(BlockingIOError):
            udp.recv(16)


async def test_there_is_no_interface_but_loopback(own_root: Tier, toolserver: Path) -> None:
    async with opened(own_root, toolserver) as source:
        output = await (await started(source, "a")).run(
            "tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | wc -l"
        )

    assert output.split() == ["lo", "1"]


async def test_loopback_works_inside(own_root: Tier, toolserver: Path) -> None:
    code = "from socket import *; s = create_server(('127.0.0.1', 0)); create_connection(s.getsockname()); print('ok')"
    async with opened(own_root, toolserver) as source:
        assert await (await started(source, "a")).python(code) == "ok\n"


PRIVILEGES = {
    "a user namespace": "unshare -U true",
    "a mount": "mount -t tmpfs none /tmp",
    "another root": "chroot / true",
    "another host name": "hostname other",
    "the clock": "date -s 2000-01-01",
    "a device": "mknod zero c 1 5",
    "a kernel key": "python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(250, 0, -3, 1) >= 0 and 99 or 1)'",
}


@pytest.mark.parametrize("attempt", PRIVILEGES.values(), ids=PRIVILEGES.keys())
async def test_privileges_are_refused(tier: Tier, toolserver: Path, attempt: str) -> None:
    async with opened(tier, toolserver) as source:
        output = await (await started(source, "a")).run(f"{attempt} && echo done || echo refused")

    assert output.splitlines()[-1] == "refused"


async def test_it_has_no_capability_and_cannot_get_one(tier: Tier, toolserver: Path) -> None:
    async with opened(tier, toolserver) as source:
        status = await (await started(source, "a")).run("grep -E 'CapEff|CapPrm|NoNewPrivs|Seccomp:' /proc/self/status")

    fields = dict(line.split(":\t") for line in status.splitlines())
    assert fields == {"CapEff": "0" * 16, "CapPrm": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}


def _busy(sandbox: LocalSandbox) -> str:
    """Start something that runs on, and return the word that it is known by."""
    word = f"{100_000 + os.getpid()}.{id(sandbox)}"
    sandbox.call("session_create", session="s")
    sandbox.call("session_run", session="s", command=f"sleep {word} &")
    until(lambda: len(alive(word)) == 1)
    return word
