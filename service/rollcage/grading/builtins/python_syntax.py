"""
What a Python file contains, by its syntax tree. The file is hostile and is only parsed, never run.

A file that does not parse, or that is built to break a parser, is the model's
own doing: it is complained about, and never a refusal.
"""

import ast
import warnings
from collections.abc import Iterator
from typing import Any, Final

from rollcage.core.guards import PythonGuard

# Longer, or nested deeper, than anything a person would review; parsers have broken on less.
_LONGEST: Final = 256 << 10
_DEEPEST: Final = 60


def parsed(source: Any) -> ast.Module | None:
    """Return the syntax tree, or None."""
    if not isinstance(source, str) or len(source) > _LONGEST or _nesting(source) > _DEEPEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def complaints(source: Any, guard: PythonGuard) -> list[str]:
    """Return what is wrong with a file."""
    tree = parsed(source)
    if tree is None:
        return ["the file is missing, or no Python"]
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    said = [f"{name} is not defined" for name in guard.defines if name not in functions]
    used = {_dotted(one.func) for body in _reached(guard.defines, functions) for one in _calls(body)}
    said += [f"{name} is not used" for name in guard.uses if not _mentions(used, name)]
    if guard.imports is not None:
        allowed = set(guard.imports)
        said += [f"{name} is imported" for name in sorted(_imports(tree)) if name.partition(".")[0] not in allowed]
    mentioned = {_dotted(node) for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))}
    said += [f"{name} is used" for name in guard.forbids if _mentions(mentioned | _imports(tree), name)]
    if guard.no_identity:
        said += [
            f"{name} does nothing" for name in guard.defines if name in functions and _is_identity(functions[name])
        ]
    return said


def same_program(reference: str, work: str) -> bool:
    """Tell whether two texts are the same program, whatever their layout, comments and names of variables."""
    one, other = parsed(reference), parsed(work)
    if one is None or other is None:
        return reference.split() == work.split()
    return _canonical(one) == _canonical(other)


def _canonical(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.body, node.returns = _without_docstring(node.body), None
            case ast.ClassDef() | ast.Module():
                node.body = _without_docstring(node.body)
            case ast.arg():
                node.annotation = None
    _rename(tree)
    try:
        return ast.dump(tree)
    except RecursionError:
        return ""


def _rename(tree: ast.Module) -> None:
    """Give variables names by the order in which they appear, function by function."""
    shared = _numbered(tree.body, "g", {})
    for statement in tree.body:
        own = {**shared, **_numbered([statement], "v", shared)} if isinstance(statement, ast.FunctionDef) else shared
        for node in ast.walk(statement):
            if isinstance(node, ast.arg):
                node.arg = own.get(node.arg, node.arg)
            elif isinstance(node, ast.Name):
                node.id = own.get(node.id, node.id)


def _numbered(statements: list[ast.stmt], letter: str, known: dict[str, str]) -> dict[str, str]:
    """Return numbers for all that is assigned or taken as an argument; at the top functions are not looked into."""
    names: dict[str, str] = {}
    for statement in statements:
        if letter == "g" and isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.arg):
                names.setdefault(node.arg, f"{letter}{len(names)}")
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in known:
                names.setdefault(node.id, f"{letter}{len(names)}")
    return names


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        return body[1:] or [ast.Pass()]
    return body


def _reached(names: tuple[str, ...], functions: dict[str, ast.FunctionDef]) -> Iterator[ast.FunctionDef]:
    """Yield the functions that are reached from some, over whatever names they mention."""
    waiting, seen = [name for name in names if name in functions], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield functions[name]
        mentioned = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
        waiting += [one for one in mentioned if one in functions]


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def _mentions(found: set[str], name: str) -> bool:
    return any(one == name or one.startswith(f"{name}.") or one.endswith(f".{name}") for one in found)


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module or '.'}.{alias.name}".lstrip(".") for alias in node.names} | {node.module or "."}
    return found


def _is_identity(function: ast.FunctionDef) -> bool:
    """Tell whether a function does nothing, or only hands an argument through."""
    body = [one for one in _without_docstring(function.body) if not isinstance(one, ast.Pass)]
    if not body:
        return True
    arguments = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    only = body[0]
    if len(body) > 1 or not isinstance(only, ast.Return):
        return False
    return only.value is None or (isinstance(only.value, ast.Name) and only.value.id in arguments)


def _nesting(source: str) -> int:
    deepest = depth = 0
    for character in source:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth = max(0, depth - 1)
    return deepest
