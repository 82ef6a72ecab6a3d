"""Sandboxes on a real cluster: made in every way there is, watched through trouble, and how their ends are told."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import asynccontextmanager
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import yaml

from contract.sandboxes.suite import Watch
from lab.images import reference
from rollcage.core.endings import EndCause
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.sandboxes.kubernetes.manifest import pod_manifest
from rollcage.sandboxes.kubernetes.refusals import Expired
from rollcage.sandboxes.kubernetes.source import KubernetesSource
from rollcage.sandboxes.kubernetes.watching import Listed, follow
from rollcage.sandboxes.source import Gone, HoldCause, Phase, QuotaExceeded, SandboxRejected, Seen
from rollcage.wire.messages import OutcomeClass
from support.cut_line import Line
from support.environments import environment
from support.kube import wait_for
from support.kubernetes_source import driver, opened
from support.toolserver import KEYS

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from lab.kind import Cluster
    from rollcage.core.endings import Ending
    from rollcage.core.environment import Environment
    from rollcage.sandboxes.source import Sandbox
    from support.kube import Namespace

    Opened = Callable[[], AbstractAsyncContextManager["Stage"]]
    Place = Callable[..., Environment]

# Storage is looked at every ten seconds, a volume's every minute.
PATIENCE = 180.0
BAKED = {"delivery": "baked"}
EAT = ("python3", "-c", "b'x' * (1 << 29)")


class Stage:
    """A source, its namespace, and somebody who watches."""

    def __init__(self, source: KubernetesSource, watch: Watch, namespace: Namespace) -> None:
        self.source = source
        self.watch = watch
        self.namespace = namespace

    async def create(self, recipe: Environment) -> str:
        name = f"sbx-{uuid.uuid4().hex[:10]}"
        await self.source.create(name, recipe)
        return name

    async def running(self, recipe: Environment) -> Sandbox:
        return await self.watch.running(await self.create(recipe))

    async def run_instead(self, recipe: Environment, *command: str, **spec: Any) -> str:
        """Start a sandbox whose container runs something else than the toolserver."""
        name = f"sbx-{uuid.uuid4().hex[:10]}"
        manifest = pod_manifest(
            recipe,
            name=name,
            namespace=self.namespace.name,
            keys=json.loads(KEYS),
            toolserver_image=reference("toolserver"),
            image_volumes=True,
        )
        manifest["spec"] |= spec
        if command:
            manifest["spec"]["containers"][0]["command"] = list(command)
        await asyncio.to_thread(self.namespace.core.create_namespaced_pod, self.namespace.name, manifest)
        return name

    async def ending(self, name: str) -> Ending:
        sandbox = await self.watch.seen(name, lambda seen: seen.phase is Phase.ENDED)
        assert sandbox.ending
        return sandbox.ending


@pytest.fixture
def stage(cluster: Cluster, namespace: Namespace) -> Opened:
    @asynccontextmanager
    async def on_stage() -> AsyncIterator[Stage]:
        async with opened(cluster, namespace.name) as source, source.observe() as changes:
            watch = Watch(changes, PATIENCE)
            await watch.synced()
            try:
                yield Stage(source, watch, namespace)
            finally:
                for change in watch.told:
                    if isinstance(change, Seen):
                        await source.delete(change.sandbox.name, uid=change.sandbox.uid)

    return on_stage


@pytest.fixture
def place(cluster: Cluster) -> Place:
    """Write small environments for the first worker: another test takes the second one away for a while."""

    def placed(**changes: Any) -> Environment:
        pod = {"nodeSelector": {"kubernetes.io/hostname": f"{cluster.name}-worker"}, **changes.pop("pod", {})}
        return environment(pod=pod, **changes)

    return placed


class TestDelivery:
    @pytest.mark.parametrize(
        "way",
        [
            {"toolserver": {"delivery": "baked"}},
            {"toolserver": {"delivery": "image-volume"}},
            {"toolserver": {"delivery": "init-container"}},
            {},
        ],
        ids=["baked", "image volume", "init container", "chosen by us"],
    )
    async def test_a_restricted_sandbox_answers_a_signed_call(
        self, stage: Opened, place: Place, way: dict[str, Any]
    ) -> None:
        async with stage() as s:
            toolserver = await driver(await s.running(place(**way)))

            result = await asyncio.to_thread(toolserver.shell, "pwd; id -u; touch here && ls")

        assert (result.outcome, result.output) == (OutcomeClass.OK, "/workspace\n1000\nhere\n")

    async def test_it_does_so_under_gvisor_too(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            toolserver = await driver(await s.running(place(pod={"runtimeClassName": "gvisor"})))

            result = await asyncio.to_thread(toolserver.shell, "dmesg | head -3")

        assert "gVisor" in result.output

    async def test_a_read_only_sandbox_has_room_to_work(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            toolserver = await driver(await s.running(place(pod={"readOnlyRoot": True})))

            result = await asyncio.to_thread(toolserver.shell, "touch /tmp/a /workspace/b && touch /var/c")

        assert "Read-only file system" in result.output


class TestInside:
    async def test_commands_arrive_as_they_were_written(self, stage: Opened, place: Place) -> None:
        setup = {"commands": ["echo '$$ $(ROLLCAGE_SANDBOX) $HOME' > said"]}
        async with stage() as s:
            toolserver = await driver(await s.running(place(setup=setup)))

            result = await asyncio.to_thread(toolserver.shell, "cat said")

        assert result.output == "$$ $(ROLLCAGE_SANDBOX) $HOME\n"

    async def test_git_works_in_the_workspace(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            toolserver = await driver(await s.running(place()))

            result = await asyncio.to_thread(toolserver.shell, "git init -q . && git status --short --branch")

        assert result.outcome is OutcomeClass.OK, result.output

    async def test_there_is_nothing_of_the_cluster_to_be_found(self, stage: Opened, place: Place) -> None:
        look = "env | grep -E 'KUBERNETES|ROLLCAGE'; ls /var/run/secrets /run/secrets 2>&1; grep name /etc/resolv.conf"
        async with stage() as s:
            toolserver = await driver(await s.running(place()))

            result = await asyncio.to_thread(toolserver.shell, look)

        assert "KUBERNETES" not in result.output
        assert "ROLLCAGE" not in result.output
        assert result.output.count("No such file") == 2
        assert result.output.endswith("nameserver 127.0.0.1\n")

    async def test_a_name_is_refused_at_once(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            toolserver = await driver(await s.running(place()))

            result = await asyncio.to_thread(toolserver.shell, "getent hosts example.org")

        assert result.outcome is OutcomeClass.FAILED
        assert result.facts.duration_ms < 5000  # the resolver's own patience


def gone(watch: Watch) -> dict[str, Sandbox]:
    return {change.last.name: change.last for change in watch.told if isinstance(change, Gone)}


class TestMany:
    async def test_ten_come_and_go(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            names = set(await asyncio.gather(*(s.create(place(toolserver=BAKED)) for _ in range(10))))
            running: dict[str, Sandbox] = {}
            while running.keys() < names:
                seen = await s.watch.seen_any()
                if seen.phase is Phase.RUNNING and seen.name in names:
                    running[seen.name] = seen
            await asyncio.gather(*(s.source.delete(one.name, uid=one.uid) for one in running.values()))
            while left := names - gone(s.watch).keys():
                await s.watch.gone(next(iter(left)))

        assert {last.ending.cause for last in gone(s.watch).values() if last.ending} == {EndCause.DELETED}
        assert len({one.address for one in running.values()}) == 10


def impatient(dial: Callable[[], socket.socket]) -> Callable[[], socket.socket]:
    def dial_and_hurry() -> socket.socket:
        connection = dial()
        connection.settimeout(5)
        return connection

    return dial_and_hurry


class TestEndings:
    async def test_out_of_memory(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            ending = await s.ending(await s.run_instead(place(toolserver=BAKED), *EAT))

        assert (ending.cause, ending.exit_code) == (EndCause.OUT_OF_MEMORY, 137)

    async def test_out_of_memory_under_gvisor_by_a_call(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            sandbox = await s.running(place(toolserver=BAKED, pod={"runtimeClassName": "gvisor"}))
            toolserver = await driver(sandbox)
            # Nobody is left to say that the connection is over.
            toolserver.dial = impatient(toolserver.dial)
            with pytest.raises((OSError, HTTPException)):
                await asyncio.to_thread(toolserver.shell, "python3 -c \"b'x' * (1 << 29)\"")
            ending = await s.ending(sandbox.name)

        assert (ending.cause, ending.exit_code) == (EndCause.OUT_OF_MEMORY, 128)

    async def test_a_child_out_of_memory_is_not_the_end(self, stage: Opened, place: Place) -> None:
        script = "python3 -c \"b'x' * (1 << 29)\"; sleep 1; exit 7"
        async with stage() as s:
            ending = await s.ending(await s.run_instead(place(toolserver=BAKED), "bash", "-c", script))

        assert (ending.cause, ending.exit_code) == (EndCause.EXITED, 7)
        assert ending.details["container_reason"] == "OOMKilled"

    async def test_its_own_storage_limit(self, stage: Opened, place: Place) -> None:
        fill = "head -c 100M /dev/zero > /tmp/fill; sleep 600"
        async with stage() as s:
            ending = await s.ending(await s.run_instead(place(toolserver=BAKED), "bash", "-c", fill))

        assert ending.cause is EndCause.OWN_STORAGE_LIMIT

    async def test_its_deadline(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            ending = await s.ending(await s.run_instead(place(toolserver=BAKED), activeDeadlineSeconds=3))

        assert ending.cause is EndCause.DEADLINE

    async def test_a_drain(self, stage: Opened, place: Place, namespace: Namespace) -> None:
        async with stage() as s:
            sandbox = await s.running(place(toolserver=BAKED))
            eviction = {"metadata": {"name": sandbox.name, "namespace": namespace.name}}
            evict = namespace.core.create_namespaced_pod_eviction
            await asyncio.to_thread(evict, sandbox.name, namespace.name, eviction)
            ending = await s.ending(sandbox.name)
            last = await s.watch.gone(sandbox.name)

        assert (ending.cause, ending.details["disruption"]) == (EndCause.EVICTED, "EvictionByEvictionAPI")
        assert last.ending
        assert last.ending.cause is EndCause.EVICTED

    async def test_a_program_that_is_not_there(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            ending = await s.ending(await s.run_instead(place(toolserver=BAKED), "/no/such/program"))

        assert ending.cause is EndCause.START_FAILED

    async def test_who_was_dead_is_not_called_deleted(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            name = await s.run_instead(place(toolserver=BAKED), *EAT)
            ended = await s.watch.seen(name, lambda seen: seen.phase is Phase.ENDED)
            await s.source.delete(name, uid=ended.uid)
            last = await s.watch.gone(name)

        assert last.ending == ended.ending

    async def test_events_and_the_nodes_state_are_kept_beside(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            sandbox = await s.running(place(toolserver=BAKED))
            evidence = await s.source.evidence(sandbox)

        assert {"Scheduled", "Created", "Started"} <= {event["reason"] for event in evidence["events"]}
        assert evidence["node"] == sandbox.node
        assert evidence["node_conditions"]["Ready"] == "True"
        assert evidence["node_conditions"]["MemoryPressure"] == "False"


class TestHolds:
    @pytest.mark.parametrize(
        ("changes", "cause"),
        [
            ({"image": reference("nothing")}, HoldCause.IMAGE_PULL),
            ({"image": "UPPER:::x"}, HoldCause.IMAGE_PULL),
            ({"pod": {"nodeSelector": {"no": "such"}}}, HoldCause.UNSCHEDULABLE),
        ],
        ids=["an image that is not there", "an image that cannot be", "no node has room"],
    )
    async def test_a_sandbox_that_cannot_start_says_why(
        self, stage: Opened, place: Place, changes: dict[str, Any], cause: HoldCause
    ) -> None:
        async with stage() as s:
            name = await s.create(place(toolserver=BAKED, **changes))
            held = await s.watch.seen(name, lambda seen: seen.hold is not None)

        assert held.hold
        assert held.hold.cause is cause
        assert held.hold.message


class TestRefusals:
    @pytest.fixture
    def full(self, namespace: Namespace) -> Iterator[str]:
        """A namespace with no room for a pod."""
        name = f"{namespace.name}-full"
        core = namespace.core
        core.create_namespace({"metadata": {"name": name}})
        core.create_namespaced_resource_quota(name, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})

        def counted() -> bool:
            return bool(core.read_namespaced_resource_quota("none", name).status.hard)

        wait_for("the quota to count", counted)
        wait_for(
            "the service account",
            lambda: core.list_namespaced_service_account(name, field_selector="metadata.name=default").items,
        )
        yield name
        core.delete_namespace(name)

    async def test_a_full_quota(self, cluster: Cluster, full: str, place: Place) -> None:
        async with opened(cluster, full) as source:
            with pytest.raises(QuotaExceeded, match="pods"):
                await source.create("sbx-1", place())

    async def test_a_runtime_class_that_is_not_there(self, stage: Opened, place: Place) -> None:
        async with stage() as s:
            with pytest.raises(SandboxRejected, match="no-such"):
                await s.create(place(pod={"runtimeClassName": "no-such"}))

    async def test_a_namespace_that_is_not_there(self, cluster: Cluster, place: Place) -> None:
        async with opened(cluster, "no-such") as source:
            with pytest.raises(SandboxRejected, match="no namespace"):
                await source.create("sbx-1", place())


class TestTrouble:
    async def test_the_api_server_says_that_an_old_version_has_expired(
        self, cluster: Cluster, namespace: Namespace
    ) -> None:
        path = f"/api/v1/namespaces/{namespace.name}/pods"
        async with connected(cluster.kubeconfig) as api:

            async def watch() -> None:
                query = {"watch": "true", "resourceVersion": "1", "timeoutSeconds": "5"}
                async with api.stream(path, query=query) as events:
                    async for event in events:
                        assert event["type"] == "ERROR", event
                        raise Expired(event["object"]["reason"])

            with pytest.raises(Expired, match="Expired"):
                await watch()

    async def test_a_cut_line_hides_nothing(
        self, stage: Opened, place: Place, cluster: Cluster, namespace: Namespace, tmp_path: Path
    ) -> None:
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        server = urlsplit(config["clusters"][0]["cluster"]["server"])
        assert server.hostname
        async with stage() as s, Line(server.hostname, server.port or 443).open() as line:
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{line.port}"
            (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
            first = await s.running(place(toolserver=BAKED))
            async with opened_at(tmp_path / "kubeconfig", namespace.name) as source, source.observe() as changes:
                behind = Watch(changes, PATIENCE)
                assert first.name in {sandbox.name for sandbox in await behind.synced()}

                await line.cut()
                await s.source.delete(first.name, uid=first.uid)
                await s.watch.gone(first.name)
                second = await s.running(place(toolserver=BAKED))
                line.mend()

                last = await behind.gone(first.name)
                assert (await behind.running(second.name)).uid == second.uid
                assert last.ending
                assert last.ending.cause is EndCause.DELETED

    async def test_custom_resources_can_be_followed_the_same_way(self, cluster: Cluster) -> None:
        async with connected(cluster.kubeconfig) as api:
            updates = follow(api, "/api/v1/nodes")
            listed = await anext(updates)
            await updates.aclose()

        assert isinstance(listed, Listed)
        assert len(listed.objects) == len(cluster.nodes())


@asynccontextmanager
async def opened_at(kubeconfig: Path, namespace: str) -> AsyncIterator[KubernetesSource]:
    async with connected(kubeconfig) as api:
        yield KubernetesSource(api, namespace=namespace, keys={}, toolserver_image="x", image_volumes=False)
