"""Files of a real sandbox, through the gateway."""

from __future__ import annotations

import io
import os
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.gateways import Caller
    from support.stage import Stage

CALL = {"environment": "small", "tool": "shell", "arguments": {"command": "true"}}


async def begin(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    assert (await ask("POST", "/v1/rollouts/r1/calls", CALL)).status == 200


async def test_a_file_goes_in_and_comes_out_whole(ask: Caller, stage: Stage) -> None:
    await begin(ask, stage)
    content = os.urandom(3_000_000)
    written = await ask("PUT", "/v1/rollouts/r1/files?path=data/blob", content)
    assert (written.status, written.json()) == (200, {"bytes": len(content)})
    assert (stage.workdir("sbx-1") / "data/blob").read_bytes() == content
    fetched = await ask("GET", "/v1/rollouts/r1/files?path=data/blob")
    assert (fetched.status, fetched.body == content) == (200, True)


async def test_an_upload_may_be_larger_than_a_calls_body(ask: Caller, stage: Stage) -> None:
    await begin(ask, stage)
    written = await ask("PUT", "/v1/rollouts/r1/files?path=big", bytes(5_000_000))
    assert written.json() == {"bytes": 5_000_000}


async def test_a_directory_goes_in_and_comes_out(ask: Caller, stage: Stage) -> None:
    await begin(ask, stage)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        member = tarfile.TarInfo("a/b.txt")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"hi"))
    assert (await ask("PUT", "/v1/rollouts/r1/tree?path=here", archive.getvalue())).json()["bytes"] == 2
    fetched = await ask("GET", "/v1/rollouts/r1/tree?path=here")
    with tarfile.open(fileobj=io.BytesIO(fetched.body)) as tar:
        found = tar.extractfile("a/b.txt")
        assert found is not None
        assert found.read() == b"hi"


async def test_what_the_file_system_refuses_is_the_sandboxs_own_state(ask: Caller, stage: Stage) -> None:
    await begin(ask, stage)
    assert (await ask("GET", "/v1/rollouts/r1/files?path=missing")).code == (422, "file_error")


async def test_before_its_first_call_and_after_its_end_a_rollout_has_no_files(ask: Caller, stage: Stage) -> None:
    assert (await ask("GET", "/v1/rollouts/r1/files?path=x")).code == (404, "rollout_unknown")
    await begin(ask, stage)
    await ask("POST", "/v1/rollouts/r1/finish")
    assert (await ask("GET", "/v1/rollouts/r1/files?path=x")).code == (410, "rollout_ended")


async def test_a_sandbox_that_is_gone_is_a_503(ask: Caller, stage: Stage) -> None:
    await begin(ask, stage)
    stage.servers["sbx-1"].process.kill()
    stage.servers["sbx-1"].process.wait()
    assert (await ask("GET", "/v1/rollouts/r1/files?path=x")).code == (503, "sandbox_unreachable")
