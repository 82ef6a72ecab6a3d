"""The toolserver as PID 1 of a pod: however it got there, whoever it runs as, whatever the image lacks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest

from lab.images import reference
from rollcage.wire.messages import OutcomeClass
from support.kube import RESTRICTED, Namespace
from support.local_toolserver import EXIT_STOPPED
from support.sandboxes import Sandboxes, SandboxPod
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.kind import Cluster

TOOLSERVER = reference("toolserver")
# Leaves nothing of itself in the process group, the session, the parent or the environment.
ESCAPES = (
    "setsid nohup sleep 7654321 > /dev/null 2>&1 &"
    " (setsid sh -c '(sleep 7654321 &) ; exit' &) ;"
    " env -i setsid sleep 7654321 &"
    " trap '' TERM INT; "
)


Pod = AbstractContextManager[SandboxPod]


def baked(sandboxes: Sandboxes, name: str, **spec: Any) -> Pod:
    """The image brings it along."""
    return sandboxes.start(name, **spec)


def mounted(sandboxes: Sandboxes, name: str, **spec: Any) -> Pod:
    """An image volume brings it into any image."""
    return sandboxes.start(
        name,
        command=("/rollcage/toolserver", "serve"),
        mounts=({"name": "rollcage", "mountPath": "/rollcage", "readOnly": True},),
        volumes=({"name": "rollcage", "image": {"reference": TOOLSERVER, "pullPolicy": "Never"}},),
        **spec,
    )


def installed(sandboxes: Sandboxes, name: str) -> Pod:
    """An init container copies it, which needs no shell."""
    mount = {"name": "rollcage", "mountPath": "/rollcage"}
    install = {
        "name": "install",
        "image": TOOLSERVER,
        "imagePullPolicy": "Never",
        "command": ["/toolserver", "install", "/rollcage/toolserver"],
        "securityContext": RESTRICTED,
        "volumeMounts": [mount],
    }
    return sandboxes.start(
        name,
        command=("/rollcage/toolserver", "serve"),
        mounts=(mount | {"readOnly": True},),
        volumes=({"name": "rollcage", "emptyDir": {}},),
        initContainers=[install],
    )


def read_only(sandboxes: Sandboxes, name: str) -> Pod:
    return baked(sandboxes, name, security={"readOnlyRootFilesystem": True})


def anyone(sandboxes: Sandboxes, name: str) -> Pod:
    """A user that no image knows."""
    return mounted(sandboxes, name, security={"runAsUser": 54321, "runAsGroup": 54321})


def caged(sandboxes: Sandboxes, name: str) -> Pod:
    return baked(sandboxes, name, runtimeClassName="gvisor")


def bare(sandboxes: Sandboxes, name: str, **spec: Any) -> Pod:
    """The toolserver's own image holds nothing else."""
    return sandboxes.start(name, image=TOOLSERVER, command=("/toolserver", "serve"), **spec)


WAYS: dict[str, Callable[[Sandboxes, str], Pod]] = {
    "baked": baked,
    "mounted": mounted,
    "installed": installed,
    "read-only": read_only,
    "anyone": anyone,
    "gvisor": caged,
}


@pytest.fixture(scope="module")
def sandboxes(namespace: Namespace, cluster: Cluster) -> Sandboxes:
    """On the first worker: other tests take the second one away, and it may come back under another address."""
    return Sandboxes(namespace, f"{cluster.name}-worker")


@pytest.fixture(scope="module", params=WAYS.keys())
def sandbox(request: pytest.FixtureRequest, sandboxes: Sandboxes) -> Iterator[SandboxPod]:
    """A sandbox of each kind; the tests of this module share it, as the calls of a rollout do."""
    with WAYS[request.param](sandboxes, f"pod-{request.param}") as pod:
        yield pod


def test_it_is_pid_1(sandbox: SandboxPod) -> None:
    assert sandbox.shell("cat /proc/1/comm").output == "toolserver\n"


def test_its_commands_run_as_the_user_of_the_pod(sandbox: SandboxPod) -> None:
    expected = sandbox.namespace.pod(sandbox.name).spec.containers[0].security_context.run_as_user

    assert sandbox.shell("id -u").output == f"{expected}\n"


def test_files_can_be_written_and_read(sandbox: SandboxPod) -> None:
    sandbox.call("write_file", path="deep/note", content="hello\n")

    assert sandbox.call("read_file", path="/workspace/deep/note").output == "hello\n"
    assert sandbox.call("list", path="deep").data["entries"][0]["path"] == "note"
    assert sandbox.call("search", pattern="hell").data["matches"][0]["line"] == 1


