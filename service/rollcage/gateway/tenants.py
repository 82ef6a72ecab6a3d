"""
Who may come in: tenants, their tokens' hashes, their quotas.

Decides whose token it is and nothing else; where a token stands in a request
is for the dialects, what a quota means for those who count.

Tokens are 256 bits of randomness, so nobody can guess one from its hash, and a
slow hash (scrypt, argon2) would only slow us down, on every call: SHA-256 is
the right one here. It would be wrong for passwords that people choose, and
therefore a token too short to be random is refused.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Final, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from rollcage.core.errors import RollcageError
from rollcage.core.ids import BadId, trainers_id

# 32 random bytes are 43 letters in base64url; whatever is much shorter was thought up by somebody.
SHORTEST_TOKEN: Final = 32
LONGEST_TOKEN: Final = 512

_INDEX_BYTES: Final = 8


class TenantsInvalid(RollcageError):
    """A tenants file was refused whole; *problems* names what is wrong in it."""

    code = "tenants_invalid"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class Quotas(_Part):
    """What one tenant may hold at once."""

    in_flight_calls: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Calls being served by one gateway."""
    reserved_sandboxes: Annotated[int, Field(ge=0, le=10_000)] = 1000
    """Sandboxes reserved ahead, by all runs together."""


class Tenant(_Part):
    """Somebody who may come in."""

    name: str
    tokens: Annotated[tuple[Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")], ...], Field(min_length=1)]
    """Hashes, several so that a token can be replaced without a gap."""
    quotas: Quotas = Quotas()

    @field_validator("name")
    @classmethod
    def _name_is_an_id(cls, name: str) -> str:
        try:
            return trainers_id("tenant", name)
        except BadId as refusal:
            raise ValueError(str(refusal)) from refusal


class _File(_Part):
    tenants: tuple[Tenant, ...]


@dataclass(frozen=True, slots=True)
class Directory:
    """All tenants, found by their tokens."""

    tenants: tuple[Tenant, ...] = ()
    _by_hash: dict[bytes, tuple[bytes, Tenant]] = field(default_factory=dict)

    @classmethod
    def of(cls, tenants: Iterable[Tenant]) -> Self:
        """Return the directory of these tenants."""
        known = tuple(tenants)
        hashes = [(bytes.fromhex(text.removeprefix("sha256:")), tenant) for tenant in known for text in tenant.tokens]
        return cls(known, {digest[:_INDEX_BYTES]: (digest, tenant) for digest, tenant in hashes})

    def holder(self, token: str) -> Tenant | None:
        """
        Return whose token it is, or None.

        Found by the first bytes of its hash, which tell nothing about other
        tokens; the whole is compared in constant time.
        """
        if not SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN:
            return None
        digest = _digest(token)
        expected, tenant = self._by_hash.get(digest[:_INDEX_BYTES], (b"", None))
        return tenant if hmac.compare_digest(digest, expected) else None


# The same few tokens come with every call. Whose they are is looked up each time: one may have been taken back.
@lru_cache(maxsize=1024)
def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def token_hash(token: str) -> str:
    """Return a token's hash as the file has it."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def read_tenants(text: str) -> Directory:
    """Return the tenants of a YAML text, or raise TenantsInvalid with everything that is wrong."""
    try:
        tenants = _File.model_validate(yaml.safe_load(text)).tenants
    except yaml.YAMLError as error:
        raise TenantsInvalid((f"is not YAML: {_line(error)}",)) from None
    except ValidationError as error:
        # Without what was given: somebody may have written the token itself instead of its hash.
        raise TenantsInvalid(tuple(_problem(one["loc"], one["msg"]) for one in error.errors())) from None
    if twice := _twice(tenant.name for tenant in tenants):
        raise TenantsInvalid((f"two tenants are called {twice}",))
    if _twice(text for tenant in tenants for text in tenant.tokens):
        raise TenantsInvalid(("two tokens are the same",))
    return Directory.of(tenants)


def _line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}" if mark else "no line known"


def _problem(location: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, location)) or 'the file'}: {message}"


def _twice(values: Iterable[Any]) -> Any:
    seen = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
