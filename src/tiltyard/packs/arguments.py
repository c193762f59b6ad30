"""Check the arguments of a call against the tool's declaration, as a server does.

The scripted agent makes correct calls only. An agent from outside may write anything.
"""

from collections.abc import Mapping
from typing import Any, Final

from tiltyard.foundation.printable import printable

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
}


def find_problem(schema: Mapping[str, Any], value: object, where: str = "arguments") -> str:
    """Return what a declared schema does not allow, in one sentence; empty if all is well.

    Knows the schemas that worlds declare: objects of plain values, with `required` and `enum`.
    """
    if schema.get("type") != "object":
        return _find_plain(schema, value, where)
    if not isinstance(value, Mapping):
        return f"{where} must be an object"
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if value.get(name) is None:
            return f"missing argument {name}"
    for name, inner in value.items():
        if name not in properties:
            return f"unknown argument {printable(name, limit=80)}; expected {_listed(properties)}"
        # Clients send null for an argument that they leave out.
        problem = "" if inner is None else find_problem(properties[name], inner, f"argument {name}")
        if problem:
            return problem
    return ""


def _find_plain(schema: Mapping[str, Any], value: object, where: str) -> str:
    wanted = str(schema.get("type", "string"))
    # A truth value is an integer in Python, but not in JSON.
    is_wrong_flag = isinstance(value, bool) and wanted != "boolean"
    if is_wrong_flag or not isinstance(value, _TYPES[wanted]):
        return f"{where} must be of type {wanted}"
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        return f"{where} must be one of {', '.join(map(str, allowed))}"
    return ""


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
