"""
A small parallel machine on which work is counted instead of timed.

A program is Python to look at, but it is interpreted here, node by node, and
knows nothing beyond these words: functions, numbers, if, for over range, and
the machine's own load, store, size and launch. So it cannot import, reach for
attributes, change the counters or read what it should compute. Buffers are
touched only inside a kernel that was launched; each touch is one unit of work,
and so is every operation on numbers.
"""

import ast
import operator
from typing import Any

MOST_STEPS = 400_000
MOST_THREADS = 4_096
DEEPEST = 20
OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


class Fault(Exception):
    """The program did something that the machine does not do."""


class _Return(Exception):
    def __init__(self, value: int) -> None:
        self.value = value


class Machine:
    """Buffers of whole numbers, by name, and the work done on them."""

    def __init__(self, source: str, buffers: dict[str, list[int]]) -> None:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise Fault("no program") from None
        self.functions: dict[str, ast.FunctionDef] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                raise Fault("only functions may stand at the top")
        self.buffers = buffers
        self.work = self.steps = self.launches = self.depth = 0
        self.in_kernel = False

    def run(self) -> int:
        """Run solve() and return the work that was done."""
        try:
            self.call("solve", [])
        except RecursionError:
            raise Fault("too deep") from None
        return self.work

    def call(self, name: str, values: list[Any]) -> int:
        """Call a function of the program."""
        function = self.functions.get(name)
        if function is None:
            raise Fault(f"there is no {name}")
        names = [one.arg for one in function.args.args]
        if len(names) != len(values):
            raise Fault(f"{name} takes {len(names)} arguments")
        self.depth += 1
        if self.depth > DEEPEST:
            raise Fault("too deep")
        try:
            self.block(function.body, dict(zip(names, values, strict=True)))
        except _Return as done:
            return int(done.value)
        finally:
            self.depth -= 1
        return 0

    def block(self, body: list[ast.stmt], names: dict[str, Any]) -> None:
        """Carry out statements, one after the other."""
        for node in body:
            self.step()
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    names[name] = self.value(value, names)
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    names[name] = self.operate(op, self.look_up(name, names), self.value(value, names))
                case ast.Expr(value=value):
                    self.value(value, names)
                case ast.Return(value=value):
                    raise _Return(self.value(value, names) if value else 0)
                case ast.If(test=test, body=then, orelse=other):
                    self.block(then if self.value(test, names) else other, names)
                case ast.For(
                    target=ast.Name(id=name),
                    iter=ast.Call(func=ast.Name(id="range"), args=args),
                    orelse=[],
                ):
                    for number in range(*[self.value(one, names) for one in args]):
                        self.step()
                        names[name] = number
                        self.block(node.body, names)
                case ast.Pass():
                    pass
                case _:
                    raise Fault(f"{type(node).__name__} is not known here")

    def value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        """Return what an expression comes to."""
        self.step()
        match node:
            case ast.Constant(value=int() | str()):
                return node.value
            case ast.Name(id=name):
                return self.look_up(name, names)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operate(op, self.value(left, names), self.value(right, names))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.operate(ast.Sub(), 0, self.value(operand, names))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.operate(op, self.value(left, names), self.value(right, names))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.called(name, [self.value(one, names) for one in args])
            case _:
                raise Fault(f"{type(node).__name__} is not known here")

    def called(self, name: str, values: list[Any]) -> int:
        """Call one of the machine's own words, or else a function of the program."""
        match name, values:
            case "size", [str(buffer)]:
                return len(self.buffer(buffer))
            case "load", [str(buffer), int(index)]:
                return self.buffer(buffer)[self.place(buffer, index)]
            case "store", ["out", int(index), int(value)]:
                self.buffer("out")[self.place("out", index)] = value
                return 0
            case "launch", [str(kernel), int(threads), *rest]:
                if self.in_kernel or not 0 <= threads <= MOST_THREADS:
                    raise Fault("a launch that cannot be")
                self.launches += 1
                self.in_kernel = True
                for thread in range(threads):
                    self.call(kernel, [thread, *rest])
                self.in_kernel = False
                return 0
            case _:
                return self.call(name, values)

    def buffer(self, name: str) -> list[int]:
        """Return a buffer."""
        if name not in self.buffers:
            raise Fault(f"there is no buffer {name}")
        return self.buffers[name]

    def place(self, name: str, index: int) -> int:
        """Count a touch of a buffer."""
        if not self.in_kernel:
            raise Fault("buffers are touched in kernels only")
        if not 0 <= index < len(self.buffers[name]):
            raise Fault(f"{name} has no place {index}")
        self.work += 1
        return index

    def operate(self, op: ast.AST, left: Any, right: Any) -> int:
        """Count an operation, and return its result."""
        known = OPERATORS.get(type(op))
        if known is None or not isinstance(left, int) or not isinstance(right, int):
            raise Fault("an operation that is not known here")
        if isinstance(op, (ast.FloorDiv, ast.Mod)) and right == 0:
            raise Fault("a division by zero")
        result = int(known(left, right))
        if abs(result) > 1 << 64:
            raise Fault("a number too large")
        self.work += self.in_kernel
        return result

    def look_up(self, name: str, names: dict[str, Any]) -> Any:
        """Return what a name stands for."""
        if name not in names:
            raise Fault(f"there is no {name}")
        return names[name]

    def step(self) -> None:
        """Bound how long a program runs, whatever it does."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Fault("too many steps")
