"""What is decided about a sandbox before anything is started."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from rollcage.core.endings import EndCause
from rollcage.core.environment import Environment
from rollcage.sandboxes.local import users
from rollcage.sandboxes.local.command import Cage, Descriptors, command
from rollcage.sandboxes.local.detect import landlock_refusal
from rollcage.sandboxes.local.endings import exited
from rollcage.sandboxes.local.launch.spec import decoded
from rollcage.sandboxes.local.layout import Bind, Host, Link, Memory, ReadOnly, root
from rollcage.sandboxes.local.limits import Limits, process_limit, wanted
from rollcage.sandboxes.local.recipe import config_at, recipe
from rollcage.sandboxes.local.tiers import BEST_FIRST, REMEDIES, NoIsolation, Tier

MIB = 1 << 20
LIMITS = Limits(memory=64 * MIB, workspace=16 * MIB, temporary=8 * MIB, cpus=0.5, processes=100)
HOST = Host(present={"/usr": "/usr", "/etc/localtime": "/usr/share/zoneinfo/UTC"}, links={"/bin": "usr/bin"})


def environment(**spec: Any) -> Environment:
    return Environment.model_validate({"name": "e", "spec": {"image": "none", **spec}})


def steps() -> tuple[Any, ...]:
    return root(
        HOST,
        toolserver=Path("/run/toolserver"),
        settings=Path("/run/etc"),
        workdir="/workspace",
        limits=LIMITS,
        cgroups={"/sys/fs/cgroup": Path("/sys/fs/cgroup/ours")},
    )


def test_the_root_has_the_hosts_programs_and_nothing_that_is_the_hosts_own() -> None:
    bound = {step.target for step in steps() if isinstance(step, Bind)}

    assert {"/usr", "/opt/rollcage/toolserver", "/sys/fs/cgroup"} <= bound
    assert not any(path.startswith(("/home", "/root", "/var", "/etc/shadow", "/etc/ssh")) for path in bound)
    assert Link("/bin", "usr/bin") in steps()


def test_accounts_and_network_settings_are_our_own() -> None:
    bound = {step.target: step.source for step in steps() if isinstance(step, Bind)}

    assert bound["/etc/passwd"] == "/run/etc/passwd"
    assert bound["/etc/resolv.conf"] == "/run/etc/resolv.conf"
    assert bound["/etc/localtime"] == "/usr/share/zoneinfo/UTC"


def test_every_writable_place_has_a_size() -> None:
    sizes = {step.target: step.size for step in steps() if isinstance(step, Memory)}

    assert sizes == {"/workspace": 16 * MIB, "/tmp": 8 * MIB, "/dev/shm": 64 * MIB}  # noqa: S108 - the sandbox's own


def test_bubblewrap_gets_a_read_only_root_last_of_all() -> None:
    cage = Cage(Tier.BUBBLEWRAP, ("/opt/rollcage/toolserver", "serve"), "/workspace", None, root=steps())
    words = command(cage, "/usr/bin/bwrap", Descriptors(3, 4, (5,), 6))

    assert words[0] == "/usr/bin/bwrap"
    assert words[words.index("--chdir") - 2 : words.index("--chdir")] == ["--remount-ro", "/"]
    assert words[words.index("--size") + 1] == str(64 * MIB)
    assert {"--unshare-user", "--unshare-net", "--unshare-pid", "--as-pid-1"} <= set(words)
    # Killed with its parent at the wrong moment it would leave its child waiting for ever.
    assert "--die-with-parent" not in words
    assert words[words.index("--seccomp") + 1] == "6"


def test_bubblewrap_is_started_by_us_where_the_sandbox_has_a_user_of_its_own() -> None:
    cage = Cage(Tier.BUBBLEWRAP, ("/toolserver",), "/workspace", 12345, {resource.RLIMIT_CORE: 0}, root=steps())
    words = command(cage, "/usr/bin/bwrap", Descriptors(3, 4, (5,), 6))
    spec = decoded(words[-1])

    assert words[-2] == "dropper"
    assert (spec["outer_uid"], spec["limits"]) == (12345, [[resource.RLIMIT_CORE, 0]])
    assert spec["program"][0] == "/usr/bin/bwrap"
    assert spec["keep"] == [5, 6]


@pytest.mark.parametrize(
    ("tier", "kind", "landlock"),
    [(Tier.NAMESPACES, "cage", False), (Tier.LANDLOCK, "keeper", True), (Tier.NONE, "keeper", False)],
)
def test_each_tier_has_its_launcher(tier: Tier, kind: str, *, landlock: bool) -> None:
    words = command(Cage(tier, ("/toolserver",), "/workspace", None), "", Descriptors(3, 4))

    assert words[-2] == kind
    assert decoded(words[-1])["landlock"] is landlock


def test_a_launcher_lets_nothing_of_the_callers_python_in() -> None:
    words = command(Cage(Tier.NAMESPACES, ("/toolserver",), "/workspace", None), "", Descriptors(3, 4))

    assert words[1:3] == ["-I", "-S"]


def test_root_steps_reach_the_launcher_in_order() -> None:
    cage = Cage(Tier.NAMESPACES, ("/toolserver",), "/workspace", None, root=steps())
    spec = decoded(command(cage, "", Descriptors(3, 4))[-1])

    assert [step[1] for step in spec["root"]] == [step.target for step in steps()]
    assert ["read-only", "/dev"] in spec["root"]
    assert ReadOnly("/dev") in steps()


@pytest.mark.parametrize(
    ("alone", "user_namespace", "kernel", "expected"),
    [
        pytest.param(True, False, (5, 4), 100, id="a user id of its own counts alone"),
        pytest.param(False, True, (5, 14), 100, id="a namespace of its own counts alone"),
        pytest.param(False, True, (5, 13), 1100, id="older kernels count the user's others"),
        pytest.param(False, False, (6, 18), 1100, id="without either the user's others count"),
    ],
)
def test_how_many_processes_a_user_may_have(
    *, alone: bool, user_namespace: bool, kernel: tuple[int, int], expected: int
) -> None:
    limit = process_limit(LIMITS, alone=alone, user_namespace=user_namespace, kernel=kernel, others=lambda: 1000)

    assert limit == expected


def test_limits_say_memory_files_and_no_core_dumps() -> None:
    limits = wanted(LIMITS, 100)

    assert limits[resource.RLIMIT_DATA] == 64 * MIB
    assert limits[resource.RLIMIT_FSIZE] == 24 * MIB
    assert limits[resource.RLIMIT_CORE] == 0


@pytest.mark.parametrize(
    ("uid_map", "first"),
    [
        pytest.param("0 0 4294967295", 1_879_048_192, id="a machine has them all"),
        pytest.param("0 100000 65536", 50_000, id="a container has the usual few"),
        pytest.param("0 1000 1", None, id="a user namespace of one has none"),
    ],
)
def test_user_ids_come_from_where_nobody_else_takes_them(uid_map: str, first: int | None) -> None:
    ids = users.free_range(uid_map)

    assert (ids[0] if ids else None) == first


def test_a_user_id_that_is_taken_is_not_picked() -> None:
    turns = iter([5, 6, 7])

    assert users.pick(range(10), {5, 6}, lambda _: next(turns)) == 7


def test_where_every_user_id_is_taken_there_is_none() -> None:
    assert users.pick(range(10), set(range(10)), lambda ids: ids[0]) is None


@pytest.mark.parametrize(
    ("abi", "own_user", "enough"),
    [
        pytest.param(0, True, False, id="none at all"),
        pytest.param(2, True, False, id="one that lets files be emptied"),
        pytest.param(3, True, True, id="with a user id of its own signals are no worry"),
        pytest.param(5, False, False, id="without one they are"),
        pytest.param(6, False, True, id="until Landlock scopes them"),
    ],
)
def test_which_landlock_is_enough(abi: int, *, own_user: bool, enough: bool) -> None:
    assert (landlock_refusal(abi, own_user=own_user) == "") is enough


@pytest.mark.parametrize(
    ("code", "answered", "oom_kills", "cause"),
    [
        pytest.param(1, False, 0, EndCause.START_FAILED, id="never answered"),
        pytest.param(0, True, 0, EndCause.EXITED, id="ended well"),
        pytest.param(137, True, 0, EndCause.EXITED, id="killed by somebody"),
        pytest.param(137, True, 2, EndCause.OUT_OF_MEMORY, id="killed when memory ran out"),
        pytest.param(86, True, 2, EndCause.EXITED, id="something else after memory ran out"),
    ],
)
def test_how_an_end_is_told(code: int, *, answered: bool, oom_kills: int, cause: EndCause) -> None:
    ending = exited(code, answered=answered, oom_kills=oom_kills, log="last words")

    assert (ending.cause, ending.exit_code, ending.message) == (cause, code, "last words")


def test_an_environments_limits_become_a_laptops() -> None:
    made = recipe(
        environment(
            workspace={"size": "256Mi"},
            resources={"limits": {"memory": "512Mi", "cpu": "500m", "ephemeral-storage": "1Gi"}},
        ),
        processes=64,
    )

    assert made.limits == Limits(memory=512 * MIB, workspace=256 * MIB, temporary=768 * MIB, cpus=0.5, processes=64)


def test_a_workspace_that_takes_all_of_the_disk_leaves_room_for_temporary_files() -> None:
    sizes = {"workspace": {"size": "1Gi"}, "resources": {"limits": {"ephemeral-storage": "1Gi"}}}

    assert recipe(environment(**sizes), processes=64).limits.temporary == 64 * MIB


@pytest.mark.parametrize(
    ("workdir", "expected"),
    [("/workspace", "/run/w"), ("/workspace/repo", "/run/w/repo"), ("/usr/share", "/usr/share")],
)
def test_a_work_directory_moves_with_its_workspace(workdir: str, expected: str) -> None:
    made = recipe(environment(workdir=workdir), processes=64)

    assert json.loads(config_at(made, "/run/w"))["workdir"] == expected


def test_a_refusal_names_every_tier_with_its_reason_and_what_to_do() -> None:
    text = str(NoIsolation({tier: f"reason {tier}" for tier in BEST_FIRST}))

    for tier in BEST_FIRST:
        assert f"reason {tier}" in text
        assert REMEDIES[tier] in text
