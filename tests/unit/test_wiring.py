from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rollcage.wiring.settings import ControllerSettings, GatewaySettings, settings_from


def test_settings_are_read_from_variables_and_others_are_left_alone() -> None:
    told = {
        "ROLLCAGE_REDIS_URL": "redis://here",
        "ROLLCAGE_KEYRING": "/keys/ring",
        "ROLLCAGE_TENANTS": "/tenants/file",
        "ROLLCAGE_SANDBOX_NAMESPACE": "somebody else's",
        "PATH": "/bin",
    }

    settings = settings_from(GatewaySettings, told)

    assert (settings.redis_url, str(settings.tenants), settings.port) == ("redis://here", "/tenants/file", 8080)


def test_a_controller_has_a_name_of_its_own() -> None:
    told = {
        "ROLLCAGE_REDIS_URL": "redis://here",
        "ROLLCAGE_KEYRING": "/keys/ring",
        "ROLLCAGE_SANDBOX_NAMESPACE": "sandboxes",
        "ROLLCAGE_LEASE_NAMESPACE": "rollcage",
        "ROLLCAGE_TOOLSERVER_IMAGE": "toolserver",
    }

    assert str(os.getpid()) in settings_from(ControllerSettings, told).identity


@pytest.mark.parametrize("part", ["controller", "gateway"])
def test_what_was_not_told_is_named_and_nothing_is_started(part: str) -> None:
    bare = {name: text for name, text in os.environ.items() if not name.startswith("ROLLCAGE_")}
    ran = subprocess.run(
        [sys.executable, "-m", "rollcage.wiring", part],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert ran.returncode == 1
    assert "ROLLCAGE_REDIS_URL: Field required" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_part_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "rollcage.wiring", "both"], capture_output=True, text=True, check=False, timeout=120
    )

    assert ran.returncode == 1
    assert "controller|gateway" in ran.stderr
