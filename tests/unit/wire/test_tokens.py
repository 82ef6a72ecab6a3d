import json
import runpy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rollcage.wire.tokens import (
    BadToken,
    Claims,
    Scope,
    Signer,
    TokenError,
    Verifier,
    WrongAudience,
    public_key,
)

VECTORS = Path(__file__).parents[2] / "vectors"
SHARED: dict[str, Any] = json.loads((VECTORS / "tokens.json").read_text())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIGNER = Signer("k1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
VERIFIER = Verifier("sbx-1", {"k1": public_key(SIGNER.public_key())})


def outcome(vector: dict[str, Any]) -> str:
    verifier = Verifier(SHARED["sandbox"], {name: public_key(key) for name, key in SHARED["keys"].items()})
    scopes = [Scope(name) for name in vector["accepts"]]
    try:
        verifier.verify(vector["authorization"], accepts=scopes, now=datetime.fromtimestamp(vector["now"], UTC))
    except TokenError as error:
        return error.code
    return "ok"


@pytest.mark.parametrize("vector", SHARED["vectors"], ids=lambda vector: vector["name"])
def test_the_shared_vectors_hold(vector: dict[str, Any]) -> None:
    assert outcome(vector) == vector["code"]


def test_the_vector_file_is_what_its_script_writes() -> None:
    script = runpy.run_path(str(VECTORS / "tokens.py"))
    assert script["document"]() == (VECTORS / "tokens.json").read_text()


def test_vector_names_are_unique() -> None:
    names = [vector["name"] for vector in SHARED["vectors"]]
    assert len(names) == len(set(names))


def test_a_signed_header_verifies_to_its_claims() -> None:
    header = SIGNER.authorization(
        sandbox="sbx-1", rollout="trace_1", scope=Scope.ACT, now=NOW, lifetime=timedelta(minutes=10)
    )

    claims = VERIFIER.verify(header, accepts=[Scope.ACT], now=NOW)

    iat = int(NOW.timestamp())
    assert claims == Claims(kid="k1", aud="sbx-1", rol="trace_1", scp="act", iat=iat, exp=iat + 600)


def test_a_token_is_good_for_one_sandbox_only() -> None:
    header = SIGNER.authorization(
        sandbox="sbx-2", rollout="trace_1", scope=Scope.ACT, now=NOW, lifetime=timedelta(minutes=1)
    )
    with pytest.raises(WrongAudience):
        VERIFIER.verify(header, accepts=[Scope.ACT], now=NOW)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"rol": "../x"}, id="a rollout that climbs"),
        pytest.param({"exp": 3601}, id="a lifetime beyond one hour"),
        pytest.param({"kid": "a b"}, id="a key id with a space"),
        pytest.param({"aud": ""}, id="no audience"),
    ],
)
def test_a_signer_cannot_write_what_a_verifier_refuses(changes: dict[str, Any]) -> None:
    claims = Claims(kid="k1", aud="sbx-1", rol="trace_1", scp="act", iat=0, exp=600)
    with pytest.raises(BadToken):
        replace(claims, **changes)


def test_the_longest_legal_token_fits_the_limit() -> None:
    claims = Claims(kid="k" * 64, aud="a" * 253, rol="r" * 200, scp="inspect", iat=2**53 - 60, exp=2**53)
    assert len(SIGNER.sign(claims)) <= 1024


def test_flipping_any_character_of_a_token_refuses_it() -> None:
    header = SIGNER.authorization(
        sandbox="sbx-1", rollout="trace_1", scope=Scope.ACT, now=NOW, lifetime=timedelta(minutes=1)
    )
    for place in range(len("Rollcage "), len(header)):
        forged = header[:place] + ("A" if header[place] != "A" else "B") + header[place + 1 :]
        with pytest.raises(TokenError):
            VERIFIER.verify(forged, accepts=list(Scope), now=NOW)


@pytest.mark.parametrize("text", ["", "AAAA", "!" * 43, "A" * 44])
def test_a_public_key_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(BadToken):
        public_key(text)
