"""
Read environments from a text of YAML documents, and say where a mistake is.

Stricter than YAML itself: a name given twice is a mistake, because the second
one would silently win.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import yaml

from rollcage.core.environment import Environment, EnvironmentInvalid, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def load_environments(text: str, *, file: str = "") -> list[Environment]:
    """
    Return the environments of a text, in its order; empty documents are skipped.

    All mistakes of all documents are found before EnvironmentInvalid is
    raised, each with its line and, if given, the file's name.
    """
    environments: list[Environment] = []
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    try:
        documents = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if not _is_empty(node)]
    except yaml.YAMLError as error:
        raise EnvironmentInvalid((_not_yaml(error, file),)) from error
    for node in documents:
        try:
            environment = _read(node)
        except EnvironmentInvalid as refusal:
            problems += [
                Problem(one.field, one.message, _place(file, one.place or _line(node, one.field)))
                for one in refusal.problems
            ]
            continue
        if environment.name in lines:
            problem = f"{environment.name} stands on line {lines[environment.name]} already"
            problems.append(Problem("metadata.name", problem, _place(file, _line(node, "metadata.name"))))
        lines.setdefault(environment.name, node.start_mark.line + 1)
        environments.append(environment)
    if problems:
        raise EnvironmentInvalid(tuple(problems))
    return environments


def _read(node: yaml.Node) -> Environment:
    if not isinstance(node, yaml.MappingNode):
        raise EnvironmentInvalid((Problem("", "is not an Environment"),))
    twice = tuple(_given_twice(node, ""))
    if twice:
        raise EnvironmentInvalid(twice)
    loader = yaml.SafeLoader("")
    try:
        return Environment.from_resource(loader.construct_document(node))
    except yaml.YAMLError as error:
        raise EnvironmentInvalid((_not_yaml(error, ""),)) from error
    finally:
        loader.dispose()


def _is_empty(node: yaml.Node | None) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null")


def _given_twice(node: yaml.Node, path: str) -> Iterator[Problem]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _given_twice(item, f"{path}[{index}]")
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            field = f"{path}.{key.value}".lstrip(".")
            if str(key.value) in seen:
                yield Problem(field, "is given twice", str(key.start_mark.line + 1))
            seen.add(str(key.value))
            yield from _given_twice(value, field)


def _line(node: yaml.Node, field: str) -> str:
    """Return the line of a field, or of the nearest thing around it that was written."""
    line = node.start_mark.line
    for name, index in _STEP.findall(field):
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == name]
            if not found:
                break
            line, node = found[0][0].start_mark.line, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
            node = node.value[int(index)]
            line = node.start_mark.line
        else:
            break
    return str(line + 1)


def _place(file: str, line: str) -> str:
    return f"{file}:{line}" if file else f"line {line}"


def _not_yaml(error: yaml.YAMLError, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    message = str(getattr(error, "problem", None) or error)
    line = str(mark.line + 1) if mark else ""
    return Problem("", f"is not YAML: {message}", _place(file, line) if file and line else line)
