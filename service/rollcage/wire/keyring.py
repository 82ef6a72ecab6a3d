"""
The keys that requests to toolservers are signed with.

Several at a time, so that they can be replaced: all of them are trusted by new
sandboxes, one of them signs. The file is a mounted secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rollcage.core.errors import RollcageError
from rollcage.wire.tokens import Signer

if TYPE_CHECKING:
    from pathlib import Path

_SEED_BYTES: Final = 32


class BadKeyring(RollcageError):
    """The file does not hold keys; nothing can be signed."""

    code = "bad_keyring"


@dataclass(frozen=True, slots=True)
class Keyring:
    """Private keys by their id, and the one that signs."""

    signer: Signer
    others: tuple[Signer, ...] = ()

    @property
    def public_keys(self) -> dict[str, str]:
        """The keys that sandboxes trust, as ROLLCAGE_KEYS wants them."""
        return {one.key_id: one.public_key() for one in (self.signer, *self.others)}

    @classmethod
    def read(cls, path: Path) -> Keyring:
        """Read ``{"signs": id, "keys": {id: seed in base64}}``."""
        try:
            content = json.loads(path.read_text())
            keys = {name: _key(name, seed) for name, seed in content["keys"].items()}
            signer = keys.pop(content["signs"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            # The content stays out of the message, whatever it is.
            raise BadKeyring(f"{path} is no keyring: {type(error).__name__}") from error
        return cls(signer, tuple(keys.values()))


def new_keyring(key_id: str = "k1") -> str:
    """Return the text of a keyring with one new key."""
    seed = base64.b64encode(secrets.token_bytes(_SEED_BYTES)).decode()
    return json.dumps({"signs": key_id, "keys": {key_id: seed}})


def _key(name: str, seed: str) -> Signer:
    try:
        raw = base64.b64decode(seed, validate=True)
    except binascii.Error as error:
        raise ValueError("a seed is base64") from error
    return Signer(name, Ed25519PrivateKey.from_private_bytes(raw))
