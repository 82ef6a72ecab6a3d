from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rollcage.wire.keyring import BadKeyring, Keyring, new_keyring

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_keyring_signs_with_its_only_key(tmp_path: Path) -> None:
    (tmp_path / "ring").write_text(new_keyring("k7"))

    ring = Keyring.read(tmp_path / "ring")

    assert ring.signer.key_id == "k7"
    assert ring.public_keys == {"k7": ring.signer.public_key()}


def test_a_key_that_does_not_sign_any_more_is_still_trusted(tmp_path: Path) -> None:
    old, new = json.loads(new_keyring("old")), json.loads(new_keyring("new"))
    (tmp_path / "ring").write_text(json.dumps({"signs": "new", "keys": {**old["keys"], **new["keys"]}}))

    ring = Keyring.read(tmp_path / "ring")

    assert ring.signer.key_id == "new"
    assert set(ring.public_keys) == {"old", "new"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param("[]", id="a list"),
        pytest.param('{"signs": "k1", "keys": {}}', id="a signer that is not there"),
        pytest.param('{"signs": "k1", "keys": {"k1": "c2hvcnQ="}}', id="a key too short"),
        pytest.param('{"signs": "k1", "keys": {"k1": "secret!"}}', id="a key that is no base64"),
    ],
)
def test_what_is_no_keyring_is_refused_without_being_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / "ring").write_text(text)

    with pytest.raises(BadKeyring) as refusal:
        Keyring.read(tmp_path / "ring")

    assert "secret" not in str(refusal.value)
    assert "c2hvcnQ" not in str(refusal.value)


def test_a_missing_keyring_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadKeyring):
        Keyring.read(tmp_path / "nothing")
