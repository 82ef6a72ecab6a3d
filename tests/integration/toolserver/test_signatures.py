"""Who is let in, and with which words the others are turned away."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rollcage.wire.tokens import CLOCK_WINDOW, Scope, Signer, TokenError, Verifier, public_key
from support.local_toolserver import Launcher
from support.toolserver import SIGNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.local_toolserver import LocalToolserver, Start

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors/tokens.json").read_text())
# A header cannot hold a line break, so no request can carry that one.
SENDABLE = [vector for vector in VECTORS["vectors"] if "\n" not in vector["authorization"]]
STATUS = {"wrong_audience": 403, "wrong_scope": 403}

STRANGER = Signer("k1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
UNKNOWN = Signer("k9", STRANGER.key)


@pytest.fixture(scope="module")
def known(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalToolserver]:
    """The sandbox that the vectors are about; they change nothing, so one serves them all."""
    place = tmp_path_factory.mktemp("vectors")
    launcher = Launcher(binary, place, place / "log")
    with launcher.start(sandbox=VECTORS["sandbox"], keys=json.dumps(VECTORS["keys"])) as server:
        yield server


def judged(header: str, scopes: list[Scope]) -> str:
    """Return the code with which the Python verifier refuses a header today."""
    verifier = Verifier(VECTORS["sandbox"], {name: public_key(key) for name, key in VECTORS["keys"].items()})
    with pytest.raises(TokenError) as refusal:
        verifier.verify(header, accepts=scopes, now=datetime.now(UTC))
    return refusal.value.code


@pytest.mark.parametrize("vector", SENDABLE, ids=lambda vector: vector["name"])
def test_the_running_binary_judges_the_shared_vectors_as_python_does(
    known: LocalToolserver, vector: dict[str, Any]
) -> None:
    """The vectors have a time of their own and the binary has today's; the verifier can be asked for any."""
    header = vector["authorization"].strip()  # HTTP takes white space off the ends.
    scopes = [Scope(name) for name in vector["accepts"]]
    target = "/v1/state" if Scope.INSPECT in scopes else "/v1/calls/none"

    answer = known.request("GET", target, headers={"Authorization": header})

    code = judged(header, scopes)
    assert answer.refusal == (STATUS.get(code, 401), code)


def test_a_request_without_a_token_is_refused(sandbox: LocalToolserver) -> None:
    answer = sandbox.raw(b"GET /v1/state HTTP/1.0\r\nHost: x\r\n\r\n")

    assert b"401 Unauthorized" in answer
    assert b'"code":"unsigned"' in answer


def test_two_tokens_are_none(sandbox: LocalToolserver) -> None:
    header = f"Authorization: {sandbox.authorization()}\r\n"

    answer = sandbox.raw(f"GET /v1/state HTTP/1.0\r\nHost: x\r\n{header}{header}\r\n".encode())

    assert b'"code":"unsigned"' in answer


REFUSED: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "an unknown key": ({"signer": UNKNOWN}, (401, "unknown_key")),
    "a stranger's signature": ({"signer": STRANGER}, (401, "bad_signature")),
    "another sandbox": ({"sandbox": "sbx-2"}, (403, "wrong_audience")),
    "too old": ({"age": timedelta(minutes=16)}, (401, "expired")),
    "too young": ({"age": -CLOCK_WINDOW - timedelta(minutes=1)}, (401, "expired")),
    "the wrong scope": ({"scope": Scope.INSPECT}, (403, "wrong_scope")),
}


@pytest.mark.parametrize(("token", "refusal"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_for(sandbox: LocalToolserver, token: dict[str, Any], refusal: tuple[int, str]) -> None:
    headers = {"Authorization": sandbox.authorization(**token)}
    body = sandbox.body("shell", "a", {"command": "touch ran"})

    answer = sandbox.request("POST", "/v1/calls", body, headers)

    assert answer.refusal == refusal
    state = sandbox.state()
    assert (state.bound_to, state.journal.calls) == (None, 0)
    assert state.counters.auth_failures[refusal[1]] == 1


@pytest.mark.parametrize("age", [timedelta(minutes=14), -CLOCK_WINDOW + timedelta(minutes=1)])
def test_clocks_may_differ_by_minutes(sandbox: LocalToolserver, age: timedelta) -> None:
    headers = {"Authorization": sandbox.authorization(age=age)}

    assert sandbox.request("GET", "/v1/tools", headers=headers).status == 200


def test_an_inspector_needs_no_rollout_and_may_only_look(sandbox: LocalToolserver) -> None:
    nobody = sandbox.of("")

    assert nobody.get("/v1/state", Scope.INSPECT).status == 200
    assert nobody.get("/v1/tools", Scope.INSPECT).status == 200
    for target in ("/v1/calls/x", "/v1/files?path=x", "/v1/tree?path=."):
        assert nobody.get(target, Scope.INSPECT).refusal == (403, "wrong_scope")


def test_keys_can_rotate(start: Start) -> None:
    new = Signer("k2", STRANGER.key)
    sandbox = start(keys=json.dumps({key.key_id: key.public_key() for key in (SIGNER, new)}))

    for signer in (SIGNER, new):
        headers = {"Authorization": sandbox.authorization(signer=signer)}
        assert sandbox.request("GET", "/v1/state", headers=headers).status == 200


def test_nothing_of_the_body_is_read_before_the_signature_is_checked(sandbox: LocalToolserver) -> None:
    head = b"POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n"

    assert b'"code":"unsigned"' in sandbox.raw(head)


def test_health_needs_no_signature_and_tells_nothing(sandbox: LocalToolserver) -> None:
    sandbox.shell("true")

    for target in ("/healthz", "/readyz"):
        answer = sandbox.request("GET", target, headers={"Authorization": ""})
        assert (answer.status, answer.body) == (200, b"{}")
        assert answer.boot is None


def test_the_log_holds_no_token(sandbox: LocalToolserver, launcher: Launcher) -> None:
    sandbox.shell("true")
    sandbox.request("GET", "/v1/state", headers={"Authorization": sandbox.authorization(signer=STRANGER)})
    sandbox.stop()

    assert launcher.logged()
    assert "Rollcage " not in launcher.log.read_text()
