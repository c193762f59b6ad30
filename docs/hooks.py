"""Generated parts of the site: the reference of commands and of schemas, and the shared colours.

MkDocs calls the `on_*` functions when it builds the site. The references come from the command line
and the schemas themselves, so they are never out of date. Links that lead out of `docs/` do not
work on the site; only their text stays.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.models import ArgumentInfo, OptionInfo

from tiltyard.cli.app import app
from tiltyard.reporting import susceptibility_schema
from tiltyard.reporting.markdown import table
from tiltyard.reporting.schema import json_schema

COMMANDS: Final = "<!-- every command -->"
_UNSET: Final = (None, ..., "")
FIELDS: Final = "<!-- every field -->"
PROBE_FIELDS: Final = "<!-- every field of a probe -->"
_OUTWARD: Final = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)]*)\)")


def on_files(site_files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the palette of the reports, so that the site has the same colours and fonts."""
    palette = files("tiltyard.reporting") / "assets" / "palette.css"
    content = palette.read_text(encoding="utf-8")
    site_files.append(File.generated(config, "assets/palette.css", content=content))
    return site_files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the generated references, and remove links that do not work on the site."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, "\n".join(describe_commands()))
    if FIELDS in markdown:
        markdown = markdown.replace(FIELDS, "\n".join(describe_fields("Report", json_schema())))
    if PROBE_FIELDS in markdown:
        fields = describe_fields("Susceptibility", susceptibility_schema.json_schema())
        markdown = markdown.replace(PROBE_FIELDS, "\n".join(fields))
    if "/" not in page.file.src_uri:
        markdown = _OUTWARD.sub(r"\1", markdown)
    return markdown


def describe_commands() -> Iterator[str]:
    """Yield a section for each command: its help, its arguments and its options."""
    for name, function in sorted(_walk(app, "tiltyard")):
        parameters = [*_parameters(function)]
        usage = [each.usage for each in parameters if each.usage] + ["[OPTIONS]"]
        yield f"### {name}\n"
        yield f"```text\n{name} {' '.join(usage)}\n```\n"
        yield _help(inspect.getdoc(function) or "")
        if parameters:
            rows = ([f"`{each.name}`", each.kind, each.help] for each in parameters)
            yield table(["", "", ""], rows)
        yield ""


def _walk(commands: typer.Typer, prefix: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in commands.registered_commands:
        if command.callback is not None and not command.hidden:
            name = command.name or command.callback.__name__.replace("_", "-")
            yield f"{prefix} {name}", command.callback
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            yield from _walk(group.typer_instance, f"{prefix} {group.name}")


def _help(text: str) -> str:
    """Return a docstring as Markdown, with each example in a code block."""
    lines = []
    for line in text.splitlines():
        _, example, command = line.strip().partition("Example: ")
        lines.append(f"```text\n{command}\n```" if example else line.strip())
    return "\n".join(lines) + "\n"


class Parameter(NamedTuple):
    name: str
    kind: str
    help: str
    usage: str = ""
    """How the usage line shows an argument; `[OPTIONS]` stands for all options."""


def _parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else [str]
        info = next(note for note in notes if isinstance(note, ArgumentInfo | OptionInfo))
        help_text = f"{_cell(info.help or '')}{_default(parameter.default)}"
        if isinstance(info, ArgumentInfo):
            many = "..." if get_origin(kind) is list else ""
            needed = parameter.default is inspect.Parameter.empty
            word = f"{(info.metavar or name).upper()}{many}"
            yield Parameter(word, _kind(kind), help_text, word if needed else f"[{word}]")
        else:
            # In an annotation, Typer keeps the first spelling in `default` until it is used.
            spelled = [
                one for one in (info.default, *(info.param_decls or ())) if one not in _UNSET
            ]
            spelled = spelled or [f"--{name.replace('_', '-')}"]
            yield Parameter(", ".join(spelled), _choices(info) or _kind(kind), help_text)


def _choices(info: OptionInfo) -> str:
    """Return the words that an option accepts, if its metavar lists them."""
    words = (info.metavar or "").split("|")
    return " or ".join(f"`{word}`" for word in words) if len(words) > 1 else ""


def _kind(annotation: Any) -> str:
    inner = [one for one in get_args(annotation) if one is not NoneType]
    if inner:
        return _kind(inner[0])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{one.value}`" for one in annotation)
    return {bool: "", int: "a number", float: "a number", Path: "a path"}.get(annotation, "a text")


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty or value in (None, "", False, 0, (), Path()):
        return ""
    return f" Default: `{value.value if isinstance(value, Enum) else value}`."


def describe_fields(whole: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yield a table for each type of a schema, beginning with the type `whole`."""
    defined = schema["$defs"]
    names = [whole, *(name for name in defined if name != whole)]
    for name in names:
        part = defined[name]
        yield f"### {name}\n\n{part.get('description', '')}\n"
        if "enum" in part:
            yield f"{_type(part)}\n"
            continue
        rows = (
            [f"`{field}`", _type(schema), _cell(schema.get("description", ""))]
            for field, schema in part["properties"].items()
        )
        yield table(["field", "type", "meaning"], rows)
        yield ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if schema.get("type") == "object":
        return f"object of {_type(schema['additionalProperties'])}"
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    return str(schema["type"])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