def test_files_and_trees_can_be_moved(sandbox: SandboxPod) -> None:
    content = bytes(range(256)) * 1000

    assert sandbox.upload("moved/file", content).status == 200
    assert sandbox.download("moved/file").body == content
    with sandbox.download_tree("moved") as tree:
        assert "file" in {member.name for member in tree.getmembers()}


def test_a_repeat_runs_nothing(sandbox: SandboxPod) -> None:
    command = "echo x >> once; cat once"

    first = sandbox.post("shell", call_id="once", command=command)
    again = sandbox.post("shell", call_id="once", command=command)

    assert first.result().output == "x\n"
    assert (again.body, again.replayed) == (first.body, True)


def test_a_session_keeps_its_directory(sandbox: SandboxPod) -> None:
    sandbox.call("session_create", session="s")
    sandbox.call("session_run", session="s", command="cd /etc; sleep 7654321 &")

    assert sandbox.call("session_run", session="s", command="pwd").output == "/etc\n"
    # Right after the fork it is still called like the shell.
    until(lambda: "sleep 7654321" in sandbox.processes())

    sandbox.call("session_close", session="s")
    assert sandbox.processes() == []


def test_a_time_limit_kills_everything_that_tried_to_get_away(sandbox: SandboxPod) -> None:
    result = sandbox.shell(f"{ESCAPES} sleep 7654321", timeout_ms=1000)

    assert result.outcome == OutcomeClass.TIMED_OUT
    assert sandbox.processes() == []


def test_the_end_of_a_command_kills_everything_that_tried_to_get_away(sandbox: SandboxPod) -> None:
    result = sandbox.shell(f"{ESCAPES} echo done")

    assert (result.outcome, result.output) == (OutcomeClass.OK, "done\n")
    assert sandbox.processes() == []


def test_the_facts_are_there(sandbox: SandboxPod) -> None:
    facts = sandbox.shell("exec python3 -c \"b'x' * (40 << 20)\"; exit 0").facts

    assert facts.exit_code == 0
    assert facts.peak_memory_bytes > 40 << 20
    assert facts.oom_kills == 0
    assert facts.pressure.source in {"psi", "throttling", "none"}


def test_its_log_is_events(sandbox: SandboxPod) -> None:
    assert {"serving", "ready"} <= {event["msg"] for event in sandbox.logs()}


def test_a_pod_that_is_deleted_stops_well(sandboxes: Sandboxes) -> None:
    """The kubelet's SIGTERM comes from outside the pod and is heard; one from inside is not."""
    core, where = sandboxes.namespace.core, sandboxes.namespace.name
    with baked(sandboxes, "stopped") as pod:
        pod.shell("kill -TERM 1")
        assert pod.shell("echo here").output == "here\n"
        # A finalizer keeps the pod's status readable after its end.
        core.patch_namespaced_pod(pod.name, where, {"metadata": {"finalizers": ["rollcage.dev/test"]}})
        try:
            core.delete_namespaced_pod(pod.name, where, grace_period_seconds=30)
            end = sandboxes.namespace.ended(pod.name)
        finally:
            core.patch_namespaced_pod(pod.name, where, {"metadata": {"finalizers": None}})

    assert end.exit_code == EXIT_STOPPED


class TestAnImageWithNothingInIt:
    def test_says_that_there_is_no_shell_and_serves_files(self, sandboxes: Sandboxes) -> None:
        with bare(sandboxes, "bare") as pod:
            result = pod.shell("echo x")
            assert result.outcome == OutcomeClass.FAILED
            assert "there is no shell in this sandbox" in result.output
            assert pod.call("session_create").outcome == OutcomeClass.FAILED

            pod.call("write_file", path="note", content="hello\n")
            assert pod.call("read_file", path="note").output == "hello\n"
            assert pod.call("list", path="/").outcome == OutcomeClass.OK

    def test_can_be_given_a_program(self, sandboxes: Sandboxes) -> None:
        """The toolserver itself is the only one there is."""
        version = {"name": "version", "command": ["/toolserver", "version"]}
        with bare(sandboxes, "bare-tool", config={"custom_tools": [version]}) as pod:
            assert pod.call("version").outcome == OutcomeClass.OK


def test_a_pod_with_a_set_up_is_ready_after_it(sandboxes: Sandboxes) -> None:
    with baked(sandboxes, "prepared", config={"setup": ["echo prepared > note"]}) as pod:
        assert pod.state().setup.state == "done"
        assert pod.call("read_file", path="note").output == "prepared\n"
