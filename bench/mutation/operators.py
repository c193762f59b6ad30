"""The ways to change one node: what a mutant of the reference may lack."""

import ast
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mutation.places import Place

_OTHERS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
"""The opposite of a comparison; for an order, the one with the other bound."""
_CLEANING: Final = frozenset(("lower", "strip", "lstrip"))
"""Methods that bring a text into a common form."""
_NORMALIZING: Final = frozenset(("canonical", "plain"))
"""Functions of the reference that do the same."""
_SWAPPED: Final = {"any": "all", "all": "any"}
_RESULTS: Final[dict[str, tuple[Any, ...]]] = {
    "bool": (True, False),
    "str": ("",),
    "None": (None,),
    "tuple": ((),),
    "Iterator": (None,),
}
"""What a mutant returns early, by the annotation of the function."""
MAX_SHOWN_CHARS: Final = 48


class Draft(NamedTuple):
    """A change of one place. `what` describes it."""

    place: Place
    what: str
    new: tuple[ast.AST, ...]


def drafts_of_statement(place: Place, returns: str) -> Iterator[Draft]:
    """Yield the changes of a whole statement in a function with this return annotation."""
    statement = place.get()
    match statement:
        case ast.FunctionDef():
            yield from _early_returns(statement, returns)
        case ast.If():
            yield from _forced(Place(statement, "test"), "if", (True, False))
        case ast.While():
            yield from _forced(Place(statement, "test"), "while", (False,))
        case ast.For():
            what = f"skip the loop over {_text(statement.iter)}"
            yield Draft(Place(statement, "iter"), what, (ast.Tuple([], ast.Load()),))
        case ast.Return(value=ast.expr()):
            yield from _forced(Place(statement, "value"), "return", _RESULTS.get(returns, ()))
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Assign():
            yield from _dropped(place, statement)
        case ast.AnnAssign(value=ast.Constant(value=int(number))) if number > 1:
            for other in (number // 2, number * 2):
                what = f"{_text(statement.target)} = {other}, not {number}"
                yield Draft(Place(statement, "value"), what, (ast.Constant(other),))


def _dropped(place: Place, statement: ast.stmt) -> Iterator[Draft]:
    what = f"drop {_text(statement)}"
    match statement:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            # Without any `yield`, the function would be no generator.
            nothing = ast.YieldFrom(ast.Tuple([], ast.Load()))
            yield Draft(Place(statement, "value"), what, (nothing,))
        case ast.Assign(targets=[ast.Name() | ast.Tuple()]):
            return
        case _:
            yield Draft(place, what, (ast.Pass(),))


def _early_returns(function: ast.FunctionDef, returns: str) -> Iterator[Draft]:
    begin = 1 if ast.get_docstring(function) else 0
    place = Place(function, "body", begin)
    for value in _RESULTS.get(returns.partition("[")[0], ()):
        early = ast.Return(ast.Constant(value) if value != () else ast.Tuple([], ast.Load()))
        yield Draft(place, f"{function.name} returns {value!r}", (early, place.get()))


def _forced(place: Place, word: str, values: tuple[Any, ...]) -> Iterator[Draft]:
    held = place.get()
    for value in values:
        if not isinstance(held, ast.Constant):
            yield Draft(place, f"{word} {_text(held)} -> {value!r}", (ast.Constant(value),))


def drafts_of_expression(place: Place) -> Iterator[Draft]:
    """Yield the changes of one expression, without those of the expressions inside it."""
    node = place.get()
    match node:
        case ast.BoolOp():
            yield from _of_operands(place, node)
        case ast.IfExp():
            yield from _forced(Place(node, "test"), "if", (True, False))
        case ast.comprehension():
            yield from _of_filters(node)
        case ast.Compare():
            yield from _of_comparison(place, node)
        case ast.Tuple() | ast.Set() | ast.List() | ast.Dict():
            yield from _of_elements(place, node)
        case ast.UnaryOp(op=ast.Not()):
            yield Draft(place, f"{_text(node)} -> without not", (node.operand,))
        case ast.Call():
            yield from _of_call(place, node)


def _of_filters(node: ast.comprehension) -> Iterator[Draft]:
    for at, test in enumerate(node.ifs):
        place = Place(node, "ifs", at)
        yield Draft(place, f"drop if {_text(test)}", ())
        yield Draft(place, f"if {_text(test)} -> not", (_negated(test),))


def _of_elements(place: Place, node: ast.Tuple | ast.Set | ast.List | ast.Dict) -> Iterator[Draft]:
    """Drop one element of a list of words or names."""
    if isinstance(node, ast.Dict):
        for at, key in enumerate(node.keys):
            keys = [*node.keys[:at], *node.keys[at + 1 :]]
            rest = ast.Dict(keys, [*node.values[:at], *node.values[at + 1 :]])
            yield Draft(place, f"drop {_text(key or node)} from {_text(node)}", (rest,))
    elif not _is_compared(place):
        for at, element in enumerate(node.elts):
            if isinstance(element, ast.Constant | ast.Name | ast.Attribute):
                what = f"drop {_text(element)} from {_text(node)}"
                yield Draft(Place(node, "elts", at), what, ())


def _of_operands(place: Place, node: ast.BoolOp) -> Iterator[Draft]:
    joint = " and " if isinstance(node.op, ast.And) else " or "
    for at, value in enumerate(node.values):
        others = [*node.values[:at], *node.values[at + 1 :]]
        rest = others[0] if len(others) == 1 else ast.BoolOp(node.op, others)
        near = _text(others[max(0, at - 1)])
        yield Draft(place, f"drop {_text(value)} beside{joint}{near}", (rest,))
        yield Draft(
            Place(node, "values", at),
            f"{_text(value)} -> not, beside{joint}{near}",
            (_negated(value),),
        )


def _of_comparison(place: Place, node: ast.Compare) -> Iterator[Draft]:
    for at, operator in enumerate(node.ops):
        other = _OTHERS[type(operator)]()
        what = f"{_text(node)} -> {_text(ast.Compare(node.left, [other], node.comparators))}"
        yield Draft(Place(node, "ops", at), what, (other,))
    match node:
        case ast.Compare(left=ast.Tuple(elts=left), comparators=[ast.Tuple(elts=right)]):
            for at in range(len(left)):
                one = ast.Tuple([*left[:at], *left[at + 1 :]], ast.Load())
                two = ast.Tuple([*right[:at], *right[at + 1 :]], ast.Load())
                looser = ast.Compare(one, node.ops, [two])
                yield Draft(place, f"do not compare {_text(left[at])}", (looser,))


def _is_compared(place: Place) -> bool:
    """Tell whether a tuple is compared with another one: both must have the same length."""
    match place.node:
        case ast.Compare(left=ast.Tuple(), ops=[ast.Eq()]):
            return True
    return False


def _of_call(place: Place, node: ast.Call) -> Iterator[Draft]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED:
            swapped = ast.Name(_SWAPPED[name], ast.Load())
            yield Draft(Place(node, "func"), f"{_SWAPPED[name]}, not {_text(node)}", (swapped,))
        case ast.Call(func=ast.Name(id=name), args=[only]) if name in _NORMALIZING:
            yield Draft(place, f"drop {name}() of {_text(only)}", (only,))
        case ast.Call(func=ast.Attribute(value=text, attr=name), args=[]) if name in _CLEANING:
            yield Draft(place, f"drop .{name}() of {_text(text)}", (text,))
        case ast.Call(
            func=ast.Attribute(attr="compile"), args=[ast.Constant(value=str(pattern)), *_]
        ):
            yield from _of_pattern(Place(node, "args", 0), pattern)


def _of_pattern(place: Place, pattern: str) -> Iterator[Draft]:
    """Drop one alternative of a regular expression."""
    parts = pattern.split("|")
    for at, part in enumerate(parts if len(parts) > 1 else ()):
        shorter = "|".join((*parts[:at], *parts[at + 1 :]))
        try:
            re.compile(shorter)
        except re.error:
            continue
        yield Draft(place, f"drop {part!r} from the pattern", (ast.Constant(shorter),))


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _text(node: ast.AST) -> str:
    """Return the source of a node in one short line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 3]}..."
