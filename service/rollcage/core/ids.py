"""
Check the ids that come from outside, and give them names that are safe everywhere.

An id is accepted whole or refused whole, never repaired. What becomes a key,
a label or a pod's name is a hash, qualified by tenant, so that two tenants may
use the same ids and nobody can choose another one's name.
"""

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NewType

from rollcage.core.errors import RollcageError
from rollcage.core.values import value

RunKey = NewType("RunKey", str)
RolloutKey = NewType("RolloutKey", str)
TenantKey = NewType("TenantKey", str)

_TRAINERS: Final = re.compile(r"[A-Za-z0-9_.:-]{1,200}")

# What Kubernetes accepts as the name of an object and as the value of a label.
_ENVIRONMENT: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")

# The toolserver's own idea of a sandbox, see wire.tokens.
_SANDBOX: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,253}")

# A word that others count by: a verdict, a cause, a class of outcomes.
_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

# 128 bits: no two ids will ever share a name, and it fits into a label.
_HEX_DIGITS: Final = 32
_KEY: Final = re.compile(rf"[0-9a-f]{{{_HEX_DIGITS}}}")


class BadId(RollcageError):
    """An id was refused as it is; nothing was done with it."""

    code = "bad_id"

    def __init__(self, *, kind: str, pattern: str) -> None:
        # The id itself stays out: nobody knows what is in it, and messages get around.
        super().__init__(f"{kind} does not match {pattern}")
        self.kind = kind
        self.pattern = pattern


@dataclass(frozen=True, slots=True)
class RunId:
    """A training job's rollouts, by the name that its tenant gave it."""

    tenant: str
    name: str

    def __post_init__(self) -> None:
        trainers_id("tenant", self.tenant)
        trainers_id("run", self.name)

    @property
    def key(self) -> RunKey:
        """The run's name inside the service."""
        return RunKey(_hashed("run", self.tenant, self.name))


@value
class RolloutId:
    """One trajectory, by the id that its trainer gave it."""

    tenant: str
    name: str
    # The rollout's name inside the service; every call asks for it several times.
    key: RolloutKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        trainers_id("tenant", self.tenant)
        trainers_id("rollout", self.name)
        self.key = RolloutKey(_hashed("rollout", self.tenant, self.name))  # type: ignore[misc]  # before anybody has it


# A rollout's calls, and those of a whole step, come close together.
@lru_cache(maxsize=4096)
def rollout_id(tenant: str, name: str) -> RolloutId:
    """Return a rollout's id, which was checked before if it was met before."""
    return RolloutId(tenant, name)


def tenant_key(tenant: str) -> TenantKey:
    """Return the tenant's name inside the service."""
    return TenantKey(_hashed("tenant", trainers_id("tenant", tenant)))


def rollout_key(value: str) -> RolloutKey:
    """Return *value* if it can be a rollout's name inside the service, else raise BadId."""
    return RolloutKey(_matching(_KEY, "rollout key", value))


def trainers_id(kind: str, value: str) -> str:
    """Return *value* if a trainer may use it as an id, else raise BadId."""
    # Every call has several: not by way of another function.
    if not _TRAINERS.fullmatch(value):
        raise BadId(kind=kind, pattern=_TRAINERS.pattern)
    return value


def environment_name(value: str) -> str:
    """Return *value* if an environment can be called so, else raise BadId."""
    return _matching(_ENVIRONMENT, "environment", value)


def sandbox_name(value: str) -> str:
    """Return *value* if a sandbox can be called so, else raise BadId."""
    return _matching(_SANDBOX, "sandbox", value)


# There are a few dozen of them.
@lru_cache(maxsize=1024)
def word(kind: str, value: str) -> str:
    """Return *value* if it is a word to count by, else raise BadId."""
    return _matching(_WORD, kind, value)


def _matching(pattern: re.Pattern[str], kind: str, value: str) -> str:
    if not pattern.fullmatch(value):
        raise BadId(kind=kind, pattern=pattern.pattern)
    return value


# A rollout's calls, and those of a whole step, come close together.
@lru_cache(maxsize=4096)
def _hashed(*parts: str) -> str:
    # No id contains a zero byte, so no two lists of parts read the same.
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_HEX_DIGITS]
