"""The OpenAPI description of the API, made from its routes and types."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tiltyard import __version__
from tiltyard.service.web.guards import Route
from tiltyard.service.wire import Problem

_KINDS: Final = {
    "slug": {"type": "string", "pattern": "^[-a-zA-Z0-9_]+$"},
    "uuid": {"type": "string", "format": "uuid"},
    "int": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
}
_REFERENCE: Final = "#/components/schemas/{name}"
_UPLOAD: Final = {
    "required": True,
    "description": "A .zip or a .py file.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


_QUERIES: Final[dict[str, dict[str, Any]]] = {
    "api-report": {"full": {"type": "string"}},
    "api-board": {
        "phase": {"type": "string", "enum": ["board", "final"]},
        "track": {"type": "string", "enum": ["offense", "defense"]},
    },
}


def describe(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the description of all routes that have a type."""
    listed = [one for one in routes if one.returns is not dict]
    types = [Problem, *(one.returns for one in listed)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    found: dict[str, dict[str, Any]] = {}
    for route, schema in zip(listed, schemas[1:], strict=True):
        address = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route.path)
        for method in route.methods:
            found.setdefault(address, {})[method.lower()] = _operation(route, schema)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tiltyard", "version": __version__},
        "paths": found,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, schema: dict[str, Any]) -> dict[str, Any]:
    problem = _content({"$ref": _REFERENCE.format(name="Problem")})
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _KINDS[kind]}
        for kind, name in re.findall(r"<(\w+):(\w+)>", route.path)
    ]
    made: dict[str, Any] = {
        "operationId": route.name,
        "responses": {
            "200": {"description": "Done.", **_content(schema)},
            "4XX": {"description": "Refused, with the reason.", **problem},
        },
    }
    if route.name == "api-submit":
        made["requestBody"] = _UPLOAD
        made["responses"]["201"] = {"description": "Accepted.", **_content(schema)}
        parameters.append({"name": "name", "in": "query", "schema": {"type": "string"}})
    for name, schema_of_it in _QUERIES.get(route.name, {}).items():
        parameters.append({"name": name, "in": "query", "schema": schema_of_it})
    if route.access != "anyone":
        made["security"] = [{"token": []}]
    return made | ({"parameters": parameters} if parameters else {})


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
