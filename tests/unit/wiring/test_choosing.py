from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.wiring.choosing import EXAMPLES, NamedTwice, NoSuchExample, Unreadable, chosen

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """
apiVersion: rollcage.dev/v1alpha1
kind: Environment
metadata: {name: NAME}
spec: {image: none}
"""


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    for name in ("sums", "bugs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "environment.yaml").write_text(RECIPE.replace("NAME", name))
    return tmp_path


def test_without_a_choice_the_package_brings_environments() -> None:
    choice = chosen([], None)

    assert choice.environments
    assert all(one.spec.pool.warm for one in choice.environments.values())
    assert choice.graders == ()


def test_an_example_is_found_by_its_name_and_graders_beside_it(examples: Path) -> None:
    choice = chosen([], "sums", examples=examples)

    assert list(choice.environments) == ["sums"]
    assert choice.graders == (examples / "sums",)


@pytest.mark.parametrize("name", sorted(recipe.parent.name for recipe in EXAMPLES.glob("*/environment.yaml")))
def test_every_example_of_the_repository_can_be_chosen(name: str) -> None:
    assert chosen([], name).environments


def test_a_file_and_an_example_are_served_together(examples: Path) -> None:
    choice = chosen([examples / "bugs" / "environment.yaml"], "sums", examples=examples)

    assert list(choice.environments) == ["bugs", "sums"]


def test_an_example_that_there_is_not_is_answered_with_those_that_there_are(examples: Path) -> None:
    with pytest.raises(NoSuchExample, match="there are: bugs, sums"):
        chosen([], "poems", examples=examples)


def test_a_path_is_no_example(examples: Path) -> None:
    with pytest.raises(NoSuchExample):
        chosen([], "../sums", examples=examples / "bugs")


def test_an_installation_without_examples_says_where_they_are(tmp_path: Path) -> None:
    with pytest.raises(NoSuchExample, match="in the repository"):
        chosen([], "sums", examples=tmp_path)


def test_two_environments_of_one_name_are_refused(examples: Path) -> None:
    with pytest.raises(NamedTwice, match="environment sums"):
        chosen([examples / "sums" / "environment.yaml"], "sums", examples=examples)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="nowhere"):
        chosen([tmp_path / "nowhere"], None)


def test_a_file_without_environments_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")

    with pytest.raises(Unreadable, match=r"no environment in .*empty\.yaml"):
        chosen([tmp_path / "empty.yaml"], None)
