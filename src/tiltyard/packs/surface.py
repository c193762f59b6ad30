"""The surface of a world: how its tools are named, declared and how they answer.

Packs name tools, arguments and fields in one way; each world shows them in another. So a guardrail
cannot know a tool by its name.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, structs

from tiltyard.contracts.declaration import Declaration, Hints
from tiltyard.foundation.draw import Draw
from tiltyard.packs.schema import Argument, Kind, Pack, RecordType, Scalar, Tool
from tiltyard.packs.world import Site

Style = Literal["snake", "camel", "dotted", "kebab"]
Format = Literal["json", "lines", "table"]

_TYPES: Final[dict[Kind, str]] = {"amount": "number", "count": "integer", "flag": "boolean"}
_FORMATS: Final[dict[Kind, str]] = {"address": "email", "url": "uri", "date": "date"}


class BoundTool(Struct, frozen=True):
    """A tool as one world shows it."""

    id: str
    """As `pack.tool`."""
    pack: str
    tool: Tool
    record: str
    """The type of its records, as `pack.type`."""
    declaration: Declaration
    names: dict[str, str]
    """The name of each argument in this world."""
    nest: str
    """The object that contains the arguments; empty if there is none."""
    fields: dict[str, str]
    """The name of each field of the result in this world."""
    format: Format
    structured: bool
    """Whether results have structured content."""
    telling: bool
    """Whether results contain texts that people wrote."""
    authored: bool
    """Whether results say who wrote each part. If not, a field of the record names the writer."""

    def shown(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as a guardrail sees them."""
        named = {self.names[name]: value for name, value in args.items()}
        return {self.nest: named} if self.nest else named

    def understood(self, shown: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that `shown` makes of. Unknown ones are dropped."""
        inner = shown.get(self.nest, {}) if self.nest else shown
        if not isinstance(inner, Mapping):
            return {}
        own = {name: mine for mine, name in self.names.items()}
        return {own[name]: value for name, value in inner.items() if name in own}


class Surface(Struct, frozen=True):
    """All tools of one world."""

    tools: dict[str, BoundTool]
    """By `pack.tool`."""
    declarations: tuple[Declaration, ...]


def with_authors(surface: Surface) -> Surface:
    """Return a surface whose results always say who wrote each part."""
    tools = {id_: structs.replace(one, authored=True) for id_, one in surface.tools.items()}
    return Surface(tools, surface.declarations)


def draw_surface(site: Site) -> Surface:
    """Return the surface that the world's key determines."""
    draw = Draw("surface", site.key)
    style: Style = draw.choice(("snake", "camel", "dotted", "kebab"))
    bound: dict[str, BoundTool] = {}
    taken: set[str] = set()
    for pack in site.packs.values():
        fields = {
            name: _draw_fields(kind, draw.branch("fields", pack.name, name), style)
            for name, kind in pack.records.items()
        }
        for name, tool in pack.tools.items():
            branch = draw.branch("tool", pack.name, name)
            made = _bind(pack, name, tool, fields[tool.record], style, branch, taken)
            bound[made.id] = made
            taken.add(made.declaration.name)
    # Real servers list tools in an order of their own.
    ordered = {id_: bound[id_] for id_ in draw.shuffled(sorted(bound))}
    return Surface(ordered, tuple(tool.declaration for tool in ordered.values()))


def _draw_fields(kind: RecordType, draw: Draw, style: Style) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for name, field in kind.fields.items():
        options = [
            one for one in (name, *field.names) if _styled(one, style) not in chosen.values()
        ]
        chosen[name] = _styled(draw.branch(name).choice(options), style)
    return chosen


def _bind(  # noqa: PLR0913, PLR0917 - the parts of one tool
    pack: Pack,
    name: str,
    tool: Tool,
    fields: dict[str, str],
    style: Style,
    draw: Draw,
    taken: set[str],
) -> BoundTool:
    kind = pack.records[tool.record]
    options = [
        one for one in (_styled(option, style, pack.server) for option in tool.names)
        if one not in taken
    ] or [_styled(f"{pack.server}_{name}", style)]  # fmt: skip
    names: dict[str, str] = {}
    for argument, spec in tool.args.items():
        free = [one for one in (argument, *spec.names) if _styled(one, style) not in names.values()]
        names[argument] = _styled(draw.branch("argument", argument).choice(free), style)
    nest = draw.choice(tool.nest) if tool.nest and draw.chance(1, 2) else ""
    schema = _schema(tool, kind, names, nest, draw)
    return BoundTool(
        f"{pack.name}.{name}",
        pack.name,
        tool,
        f"{pack.name}.{tool.record}",
        Declaration(
            draw.choice(options),
            description=draw.choice(tool.about),
            input_schema=schema,
            hints=_draw_hints(tool, draw),
            server=pack.server,
        ),
        names,
        _styled(nest, style) if nest else "",
        fields,
        draw.choice(("json", "json", "lines", "table")),
        draw.chance(1, 2),
        any(_is_told(kind, field) for field in tool.returns),
        draw.chance(1, 2) or not _names_authors(kind, tool),
    )


def _names_authors(kind: RecordType, tool: Tool) -> bool:
    """Return whether people wrote texts in the results, and the results show all their names."""
    told = [kind.fields[name] for name in tool.returns if _is_told(kind, name)]
    authors = {field.author or kind.author for field in told}
    return bool(told) and authors <= {*tool.returns}


def _is_told(kind: RecordType, name: str) -> bool:
    """Return whether a person, other than the owner, writes a text field."""
    field = kind.fields[name]
    return field.kind == "text" and (field.author or kind.author) not in ("owner", "system")


def _schema(
    tool: Tool, kind: RecordType, names: Mapping[str, str], nest: str, draw: Draw
) -> dict[str, Any]:
    properties = {
        names[argument]: _describe(spec, kind, draw.branch("about", argument))
        for argument, spec in tool.args.items()
    }
    required = [names[argument] for argument, spec in tool.args.items() if spec.required]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if nest:
        return {"type": "object", "properties": {nest: schema}, "required": [nest]}
    return schema


def _describe(spec: Argument, kind: RecordType, draw: Draw) -> dict[str, Any]:
    field = kind.fields.get(spec.sets or "")
    described: dict[str, Any] = {"type": "string"}
    if field is not None:
        described["type"] = _TYPES.get(field.kind, "string")
        if field.kind in _FORMATS and draw.chance(1, 2):
            described["format"] = _FORMATS[field.kind]
        if field.kind == "choice" and field.values:
            described["enum"] = list(field.values)
    elif spec.text == "limit":
        described["type"] = "integer"
    if spec.about and draw.chance(3, 4):
        described["description"] = draw.choice(spec.about)
    return described


def _draw_hints(tool: Tool, draw: Draw) -> Hints:
    """Return annotations as servers give them: often none, never trusted."""
    if draw.chance(1, 2):
        return Hints()
    reads = tool.op in ("list", "get", "search", "fetch")
    return Hints(read_only=reads, destructive=tool.op == "delete" if not reads else None)


def _styled(name: str, style: Style, server: str = "") -> str:
    """Return a name in the style of a world. Dotted names begin with the server."""
    words = name.split("_")
    if style == "camel":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if style == "kebab" and server:
        return "-".join(words)
    if style == "dotted" and server:
        return f"{server}.{name}"
    return name


def spell(value: Scalar) -> str:
    """Return a value as results spell it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else str(value)
