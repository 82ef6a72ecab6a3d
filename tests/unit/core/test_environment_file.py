from __future__ import annotations

from pathlib import Path

import pytest

from rollcage.core.environment import EnvironmentInvalid
from rollcage.core.environment_file import load_environments

REFERENCE = Path(__file__).parents[3] / "docs" / "environments.md"
TWO = """\
apiVersion: rollcage.dev/v1alpha1
kind: Environment
metadata:
  name: one
spec:
  image: a:1
---
# Only a comment.
---
apiVersion: rollcage.dev/v1alpha1
kind: Environment
metadata:
  name: two
spec:
  image: b:1
  pool:
    warm: 3
"""


def refused(text: str) -> list[str]:
    with pytest.raises(EnvironmentInvalid) as refusal:
        load_environments(text, file="e.yaml")
    return str(refusal.value).splitlines()


def test_documents_are_read_in_order_and_empty_ones_skipped() -> None:
    one, two = load_environments(TWO)

    assert (one.name, two.name, two.spec.pool.warm) == ("one", "two", 3)


def test_a_mistake_is_told_with_its_line_and_field() -> None:
    assert refused(TWO.replace("warm: 3", "warm: many")) == [
        "e.yaml:17: spec.pool.warm: Input should be a valid integer"
    ]


def test_a_missing_field_is_told_with_the_line_it_is_missing_from() -> None:
    assert refused(TWO.replace("  image: b:1\n", "")) == ["e.yaml:14: spec.image: is missing"]


def test_a_mistake_in_a_list_is_told_with_the_line_of_its_item() -> None:
    text = f"{TWO}  tools:\n    builtin:\n      - shell\n      - browser\n"

    (told,) = refused(text)

    assert told.startswith("e.yaml:21: spec.tools.builtin[1]: ")


def test_mistakes_of_all_documents_are_told() -> None:
    assert len(refused(TWO.replace("kind: Environment", "kind: Pod"))) == 2


def test_a_name_given_twice_in_a_mapping_is_a_mistake() -> None:
    assert refused(f"{TWO}    warm: 4\n") == ["e.yaml:18: spec.pool.warm: is given twice"]


def test_two_environments_of_one_name_are_a_mistake() -> None:
    assert refused(TWO.replace("name: two", "name: one")) == ["e.yaml:13: metadata.name: one stands on line 1 already"]


def test_what_is_not_yaml_is_told_with_its_line() -> None:
    (told,) = refused("kind: [")

    assert told.startswith("e.yaml:1: is not YAML: ")


@pytest.mark.parametrize("text", ["just text", "- a list", "3"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    assert refused(text) == ["e.yaml:1: is not an Environment"]


def test_a_text_without_documents_has_no_environments() -> None:
    assert load_environments("") == []


def test_code_in_yaml_is_never_run() -> None:
    (told,) = refused(TWO.replace("b:1", "!!python/object/apply:os.getcwd []"))

    assert "is not YAML" in told


def test_the_documented_example_is_one() -> None:
    example = REFERENCE.read_text().split("```yaml\n")[1].split("```")[0]

    (environment,) = load_environments(example)

    assert (environment.name, environment.spec.pool.warm) == ("swe-python", 50)
