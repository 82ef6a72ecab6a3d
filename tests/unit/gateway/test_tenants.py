"""Who is let in, and that a bad file lets in exactly those who were let in before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import yaml
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from rollcage.gateway.tenants import Quotas, TenantsInvalid, read_tenants, token_hash
from rollcage.gateway.tenants_file import TenantsFile
from rollcage.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from pathlib import Path

OURS, NEXT, THEIRS = ("a1" * 20, "b2" * 20, "c3" * 20)
TEXT = yaml.safe_dump(
    {
        "tenants": [
            {"name": "ours", "tokens": [token_hash(OURS), token_hash(NEXT)], "quotas": {"inFlightCalls": 7}},
            {"name": "theirs", "tokens": [token_hash(THEIRS)]},
        ]
    }
)


@pytest.mark.parametrize(("token", "name"), [(OURS, "ours"), (NEXT, "ours"), (THEIRS, "theirs")])
def test_a_token_belongs_to_its_tenant(token: str, name: str) -> None:
    tenant = read_tenants(TEXT).holder(token)
    assert tenant is not None
    assert tenant.name == name


@pytest.mark.parametrize(
    "token",
    ["", "short", OURS[:-1], OURS + "x", OURS.swapcase(), "ä" * 40, "x" * 100_000, token_hash(OURS)],
    ids=["empty", "short", "cut", "longer", "other case", "not ASCII", "huge", "the hash itself"],
)
def test_whatever_is_not_exactly_a_token_belongs_to_nobody(token: str) -> None:
    assert read_tenants(TEXT).holder(token) is None


def test_a_token_too_short_to_be_random_is_refused_even_if_its_hash_is_there() -> None:
    text = yaml.safe_dump({"tenants": [{"name": "a", "tokens": [token_hash("hunter2")]}]})
    assert read_tenants(text).holder("hunter2") is None


def test_quotas_are_read_and_have_defaults() -> None:
    ours, theirs = read_tenants(TEXT).tenants
    assert ours.quotas.in_flight_calls == 7
    assert theirs.quotas == Quotas()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tenants: [", "is not YAML: line 1"),
        ("", "the file: "),
        ("tenants: [{name: a, tokens: []}]", "tenants.0.tokens"),
        ("tenants: [{name: 'a b', tokens: ['x']}]", "tenants.0.name"),
        (f"tenants: [{{name: a, tokens: ['{OURS}']}}]", "tenants.0.tokens.0"),
        (f"tenants: [{{name: a, tokens: ['{token_hash(OURS)}'], quota: 1}}]", "tenants.0.quota"),
        (TEXT.replace("theirs", "ours"), "two tenants are called ours"),
        (TEXT.replace(token_hash(THEIRS), token_hash(OURS)), "two tokens are the same"),
    ],
)
def test_a_bad_file_is_refused_whole_with_its_place_and_without_its_secrets(text: str, problem: str) -> None:
    with pytest.raises(TenantsInvalid) as refusal:
        read_tenants(text)
    assert problem in str(refusal.value)
    assert OURS not in str(refusal.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "tenants.yaml"
    made.write_text(TEXT)
    return made


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def test_a_changed_file_is_taken(path: Path, metrics: Metrics) -> None:
    tenants = TenantsFile(path, metrics=metrics)
    path.write_text(TEXT.replace(token_hash(OURS), token_hash(OURS + "2")))
    asyncio.run(tenants.look())
    assert tenants.holder(OURS) is None
    assert tenants.holder(OURS + "2") is not None
    assert b'rollcage_tenant_reloads_total{result="taken"} 1.0' in metrics.exposition()


@pytest.mark.parametrize("content", [b"tenants: [", b"\xff\xfe", b"", None], ids=["broken", "binary", "empty", "gone"])
def test_a_bad_new_file_keeps_the_old_tenants_and_is_complained_about_once(
    path: Path, metrics: Metrics, content: bytes | None
) -> None:
    tenants = TenantsFile(path, metrics=metrics)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with capture_logs() as logs:
        asyncio.run(tenants.look())
        asyncio.run(tenants.look())
    assert tenants.holder(OURS) is not None
    assert [(log["event"], log["log_level"]) for log in logs] == [("tenants_refused", "error")]


def test_a_file_that_is_mended_is_taken_again(path: Path, metrics: Metrics) -> None:
    tenants = TenantsFile(path, metrics=metrics)
    path.write_text("tenants: [")
    asyncio.run(tenants.look())
    path.write_text(TEXT.replace("theirs", "others"))
    asyncio.run(tenants.look())
    found = tenants.holder(THEIRS)
    assert found is not None
    assert found.name == "others"


@pytest.mark.parametrize("content", [None, "tenants: ["])
def test_without_a_good_file_there_is_no_start(path: Path, metrics: Metrics, content: str | None) -> None:
    path.unlink()
    if content:
        path.write_text(content)
    with pytest.raises(TenantsInvalid):
        TenantsFile(path, metrics=metrics)
