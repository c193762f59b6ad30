"""Read the notations in which servers print records: JSON, Python, YAML and tables."""

import ast
import re
from typing import Any, Final

import msgspec

from tiltyard.guardrails.declared.yaml_subset import read_yaml

_MAX_CHARS: Final = 200_000
"""A longer text than this is read as JSON or not at all."""
_MAX_DEPTH: Final = 40
_PYTHON: Final = re.compile(r"[\[({]|[A-Za-z_][\w.]*\(")
_YAML: Final = re.compile(r"(?:---\n)?(?:- |-\n|[A-Za-z_'\"][\w .'\"$/-]*:(?:\s|$))")
_RULE: Final = re.compile(r"[\s|:+=-]+")
_MIN_ROWS: Final = 2


def data_in(text: str) -> Any:
    """Return the data that a text is, or None if it is prose."""
    found = json_in(text)
    if found is not None:
        return found
    if len(text) > _MAX_CHARS:
        return None
    if _PYTHON.match(text):
        return _python(text)
    if _YAML.match(text):
        found = read_yaml(text)
        if found is not None:
            return found
    return _table(text)


def json_in(text: str) -> Any:
    """Return the mapping or the list that a text is in JSON, or None."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _python(text: str) -> Any:
    """Read what `print` shows of lists, mappings and objects in Python."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        found = _value(tree.body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict | list) else None


def _value(node: ast.expr, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError(depth)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | int | float | bool | None) else str(node)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {
            str(_value(key, depth + 1)): _value(one, depth + 1)
            for key, one in pairs
            if key is not None
        }
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(one, depth + 1) for one in node.elts]
    if isinstance(node, ast.Call):
        named = {one.arg: _value(one.value, depth + 1) for one in node.keywords if one.arg}
        return named or " ".join(str(_value(one, depth + 1)) for one in node.args)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, depth + 1)
        return -inner if isinstance(inner, int | float) else str(inner)
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node)
    raise ValueError(type(node).__name__)


def _table(text: str) -> Any:
    """Read rows with bars or tabs between their cells, under a row of names."""
    lines = [line.strip() for line in text.strip().split("\n")]
    for mark in ("|", "\t"):
        if len(lines) >= _MIN_ROWS and all(mark in line for line in lines):
            rows = [
                [cell.strip() for cell in line.strip(mark).split(mark)]
                for line in lines
                if not _RULE.fullmatch(line)
            ]
            names = rows[0]
            if len(rows) >= _MIN_ROWS and all(len(row) == len(names) for row in rows):
                return [dict(zip(names, row, strict=True)) for row in rows[1:]]
    return None
