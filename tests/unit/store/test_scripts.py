import hashlib
import re
from pathlib import Path

import pytest

from rollcage.store import refusals, scripts
from rollcage.store.keys import TEMPLATES
from rollcage.store.refusals import refusal
from rollcage.store.scripts import Script

FOLDER = Path(scripts.__file__).parent
TEXTS = {path.stem: path.read_text() for path in FOLDER.glob("*.lua")}


def test_a_script_has_the_name_that_the_server_will_give_it() -> None:
    for script in scripts.load().values():
        assert script.sha == hashlib.sha1(script.text.encode(), usedforsecurity=False).hexdigest()


def test_arguments_go_along_with_their_names() -> None:
    assert scripts.load()["finish"].words({"rollout": "r", "call": "c"}) == ["rollout", "r", "call", "c"]


def test_a_script_that_names_its_arguments_is_given_them_in_its_own_order() -> None:
    script = Script("", "", takes=("retention", "now", "rollout", "call", "sandbox"))

    assert script.words({"call": "c", "now": "", "rollout": "r", "retention": 1}) == [1, "", "r", "c"]


def test_such_a_script_cannot_be_given_an_argument_before_another_one_is() -> None:
    script = Script("", "", takes=("rollout", "call", "sandbox"))

    with pytest.raises(KeyError):
        script.words({"rollout": "r", "sandbox": "s"})


def test_whatever_a_script_looks_at_of_its_arguments_it_names_if_it_names_any() -> None:
    for name, script in scripts.load().items():
        if script.takes:
            assert set(re.findall(r"\barg\.(\w+)", TEXTS[name])) <= set(script.takes), name


def test_parts_are_not_scripts_of_their_own() -> None:
    assert scripts.load().keys() == TEXTS.keys() - {"base", "calls", "index", "pool"}


def test_every_script_says_what_it_is_for() -> None:
    for name, text in TEXTS.items():
        assert text.startswith("-- "), name


def test_scripts_use_only_keys_that_are_written_down_and_every_one_of_them() -> None:
    used = {name for text in TEXTS.values() for name in re.findall(r"\bkey\('(\w+)'", text)}
    handed_in = {"index", "bindings", "activity"}

    assert used <= TEMPLATES.keys()
    assert TEMPLATES.keys() - used - handed_in == set()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_scripts_never_look_at_the_whole_keyspace(name: str) -> None:
    assert not re.search(r"call\('(KEYS|SCAN|RANDOMKEY)'", TEXTS[name])


def test_every_refusal_of_a_script_has_its_error() -> None:
    refused = {code for text in TEXTS.values() for code in re.findall(r"refuse\('(\w+)'", text)}
    chosen = {code for text in TEXTS.values() for code in re.findall(r"refuse\(live\(\) and '(\w+)'", text)}

    assert refused | chosen == refusals._ERRORS.keys()  # noqa: SLF001


def test_a_refusal_carries_its_facts() -> None:
    error = refusal([b"refused", b"queue_full", b"py", b"10", b"8"])

    assert error
    assert (error.code, vars(error)) == ("queue_full", {"environment": "py", "waiting": 10, "limit": 8})


@pytest.mark.parametrize("code", sorted(refusals._ERRORS))  # noqa: SLF001
def test_a_refusals_code_is_the_errors_code(code: str) -> None:
    numbers = [b"1"] * 4
    arity = {"store_recovering": 0, "may_have_run": 1, "rollout_unknown": 1, "over_quota": 3, "queue_full": 3}
    facts = numbers[: arity.get(code, 4 if code == "restore_conflict" else 2)]

    error = refusal([b"refused", code.encode(), *facts])

    assert error
    assert error.code == code


@pytest.mark.parametrize("answer", [None, 1, b"refused", [], [b"bound", b"s1"], [1, 2]])
def test_other_answers_are_no_refusals(answer: object) -> None:
    assert refusal(answer) is None
