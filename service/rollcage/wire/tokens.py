"""
Sign and verify the tokens that a toolserver accepts.

Decides only whether a token is genuine, meant for this sandbox and in force
now; which rollout a sandbox serves is the toolserver's fence. The Go side is
``images/toolserver/internal/token``; shared vectors keep the two equal.
"""

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rollcage.core.errors import RollcageError

SCHEME: Final = "Rollcage "

# Signed along with the payload, so that a signature made for anything else is no token.
DOMAIN: Final = b"rollcage-token-v1."

# The longest legal fields give 900 bytes; whatever is larger is not worth decoding.
MAX_TOKEN_BYTES: Final = 1024

# Clocks of nodes differ by minutes; a token is not the place to find out.
CLOCK_WINDOW: Final = timedelta(minutes=5)

# A leaked token should be worth little.
MAX_LIFETIME: Final = timedelta(hours=1)

# Beyond this, numbers in JSON stop being exact for some readers.
_MAX_TIME: Final = 2**53

_KEY_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SANDBOX: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,253}")
_ROLLOUT: Final = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_SCOPE: Final = re.compile(r"[a-z_]{1,32}")
_BASE64URL: Final = re.compile(rb"[A-Za-z0-9_-]+")
_SIGNATURE_BYTES: Final = 64


class Scope(StrEnum):
    """What a token's bearer may do."""

    ACT = "act"
    INSPECT = "inspect"


class TokenError(RollcageError):
    """A token that was not accepted; nothing was done on its behalf."""


class Unsigned(TokenError):
    """The request carries no token at all."""

    code = "unsigned"


class BadToken(TokenError):
    """What was sent cannot be a token that a Rollcage signer wrote."""

    code = "bad_token"


class UnknownKey(TokenError):
    """The token names a key that this verifier does not have."""

    code = "unknown_key"


class BadSignature(TokenError):
    """The key that the token names did not sign it."""

    code = "bad_signature"


class WrongAudience(TokenError):
    """The token is genuine and meant for another sandbox."""

    code = "wrong_audience"


class Expired(TokenError):
    """The token is genuine and not in force now: too old, or from the future."""

    code = "expired"


class WrongScope(TokenError):
    """The token is genuine and does not allow this request."""

    code = "wrong_scope"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says. Times are whole seconds since the epoch."""

    kid: str
    aud: str
    rol: str
    scp: str
    iat: int
    exp: int

    def __post_init__(self) -> None:
        for name, value, pattern in (
            ("kid", self.kid, _KEY_ID),
            ("aud", self.aud, _SANDBOX),
            ("scp", self.scp, _SCOPE),
        ):
            if not pattern.fullmatch(value):
                raise BadToken(f"{name} does not match {pattern.pattern}")
        # Only inspect may do without a rollout; a scope from a later version is refused elsewhere.
        if (self.rol or self.scp == Scope.ACT) and not _ROLLOUT.fullmatch(self.rol):
            raise BadToken(f"rol does not match {_ROLLOUT.pattern}")
        if not (0 <= self.iat < self.exp <= _MAX_TIME):
            raise BadToken("exp does not lie after iat")
        if self.exp - self.iat > MAX_LIFETIME.total_seconds():
            raise BadToken("lives longer than one hour")


@dataclass(frozen=True, slots=True)
class Signer:
    """Writes tokens with one private key."""

    key_id: str
    key: Ed25519PrivateKey

    def authorization(self, *, sandbox: str, rollout: str, scope: Scope, now: datetime, lifetime: timedelta) -> str:
        """Return the Authorization header for requests to *sandbox* on behalf of *rollout*."""
        iat = int(now.timestamp())
        claims = Claims(
            kid=self.key_id,
            aud=sandbox,
            rol=rollout,
            scp=scope,
            iat=iat,
            exp=iat + int(lifetime.total_seconds()),
        )
        return SCHEME + self.sign(claims)

    def sign(self, claims: Claims) -> str:
        """Return the token that says *claims*."""
        fields = {
            "kid": claims.kid,
            "aud": claims.aud,
            "rol": claims.rol,
            "scp": claims.scp,
            "iat": claims.iat,
            "exp": claims.exp,
        }
        payload = _encode(json.dumps(fields, separators=(",", ":")).encode())
        return f"{payload}.{_encode(self.key.sign(DOMAIN + payload.encode()))}"

    def public_key(self) -> str:
        """Return the public half, as ROLLCAGE_KEYS wants it."""
        return _encode(self.key.public_key().public_bytes_raw())


@dataclass(frozen=True, slots=True)
class Verifier:
    """Accepts tokens of known keys for one sandbox."""

    sandbox: str
    keys: Mapping[str, Ed25519PublicKey]

    def verify(self, authorization: str, *, accepts: Collection[Scope], now: datetime) -> Claims:
        """Return what the header's token says, or raise the TokenError that refuses it."""
        if not authorization.startswith(SCHEME):
            raise Unsigned("no Rollcage token")
        payload, signature = _split(authorization.removeprefix(SCHEME))
        claims = _parse(_decode(payload))
        key = self.keys.get(claims.kid)
        if key is None:
            raise UnknownKey(f"no key {claims.kid}")
        try:
            key.verify(signature, DOMAIN + payload)
        except InvalidSignature:
            raise BadSignature("not signed by the key it names") from None
        self._admit(claims, accepts=accepts, now=now)
        return claims

    def _admit(self, claims: Claims, *, accepts: Collection[Scope], now: datetime) -> None:
        if claims.aud != self.sandbox:
            raise WrongAudience("meant for another sandbox")
        window = int(CLOCK_WINDOW.total_seconds())
        second = int(now.timestamp())
        if second - claims.exp > window:
            raise Expired("has expired")
        if claims.iat - second > window:
            raise Expired("was issued in the future")
        if claims.scp not in accepts:
            raise WrongScope(f"scope {claims.scp} does not allow this")


def public_key(text: str) -> Ed25519PublicKey:
    """Read a public key as Signer.public_key writes it."""
    try:
        return Ed25519PublicKey.from_public_bytes(_decode(text.encode()))
    except ValueError as error:
        raise BadToken("a public key is 32 bytes in base64url") from error


def _split(token: str) -> tuple[bytes, bytes]:
    if len(token) > MAX_TOKEN_BYTES:
        raise BadToken("longer than 1 KiB")
    payload, dot, signature = token.encode(errors="replace").partition(b".")
    raw = _decode(signature) if dot else b""
    if len(raw) != _SIGNATURE_BYTES:
        raise BadToken("not of the form payload.signature")
    return payload, raw


def _parse(payload: bytes) -> Claims:
    try:
        fields = json.loads(payload.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadToken("payload is not strict JSON") from error
    if not isinstance(fields, dict) or set(fields) != set(Claims.__slots__):
        raise BadToken("payload does not have exactly the fields of a token")
    # bool is an int to isinstance, and true is no time.
    if not all(type(fields[name]) is str for name in ("kid", "aud", "rol", "scp")):
        raise BadToken("kid, aud, rol and scp are strings")
    if not all(type(fields[name]) is int for name in ("iat", "exp")):
        raise BadToken("iat and exp are integers")
    return Claims(**fields)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field twice")
    return fields


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: bytes) -> bytes:
    # The library skips what it does not know and ignores stray bits; one token must have one spelling.
    if not _BASE64URL.fullmatch(text):
        raise BadToken("not base64url")
    try:
        raw = base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error as error:
        raise BadToken("not base64url") from error
    if _encode(raw).encode() != text:
        raise BadToken("not base64url in its only spelling")
    return raw
