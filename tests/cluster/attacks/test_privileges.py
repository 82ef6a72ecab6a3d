"""Attacks on the walls: secrets, privileges, kernel interfaces, and traces of an earlier rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.wire.messages import OutcomeClass

if TYPE_CHECKING:
    from support.sandboxes import Sandboxes, SandboxPod


class TestSecrets:
    def test_there_is_no_service_account(self, shared: SandboxPod) -> None:
        assert shared.shell("ls /var/run/secrets /run/secrets").facts.exit_code == 2

    def test_the_environment_names_no_infrastructure(self, shared: SandboxPod) -> None:
        names = {line.partition("=")[0] for line in shared.shell("env").output.splitlines()}

        assert names == {"HOME", "HOSTNAME", "PATH", "PWD", "SHLVL", "_"}

    def test_nothing_readable_holds_a_token(self, shared: SandboxPod) -> None:
        search = (
            "grep -rIl -e BEGIN.*PRIVATE -e eyJhbGciOi /etc /run /tmp /opt /var /workspace /home /root 2> /dev/null"
        )

        assert shared.shell(search).output == "[exit code 2]"


# The number of each system call on x86-64, and arguments that would mean something.
CALLS = {
    "keyctl": (250, "0, -3, 1"),
    "add_key": (248, '"user", "x", "y", 1, -3'),
    "bpf": (321, "0, 0, 0"),
    "perf_event_open": (298, "ctypes.create_string_buffer(128), 0, -1, -1, 0"),
    "userfaultfd": (323, "0"),
    "io_uring_setup": (425, "8, ctypes.create_string_buffer(256)"),
    "clock_settime": (227, "0, ctypes.create_string_buffer(16)"),
    "settimeofday": (164, "ctypes.create_string_buffer(16), 0"),
    "init_module": (175, "0, 0, 0"),
    "kexec_load": (246, "0, 0, 0, 0"),
    "reboot": (169, "0xfee1dead, 672274793, 0x89abcdef, 0"),
    "mount": (165, '"none", "/mnt", "tmpfs", 0, 0'),
    "umount2": (166, '"/proc", 2'),
    "pivot_root": (155, '"/", "/"'),
    "chroot": (161, '"/"'),
    "setns": (308, 'os.open("/proc/self/ns/net", 0), 0'),
    "unshare a user namespace": (272, "0x10000000"),
    "unshare a mount namespace": (272, "0x00020000"),
    "unshare a network namespace": (272, "0x40000000"),
    "setuid": (105, "0"),
    "setgid": (106, "0"),
    "sethostname": (170, '"x", 1'),
    "iopl": (172, "3"),
    "ptrace of PID 1": (101, "16, 1, 0, 0"),
    "open_by_handle_at": (304, "0, 0, 0"),
    "swapon": (167, '"/workspace/x", 0'),
    "acct": (163, "0"),
    "quotactl": (179, "0, 0, 0, 0"),
    "syslog": (103, "3, ctypes.create_string_buffer(100), 100"),
}


@pytest.mark.parametrize("call", CALLS.keys())
def test_the_kernel_refuses(shared: SandboxPod, call: str) -> None:
    number, arguments = CALLS[call]
    code = f"""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
text = lambda value: value.encode() if isinstance(value, str) else value
print(libc.syscall({number}, *map(text, ({arguments},))), errno.errorcode.get(ctypes.get_errno()))
"""
    result = shared.python(code)

    assert result.output in {"-1 EPERM\n", "-1 ENOSYS\n", "-1 EACCES\n"}


COMMANDS = {
    "unshare": "unshare -Ur id",
    "mount": "mount -t tmpfs none /mnt",
    "a remount of a read-only file system": "mount -o remount,rw /proc/sys",
    "su": "echo root | su -c id root",
    "the clock": "date -s 2000-01-01",
    "the host name": "hostname x || echo x > /proc/sys/kernel/hostname",
    "a kernel setting": "echo 0 > /proc/sys/kernel/randomize_va_space",
    "the trigger of last resort": "echo h > /proc/sysrq-trigger",
    "a device": "mknod /workspace/sda b 8 0",
    "a cgroup's limit": "echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes || echo max > /sys/fs/cgroup/memory.max",
    "a lower OOM score": "echo -1000 > /proc/self/oom_score_adj",
    "a higher priority": "nice -n -10 true && [ $(nice -n -10 nice) -lt 0 ]",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_the_model_cannot_change(shared: SandboxPod, command: str) -> None:
    assert shared.shell(command).outcome == OutcomeClass.FAILED


def test_set_uid_programs_give_nothing(shared: SandboxPod) -> None:
    status = shared.shell("cat /proc/self/status").output

    assert "NoNewPrivs:\t1\n" in status
    assert "Seccomp:\t2\n" in status
    for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
        assert f"Cap{kind}:\t0000000000000000\n" in status
    shared.shell("cp /usr/bin/id mine; chmod 6755 mine")
    assert shared.shell("./mine -u").output == "1000\n"


SOCKETS = {
    "a raw one": "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
    "a raw one of IPv6": "socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)",
    "one for packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
    "one into the host's virtual machine monitor": "socket.socket(40, socket.SOCK_STREAM)",
    "one that changes the own address": (
        "fcntl.ioctl(socket.socket(), 0x8916, struct.pack('16sH14s', b'eth0', 2, b'\\0\\0\\x0a\\0\\0\\1'))"
    ),
    "one that sees other hosts' packets": (
        "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14x', b'eth0', 0x100))"
    ),
}


@pytest.mark.parametrize("socket", SOCKETS.values(), ids=SOCKETS.keys())
def test_there_is_no_socket_but(shared: SandboxPod, socket: str) -> None:
    code = f"""
import errno, fcntl, socket, struct
try:
    {socket}
    print("opened")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    assert shared.python(code).output.strip() in {"EPERM", "EACCES", "EAFNOSUPPORT", "ENODEV"}


def test_everything_in_a_new_sandbox_is_fresh(sandboxes: Sandboxes, name: str) -> None:
    with sandboxes.start(f"{name}-a") as first:
        first.shell("echo secret > /workspace/left; echo secret > /tmp/left; echo secret > /dev/shm/left")
        boot = first.state().boot_id
        seed = first.shell("python3 -c 'import os; print(os.urandom(8))'").output
    with sandboxes.start(f"{name}-b") as second:
        state = second.state()
        assert (state.bound_to, state.journal.calls) == (None, 0)
        assert state.boot_id != boot
        assert second.shell("ls -A /workspace /tmp /dev/shm").output == "/dev/shm:\n\n/tmp:\n\n/workspace:\n"  # noqa: S108
        assert second.processes() == []
        assert second.shell("python3 -c 'import os; print(os.urandom(8))'").output != seed
        assert second.earlier("call_1").status == 200
