"""Questions that a guardrail asks a language model, through `context.ask`.

A question is a text, and its answer is a JSON value that follows a schema. A schema has few words,
so that every endpoint understands it and the answer can be checked completely.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tiltyard.contracts.hostile_json import JsonError, copy_json, place

MAX_QUESTION_CHARS: Final = 50_000
MAX_SCHEMA_BYTES: Final = 20_000
MAX_SCHEMA_VALUES: Final = 1_000
MAX_QUESTIONS: Final = 3
"""How many questions one decision may ask."""
Ask = Callable[[str, dict[str, Any]], Any]
"""Asks a model. Raises an AskError if there is no valid answer."""

_WORDS: Final[dict[str, frozenset[str]]] = {
    "object": frozenset({"type", "description", "properties", "required", "additionalProperties"}),
    "array": frozenset({"type", "description", "items", "maxItems"}),
    "string": frozenset({"type", "description", "enum", "maxLength"}),
    "integer": frozenset({"type", "description", "minimum", "maximum"}),
    "number": frozenset({"type", "description", "minimum", "maximum"}),
    "boolean": frozenset({"type", "description"}),
    "null": frozenset({"type", "description"}),
}
"""The words that a schema of each type may have."""


class AskError(Exception):
    """A question has no answer that can be used. A guardrail that does not catch it denies."""


def no_model(question: str, schema: dict[str, Any]) -> Any:
    """Refuse a question: a match asks no model."""
    del question, schema
    raise AskError(
        "there is no model to ask: matches have none, and `tiltyard guard`, `tiltyard shadow` and "
        "the hooks have the one that you configure"
    )


class Questions:
    """The questions of one decision. After it, nothing can be asked."""

    def __init__(self, ask: Ask) -> None:
        self._ask: Ask | None = ask
        self.left = MAX_QUESTIONS

    def ask(self, question: str, schema: dict[str, Any]) -> Any:
        if self._ask is None:
            raise AskError("context.ask works only until `decide` returns")
        if not self.left:
            raise AskError(f"one decision may ask {MAX_QUESTIONS} questions")
        self.left -= 1
        return self._ask(*checked_question(question, schema))

    def close(self) -> None:
        self._ask = None


def checked_question(question: object, schema: object) -> tuple[str, dict[str, Any]]:
    """Return a question and a copy of its schema. Raise an AskError if they cannot be used."""
    if type(question) is not str or not question.strip():
        raise AskError("the question is no text")
    if len(question) > MAX_QUESTION_CHARS:
        raise AskError(
            f"the question has {len(question):,} characters; the limit is {MAX_QUESTION_CHARS:,}"
        )
    try:
        copied = copy_json(schema, max_nodes=MAX_SCHEMA_VALUES)
        _check_schema(copied, ())
    except JsonError as error:
        raise AskError(f"the schema{error}") from None
    if len(msgspec.json.encode(copied)) > MAX_SCHEMA_BYTES:
        raise AskError(f"the schema has more than {MAX_SCHEMA_BYTES:,} bytes")
    return question.encode("utf-8", "replace").decode(), copied


def _check_schema(schema: Any, at: tuple[str | int, ...]) -> None:
    kind = schema.get("type") if isinstance(schema, dict) else None
    known = _WORDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise JsonError(f"{place(at)} needs a type: {', '.join(_WORDS)}")
    unknown = sorted(schema.keys() - known)
    if unknown:
        raise JsonError(f"{place(at)} has {unknown[0][:40]!r}, which no {kind} may have here")
    if kind == "object":
        _check_object(schema, at)
    elif kind == "array":
        _check_schema(schema.get("items"), (*at, "items"))
    elif not _bounds_are_valid(schema):
        raise JsonError(f"{place(at)} has a bound or an enum that is not valid")
    if not _is_count(schema.get("maxItems", 0)):
        raise JsonError(f"{place(at)} has a maxItems that is no count")


def _check_object(schema: dict[str, Any], at: tuple[str | int, ...]) -> None:
    members = schema.get("properties")
    if not isinstance(members, dict):
        raise JsonError(f"{place(at)} has no properties")
    required = schema.get("required")
    complete = isinstance(required, list) and set(map(str, required)) == members.keys()
    if not complete or schema.get("additionalProperties") is not False:
        raise JsonError(
            f"{place(at)} must list all its properties under `required`, and have "
            "`additionalProperties` false"
        )
    for name, member in members.items():
        _check_schema(member, (*at, "properties", name))


def _bounds_are_valid(schema: dict[str, Any]) -> bool:
    choices = schema.get("enum", [""])
    numbers = (schema.get("minimum", 0), schema.get("maximum", 0))
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(isinstance(one, str) for one in choices)
        and _is_count(schema.get("maxLength", 0))
        and all(type(one) in (int, float) for one in numbers)
    )


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def checked_answer(answer: Any, schema: dict[str, Any]) -> Any:
    """Return a copy of an answer. Raise an AskError if it does not follow its checked schema."""
    try:
        copied = copy_json(answer)
        _check_answer(copied, schema, ())
    except JsonError as error:
        raise AskError(f"the model's answer{error}") from None
    return copied


def _check_answer(value: Any, schema: dict[str, Any], at: tuple[str | int, ...]) -> None:
    kind = schema["type"]
    if not _has_type(value, kind):
        raise JsonError(f"{place(at)} is not of the type {kind}")
    if isinstance(value, dict):
        if value.keys() != schema["properties"].keys():
            raise JsonError(f"{place(at)} has other properties than its schema")
        for name, member in value.items():
            _check_answer(member, schema["properties"][name], (*at, name))
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            raise JsonError(f"{place(at)} has more than {schema['maxItems']} items")
        for number, item in enumerate(value):
            _check_answer(item, schema["items"], (*at, number))
    else:
        _check_leaf(value, schema, at)


def _check_leaf(value: Any, schema: dict[str, Any], at: tuple[str | int, ...]) -> None:
    if isinstance(value, str):
        if value not in schema.get("enum", [value]):
            raise JsonError(f"{place(at)} is not among the values of its enum")
        if len(value) > schema.get("maxLength", len(value)):
            raise JsonError(f"{place(at)} has more than {schema['maxLength']} characters")
    elif value is not None and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        raise JsonError(f"{place(at)} is outside its bounds")


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _has_type(value: Any, kind: str) -> bool:
    return type(value) in _TYPES[kind]
