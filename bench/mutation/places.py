"""Places in a syntax tree: where a node stands, and what stands below it."""

import ast
from typing import Any, Final, NamedTuple

_SKIPPED: Final = frozenset(
    ("annotation", "returns", "decorator_list", "args", "target", "targets")
)
"""Fields that hold types and names, not conditions. `args` of a call are not among them."""


class Place(NamedTuple):
    """A field of a node that holds a node, or a list of nodes and a position in it."""

    node: ast.AST
    field: str
    at: int | None = None

    def get(self) -> Any:
        held = getattr(self.node, self.field)
        return held if self.at is None else held[self.at]

    def put(self, new: list[Any]) -> None:
        """Put one node here, or none or several if the field is a list."""
        if self.at is None:
            setattr(self.node, self.field, new[0])
        else:
            held = getattr(self.node, self.field)
            setattr(self.node, self.field, [*held[: self.at], *new, *held[self.at + 1 :]])


def children(node: ast.AST) -> tuple[list[Place], list[Place]]:
    """Return the places of the statements below a node, and of its expressions."""
    blocks: list[Place] = []
    expressions: list[Place] = []
    for field, held in ast.iter_fields(node):
        if field in _SKIPPED and not isinstance(node, ast.Call):
            continue
        places = [Place(node, field)]
        if isinstance(held, list):
            places = [Place(node, field, at) for at in range(len(held))]
        for place in places:
            below = place.get()
            if isinstance(below, ast.stmt | ast.ExceptHandler):
                blocks.append(place)
            elif isinstance(below, ast.expr | ast.comprehension | ast.keyword):
                expressions.append(place)
    return blocks, expressions
