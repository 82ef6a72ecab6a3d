"""
Choose the environments of a laptop: those of files, those of an example, else the ones that the package brings.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rollcage
from rollcage.core.environment_file import load_environments
from rollcage.core.errors import RollcageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollcage.core.environment import Environment

EXAMPLES: Final = Path(rollcage.__file__).resolve().parents[2] / "examples"

# What an example directory is known by.
_RECIPE: Final = "environment.yaml"


class NoSuchExample(RollcageError):
    """There is no such example; nothing was started."""

    code = "no_such_example"


class NamedTwice(RollcageError):
    """Two environments have the same name; nothing was started."""

    code = "environment_named_twice"


class Unreadable(RollcageError):
    """A file of environments cannot be read, or has none; nothing was started."""

    code = "environments_unreadable"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Environments by name, and the directories in which their graders are found: those of the files."""

    environments: Mapping[str, Environment]
    graders: tuple[Path, ...] = ()


def chosen(given: Sequence[Path], example: str | None, *, examples: Path = EXAMPLES) -> Chosen:
    """Return what a laptop serves, or raise what is wrong with the choice."""
    recipes = list(given)
    if example is not None:
        recipes.append(_example(example, examples))
    texts = [(_text(path), str(path)) for path in recipes]
    if not texts:
        texts = [(files("rollcage.wiring").joinpath("laptop.yaml").read_text(), "laptop.yaml")]
    found: dict[str, Environment] = {}
    for text, name in texts:
        for environment in load_environments(text, file=name):
            if environment.name in found:
                raise NamedTwice(f"{name} has an environment {environment.name}, and so has a file before it")
            found[environment.name] = environment
    if not found:
        raise Unreadable(f"there is no environment in {', '.join(map(str, recipes))}")
    return Chosen(found, tuple(dict.fromkeys(path.resolve().parent for path in recipes)))


def _example(name: str, examples: Path) -> Path:
    there = sorted(recipe.parent.name for recipe in examples.glob(f"*/{_RECIPE}"))
    if name in there:
        return examples / name / _RECIPE
    if not there:
        raise NoSuchExample(f"there are no examples at {examples}: they are in the repository, not in the package")
    raise NoSuchExample(f"there is no example {name}; there are: {', '.join(there)}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is no text: {error}") from error
