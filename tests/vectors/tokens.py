"""
Write the token vectors that the Go and the Python verifier are both held to.

Usage: PYTHONPATH=service python tests/vectors/tokens.py > tests/vectors/tokens.json

The output depends on nothing but this file: keys and times are fixed, and
Ed25519 signatures are deterministic. The keys are for tests only.
"""

import base64
import json
import sys
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SANDBOX: Final = "sbx-7f3a"
NOW: Final = 1767225900
ISSUED: Final = NOW - 300
KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NEXT_KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32, 64)))
STRANGER: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(64, 96)))

CLAIMS: Final[dict[str, Any]] = {
    "kid": "k1",
    "aud": SANDBOX,
    "rol": "trace_0a1b",
    "scp": "act",
    "iat": ISSUED,
    "exp": ISSUED + 600,
}
ACT: Final = ("act",)
EITHER: Final = ("act", "inspect")


def b64(raw: bytes) -> str:
    """Encode as base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(payload: bytes | str, *, key: Ed25519PrivateKey = KEY, domain: bytes = b"rollcage-token-v1.") -> str:
    """Return the header for any payload, well-formed or not."""
    encoded = b64(payload.encode() if isinstance(payload, str) else payload)
    return f"Rollcage {encoded}.{b64(key.sign(domain + encoded.encode()))}"


def token(*, key: Ed25519PrivateKey = KEY, **changes: object) -> str:
    """Return the header for the usual claims with some of them changed."""
    return signed(text(**changes), key=key)


def text(**changes: object) -> str:
    """Return the payload of the usual claims with some of them changed."""
    return json.dumps(CLAIMS | changes, separators=(",", ":"))


def vector(
    name: str, authorization: str, code: str = "ok", *, now: int = NOW, accepts: tuple[str, ...] = ACT
) -> dict[str, object]:
    """Return one case; *code* is "ok" or the error that refuses the token."""
    return {"name": name, "authorization": authorization, "now": now, "accepts": accepts, "code": code}


def accepted() -> list[dict[str, object]]:
    """Return tokens that must pass."""
    exp = ISSUED + 600
    long_id = "x" * 200
    return [
        vector("a fresh act token", token()),
        vector("a token of the second key during rotation", token(kid="k2", key=NEXT_KEY)),
        vector("an inspect token without a rollout", token(scp="inspect", rol=""), accepts=EITHER),
        vector("an inspect token with a rollout", token(scp="inspect"), accepts=EITHER),
        vector("an act token where inspect would do", token(), accepts=EITHER),
        vector("expired by exactly the clock window", token(), now=exp + 300),
        vector("issued ahead by exactly the clock window", token(), now=ISSUED - 300),
        vector("a lifetime of exactly one hour", token(exp=ISSUED + 3600)),
        vector("every character a rollout id may have", token(rol="AZaz09_.:-")),
        vector("the longest rollout id", token(rol=long_id)),
        vector(
            "fields in another order and white space",
            signed(json.dumps(dict(reversed(CLAIMS.items())), indent=1)),
        ),
        vector("letters written as escapes", signed(text().replace("trace", "\\u0074race"))),
    ]


def unsigned() -> list[dict[str, object]]:
    """Return headers that carry no token."""
    bare = token().removeprefix("Rollcage ")
    return [
        vector("no header", "", "unsigned"),
        vector("another scheme", f"Bearer {bare}", "unsigned"),
        vector("the scheme in lower case", f"rollcage {bare}", "unsigned"),
        vector("a token without the scheme", bare, "unsigned"),
        vector("the scheme alone", "Rollcage", "unsigned"),
    ]


def misshapen() -> list[dict[str, object]]:
    """Return what cannot be a token, whoever signed it."""
    usual = token()
    payload, signature = usual.removeprefix("Rollcage ").split(".")
    no_rollout = {name: value for name, value in CLAIMS.items() if name != "rol"}
    cases = {
        "the scheme and nothing": "Rollcage ",
        "no signature": f"Rollcage {payload}",
        "an empty signature": f"Rollcage {payload}.",
        "an empty payload": f"Rollcage .{signature}",
        "three parts": f"{usual}.{signature}",
        "two spaces after the scheme": usual.replace(" ", "  "),
        "a space at the end": f"{usual} ",
        "padding": f"{usual}==",
        "a signature one byte short": f"Rollcage {payload}.{signature[:-2]}",
        "stray bits in the last character": usual[:-1] + chr(ord(usual[-1]) + 1),
        "the other base64 alphabet": f"Rollcage {payload}.{'+' * 86}",
        "a line break inside": f"Rollcage {payload[:40]}\n{payload[40:]}.{signature}",
        "more than 1 KiB": signed(text() + " " * 700),
        "a payload that is not JSON": signed("hello"),
        "a payload that is a list": signed("[]"),
        "a payload that is null": signed("null"),
        "text after the payload": signed(text() + "{}"),
        "invalid UTF-8": signed(text().encode().replace(b"trace", b"tr\xffce")),
        "a byte order mark": signed(b"\xef\xbb\xbf" + text().encode()),
        "a field too many": token(admin=True),
        "a missing field": signed(json.dumps(no_rollout)),
        "a field twice": signed(text().replace("{", '{"rol":"other",', 1)),
        "a field name in upper case": signed(text().replace('"rol"', '"ROL"')),
        "a number as rollout": token(rol=7),
        "null as rollout": token(rol=None),
        "a time as text": token(exp=str(ISSUED + 600)),
        "a time with a fraction": token(iat=ISSUED + 0.5),
        "a time with a zero fraction": signed(text().replace(f"{ISSUED},", f"{ISSUED}.0,")),
        "a time with an exponent": signed(text().replace(f"{ISSUED},", "1767225600e0,")),
        "true as time": token(iat=True),
        "NaN as time": signed(text().replace(f"{ISSUED},", "NaN,")),
        "a negative time": token(iat=-1, exp=600),
        "a time beyond exact numbers": token(iat=2**53, exp=2**53 + 600),
        "a time beyond 64 bits": token(iat=2**64, exp=2**64 + 600),
        "an end before its beginning": token(exp=ISSUED - 1),
        "an end at its beginning": token(exp=ISSUED),
        "a lifetime of one hour and a second": token(exp=ISSUED + 3601),
        "act without a rollout": token(rol=""),
        "a rollout that climbs": token(rol="../x"),
        "a rollout with a line break": token(rol="a\nb"),
        "a rollout with a line break at its end": token(rol="a\n"),
        "a rollout with a wildcard": token(rol="k:*"),
        "a rollout with a look-alike letter": token(rol="tr\u0430ce"),
        "a rollout of 201 characters": token(rol="x" * 201),
        "inspect with a bad rollout": token(scp="inspect", rol="a b"),
        "half of a surrogate pair": signed(text().replace("trace", "\\ud800race")),
        "an empty key id": token(kid=""),
        "an empty audience": token(aud=""),
        "an empty scope": token(scp=""),
    }
    return [vector(name, header, "bad_token", accepts=EITHER) for name, header in cases.items()]


def refused() -> list[dict[str, object]]:
    """Return well-formed tokens that must not pass."""
    usual = token()
    exp = ISSUED + 600
    other_payload = token(rol="other").split(".")[0]
    return [
        vector("a key nobody has", token(kid="k9"), "unknown_key"),
        vector("a known key's name on a stranger's signature", token(key=STRANGER), "bad_signature"),
        vector("the other known key's name", token(kid="k2"), "bad_signature"),
        vector("another payload under the signature", f"{other_payload}.{usual.split('.')[1]}", "bad_signature"),
        vector("signed without the domain", signed(text(), domain=b""), "bad_signature"),
        vector("a signature of zeros", f"{usual.split('.')[0]}.{b64(bytes(64))}", "bad_signature"),
        vector(
            "a stranger is refused before the audience is looked at",
            token(aud="x", key=STRANGER),
            "bad_signature",
        ),
        vector("another sandbox", token(aud="sbx-0000"), "wrong_audience"),
        vector("the sandbox's name in upper case", token(aud=SANDBOX.upper()), "wrong_audience"),
        vector("another sandbox, long ago", token(aud="sbx-0000"), "wrong_audience", now=exp + 9999),
        vector("expired by more than the clock window", token(), "expired", now=exp + 301),
        vector("issued ahead by more than the clock window", token(), "expired", now=ISSUED - 301),
        vector("inspect where act is needed", token(scp="inspect"), "wrong_scope"),
        vector("a scope from a later version", token(scp="grade"), "wrong_scope", accepts=EITHER),
        vector("an expired token of the wrong scope", token(scp="inspect"), "expired", now=exp + 301),
    ]


def document() -> str:
    """Return the whole file."""
    keys = {"k1": KEY, "k2": NEXT_KEY}
    vectors = [*accepted(), *unsigned(), *misshapen(), *refused()]
    content = {
        "about": "Written by tests/vectors/tokens.py; do not edit.",
        "sandbox": SANDBOX,
        "keys": {name: b64(key.public_key().public_bytes_raw()) for name, key in keys.items()},
        "claims": CLAIMS,
        "vectors": vectors,
    }
    return json.dumps(content, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
