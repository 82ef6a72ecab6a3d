import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.core.ids import (
    BadId,
    RolloutId,
    RunId,
    environment_name,
    rollout_key,
    sandbox_name,
    tenant_key,
    trainers_id,
    word,
)

IDS = st.from_regex(r"[A-Za-z0-9_.:-]{1,200}", fullmatch=True)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="nothing"),
        pytest.param("a" * 201, id="too long"),
        pytest.param("a b", id="a space"),
        pytest.param("a\n", id="a line end after something good"),
        pytest.param("../etc", id="a slash"),
        pytest.param("a*", id="a pattern"),
        pytest.param("a\0b", id="a zero byte"),
        pytest.param("é", id="a letter that is not ASCII"),
        pytest.param("{a}", id="a hash tag"),
    ],
)
def test_an_id_outside_the_allow_list_is_refused(value: str) -> None:
    for make in (lambda: RolloutId("acme", value), lambda: RunId(value, "run"), lambda: trainers_id("call", value)):
        with pytest.raises(BadId):
            make()


def test_a_refused_id_is_not_repeated_in_the_message() -> None:
    with pytest.raises(BadId) as refused:
        trainers_id("rollout", "secret token")

    assert "secret" not in str(refused.value)
    assert (refused.value.code, refused.value.kind) == ("bad_id", "rollout")


@given(IDS)
def test_every_allowed_id_has_a_key_that_is_safe_as_a_name(value: str) -> None:
    for key in (RolloutId(value, value).key, RunId(value, value).key, tenant_key(value)):
        assert re.fullmatch(r"[0-9a-f]{32}", key)


@given(IDS, IDS, IDS, IDS)
def test_keys_differ_where_tenant_or_name_do(tenant: str, name: str, other_tenant: str, other_name: str) -> None:
    same = (tenant, name) == (other_tenant, other_name)

    assert (RolloutId(tenant, name).key == RolloutId(other_tenant, other_name).key) == same


def test_a_rollout_and_a_run_of_the_same_name_have_different_keys() -> None:
    assert str(RolloutId("acme", "x").key) != str(RunId("acme", "x").key)


def test_keys_never_change_between_releases() -> None:
    assert RolloutId("acme", "trace_1").key == "df1569715c245a5b6f4e8d1bc43a5862"
    assert rollout_key(RolloutId("acme", "trace_1").key) == RolloutId("acme", "trace_1").key


@pytest.mark.parametrize("value", ["Py", "-py", "py-", "a:b", "a_b", "", "a" * 64])
def test_an_environment_is_called_as_kubernetes_would(value: str) -> None:
    assert environment_name("swe-bench.v2") == "swe-bench.v2"
    with pytest.raises(BadId):
        environment_name(value)


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(lambda: sandbox_name("a b"), id="a sandbox with a space"),
        pytest.param(lambda: word("verdict", "Masked"), id="a word with a capital"),
        pytest.param(lambda: rollout_key("trace_1"), id="a trainer's id where a key is meant"),
    ],
)
def test_what_others_depend_on_is_checked_too(refused: object) -> None:
    assert callable(refused)
    with pytest.raises(BadId):
        refused()
