"""What a deployed process is told, and what it does not put up with."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from rollcage.wiring.settings import Settings, settings_from

TOLD = {"ROLLCAGE_REDIS_URL": "rediss://:p@redis.example:6380/0", "ROLLCAGE_KEYRING": "/keyring.json"}


def test_the_certificate_of_an_authority_goes_to_the_store() -> None:
    told = settings_from(Settings, {**TOLD, "ROLLCAGE_REDIS_CA": "/ca.crt"})

    assert told.store.ca == Path("/ca.crt")


def test_an_authority_for_a_server_without_tls_is_refused_rather_than_ignored() -> None:
    with pytest.raises(ValidationError, match="does not begin with rediss://"):
        settings_from(Settings, {**TOLD, "ROLLCAGE_REDIS_URL": "redis://r", "ROLLCAGE_REDIS_CA": "/ca.crt"})
