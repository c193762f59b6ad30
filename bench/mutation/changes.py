"""Changes of a source, one at a time: each makes one mutant.

A change replaces one node of the syntax tree, or removes it from a list. `operators` has the ways
to change a node.
"""

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mutation.operators import Draft, drafts_of_expression, drafts_of_statement
from mutation.places import Place, children
from mutation.sources import GUARDRAIL, Source


class Change(NamedTuple):
    """One change of a source."""

    source: Source
    line: int
    lines: range
    """The lines of the statement: an episode that executes none of them does not notice."""
    what: str
    place: Place
    new: tuple[ast.AST, ...]
    definition: str
    """The top-level name that the change belongs to."""
    word: str = ""
    """A word that the change drops from a list of words."""

    def changed(self) -> Source:
        """Return the source with this change."""
        with self._made():
            tree = ast.fix_missing_locations(self.source.tree)
            code = compile(tree, self.source.path, "exec")
        return self.source._replace(code=code)

    @contextmanager
    def _made(self) -> Iterator[None]:
        held = getattr(self.place.node, self.place.field)
        self.place.put(list(self.new))
        try:
            yield
        finally:
            setattr(self.place.node, self.place.field, held)


def list_changes(sources: tuple[Source, ...]) -> list[Change]:
    """Return all changes of the sources, in the order of the lines."""
    used = names_used(sources)
    return [
        change
        for source in sources
        for at, statement in enumerate(source.tree.body)
        for name in defined(statement)
        if name in used
        for change in _of_statement(source, name, Place(source.tree, "body", at), "")
    ]


def defined(statement: ast.stmt) -> list[str]:
    """Return the name that a top-level statement defines, if any."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.AnnAssign):
        return [ast.unparse(statement.target)]
    return []


def names_in(node: ast.AST) -> frozenset[str]:
    return frozenset(below.id for below in ast.walk(node) if isinstance(below, ast.Name))


def names_used(sources: tuple[Source, ...]) -> frozenset[str]:
    """Return the top-level names that the guardrail needs: other code is for other rungs."""
    mentions = {
        name: names_in(statement)
        for source in sources
        for statement in source.tree.body
        for name in defined(statement)
    }
    used: set[str] = set()
    fresh = {GUARDRAIL}
    while fresh:
        used |= fresh
        fresh = {name for one in fresh for name in mentions[one] if name in mentions} - used
    return frozenset(used)


def _of_statement(source: Source, name: str, place: Place, returns: str) -> Iterator[Change]:
    statement: ast.stmt = place.get()
    if isinstance(statement, ast.FunctionDef):
        returns = "" if statement.returns is None else ast.unparse(statement.returns)
    blocks, expressions = children(statement)
    lines = _own_lines(statement, expressions)

    def change(draft: Draft) -> Change:
        line = getattr(draft.place.get(), "lineno", statement.lineno)
        word = _dropped_word(statement, draft)
        return Change(source, line, lines, draft.what, draft.place, draft.new, name, word)

    yield from map(change, drafts_of_statement(place, returns))
    for expression in expressions:
        yield from map(change, _of_expression(expression))
    for block in blocks:
        yield from _of_statement(source, name, block, returns)


def _of_expression(place: Place) -> Iterator[Draft]:
    yield from drafts_of_expression(place)
    for inner in children(place.get())[1]:
        yield from _of_expression(inner)


def _own_lines(statement: ast.stmt, expressions: list[Place]) -> range:
    """Return the lines of a statement without the statements inside it."""
    if isinstance(statement, ast.FunctionDef):
        # A change of a function itself returns early: its first statement would come next.
        first = statement.body[min(1, len(statement.body) - 1)]
        return range(statement.lineno, first.lineno + 1)
    last = max(
        (place.get().end_lineno or 0 for place in expressions if hasattr(place.get(), "lineno")),
        default=statement.lineno,
    )
    return range(statement.lineno, last + 1)


def _dropped_word(statement: ast.stmt, draft: Draft) -> str:
    """Return the word that a change drops from a constant list; empty if it does something else."""
    match statement, draft.place.get():
        case (
            ast.AnnAssign(value=ast.Tuple() | ast.Call(func=ast.Name(id="frozenset"))),
            ast.Constant(value=str(word)),
        ) if not draft.new:
            return word
    return ""
