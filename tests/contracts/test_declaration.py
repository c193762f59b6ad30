"""Declarations are hostile: what is refused, with which words, and what is read."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.contracts.classic_tools import CLASSIC_TOOLS
from tiltyard.contracts.declaration import (
    MAX_DESCRIPTION_CHARS,
    Declaration,
    DeclarationError,
    Hints,
    check_declarations,
    read_declarations,
)
from tiltyard.world.tools import TOOLS

MAIL: Final[dict[str, Any]] = {
    "name": "send_email",
    "title": "Send a mail",
    "description": "Sends a mail.\nOne recipient.",
    "inputSchema": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "cc": {"$ref": "#/$defs/addresses"}},
        "required": ["to"],
        "$defs": {"addresses": {"type": "array", "items": {"type": "string"}}},
    },
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    "_meta": {"anything": [1, 2]},
}


def refusal(*tools: Any) -> str:
    with pytest.raises(DeclarationError) as raised:
        read_declarations(list(tools), "mail")
    message = str(raised.value)
    assert len(message) < 600
    assert message.isprintable()
    return message


def tool(name: str = "send_email", **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def test_reads_the_tools_of_an_mcp_server() -> None:
    (read,) = read_declarations([MAIL], "mail")
    assert read == Declaration(
        "send_email",
        "Send a mail",
        "Sends a mail.\nOne recipient.",
        MAIL["inputSchema"],
        {"type": "object"},
        Hints(read_only=False, destructive=True, open_world=True),
        "mail",
    )
    assert read.required == {"to"}
    assert read_declarations({"tools": [MAIL]}, "mail") == (read,)


def test_reads_tiltyards_field_names() -> None:
    own = {
        "name": "find",
        "input_schema": {"type": "object"},
        "output_schema": {"type": "array"},
        "hints": {"read_only": True},
        "server": "disk",
    }
    (read,) = read_declarations([own])
    assert read.output_schema == {"type": "array"}
    assert (read.server, read.hints.read_only) == ("disk", True)


def test_a_server_cannot_vouch_for_itself() -> None:
    claims = tool(
        annotations={"readOnlyHint": True, "trusted": True, "title": "Send"}, trusted=True
    )
    (read,) = read_declarations([claims], "mail")
    assert not read.hints.trusted
    assert read.title == "Send"
    (vouched,) = read_declarations([claims], "mail", trusted=True)
    assert vouched.hints.trusted


def test_a_declaration_of_the_server_does_not_replace_the_operators_name_for_it() -> None:
    (read,) = read_declarations([tool(server="bank")], "mail")
    assert read.server == "mail"


def test_the_ten_classic_tools_are_declared() -> None:
    check_declarations(CLASSIC_TOOLS)
    assert [one.name for one in CLASSIC_TOOLS] == list(TOOLS)
    declared = {one.name: one for one in CLASSIC_TOOLS}
    assert declared["email.list"].required == {"folder"}
    assert declared["email.list"].input_schema["properties"]["limit"] == {"type": "integer"}
    assert declared["fs.read"].hints.read_only is True
    assert declared["http.post"].hints.read_only is False


def test_a_huge_description_is_refused() -> None:
    message = refusal(tool(description="a" * 10_000_000))
    assert message == (
        "tool 'send_email': its description has 10,000,000 characters; the limit is 16,384: "
        "shorten it, or do not offer the tool"
    )
    read_declarations([tool(description="a" * MAX_DESCRIPTION_CHARS)])


def test_many_large_declarations_are_refused_together() -> None:
    many = [tool(f"tool_{number:03}x", description="é" * 16_000) for number in range(60)]
    message = refusal(*many)
    assert "more than 700,000 bytes together" in message
    assert "select fewer tools" in message


def test_too_many_tools_are_refused() -> None:
    assert "1,001 tools are declared" in refusal(*[tool()] * 1_001)


def recursive(reference: str) -> dict[str, Any]:
    node = {"type": "object", "properties": {"next": {"$ref": reference}}}
    return {"type": "object", "$defs": {"node": node}, "properties": {"first": node}}


@pytest.mark.parametrize("reference", ["#", "#/$defs/node", "#/$defs/node/properties"])
def test_a_recursive_schema_is_refused(reference: str) -> None:
    message = refusal(tool(inputSchema=recursive(reference)))
    assert message.startswith("tool 'send_email': its input schema at /")
    assert "refers to a part that contains it: write the levels out" in message


def test_an_object_that_contains_itself_is_refused() -> None:
    cyclic: dict[str, Any] = {"type": "object"}
    cyclic["properties"] = {"again": cyclic}
    assert "nested more than 32 levels deep" in refusal(tool(inputSchema=cyclic))


def test_a_deep_schema_is_refused() -> None:
    deep = json.loads('{"items":' * 500 + "{}" + "}" * 500)
    assert "its output schema is nested more than 32 levels deep: flatten it" in refusal(
        tool(outputSchema=deep)
    )


def test_a_schema_that_explodes_when_references_are_replaced_is_refused() -> None:
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for number in range(1, 25):
        reference = {"$ref": f"#/$defs/d{number - 1}"}
        definitions[f"d{number}"] = {"anyOf": [reference, reference]}
    message = refusal(tool(inputSchema={"$defs": definitions}))
    assert "once its references are replaced: make it smaller" in message


def test_a_long_chain_of_references_is_refused() -> None:
    chain: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_500)}
    message = refusal(tool(inputSchema={"$defs": {**chain, "d1500": {}}}))
    assert "leads from reference to reference for more than 100 steps" in message


@pytest.mark.parametrize("reference", ["https://example.com/schema", "other.json#/a", "#anchor"])
def test_a_reference_outside_the_schema_is_refused(reference: str) -> None:
    message = refusal(tool(inputSchema={"properties": {"a": {"$ref": reference}}}))
    assert "at /properties/a/$ref refers outside the schema" in message


def test_a_reference_to_nothing_is_refused() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/missing"}}}
    assert "refers to a part that the schema does not have" in refusal(tool(inputSchema=schema))


HIDDEN: Final = {
    "escape": "\x1b[2J",
    "null": "\x00",
    "right to left": "\u202etxt.exe",
    "isolate": "\u2066x\u2069",
    "mark": "\u200f",
    "zero width": "\u200b",
    "tag": "\U000e0041",
    "variation": "\U000e0101",
    "surrogate": "\ud800",
    "line separator": "\u2028",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("field", ["name", "title", "description", "schema", "key"])
def test_hidden_characters_are_refused_everywhere(text: str, field: str) -> None:
    bad = {
        "name": tool(f"send{text}mail"),
        "title": tool(title=f"a{text}"),
        "description": tool(description=f"a{text}"),
        "schema": tool(inputSchema={"description": f"a{text}"}),
        "key": tool(inputSchema={"properties": {f"a{text}": {}}}),
    }
    message = refusal(bad[field])
    assert "send" in message
    assert "remove it" in message or "not valid Unicode" in message


@pytest.mark.parametrize("text", ["\u200d", "\xad", "\ufe0f", "\u3164", "\n"])
def test_invisible_characters_are_refused_in_names_only(text: str) -> None:
    assert "tool 'send" in refusal(tool(f"send{text}mail"))
    read_declarations([tool(description=f"a family: 👩{text}👧")])


def test_a_name_occurs_once() -> None:
    assert refusal(tool(), tool()) == (
        "tool 'send_email' is declared twice: rename one of them, for example with its server as a "
        "prefix"
    )
    with pytest.raises(DeclarationError, match="by the servers 'a' and 'b'"):
        check_declarations([Declaration("send", server="a"), Declaration("send", server="b")])


IMITATIONS: Final = [
    ("send_email", "Send_Email"),
    ("send_email", "send-email"),
    ("send_email", "sendEmail"),
    ("send_email", "send.email"),
    ("send_email", "send email"),
    ("send_email", "s3nd_email"),
    ("send_email", "send_ema1l"),
    ("send_email", "5end_emaiI"),
    ("list_files", "1ist_files"),
    ("list_files", "Iist_files"),
    ("modem_on", "modern_on"),
    ("copy", "сору"),  # noqa: RUF001 - Cyrillic
    ("HOT", "ΗΟΤ"),  # noqa: RUF001 - Greek
    ("send_email", "send_emaíl"),
    ("send_email", "ｓend_email"),  # noqa: RUF001 - full width
    ("send_email", "𝐬end_email"),  # noqa: RUF001 - mathematical
]


@pytest.mark.parametrize(("real", "fake"), IMITATIONS)
def test_a_name_that_imitates_another_is_refused(real: str, fake: str) -> None:
    for first, second in ((real, fake), (fake, real)):
        message = refusal(tool(first), tool(second))
        assert message == (
            f"tool '{second}' looks like '{first}': a model or a user can take one for the other; "
            "rename one of them"
        )


def test_a_name_that_mixes_alphabets_is_refused() -> None:
    message = refusal(tool("sеnd_email"))  # noqa: RUF001 - the first e is Cyrillic
    assert "mixes Latin and Cyrillic letters" in message


def test_different_names_are_accepted() -> None:
    names = ["read", "reads", "read_2", "read_1", "read_6", "read_9", "чтение", "読む", "a.b/c-d:e"]
    assert [one.name for one in read_declarations([tool(name) for name in names])] == names


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (None, "the declarations are null; expected a list of tools"),
        ("x", "the declarations are a string; expected a list"),
        ({"tools": 1}, "the declarations are an object; expected a list"),
        ([1], "tool 0 is int; expected an object with a `name`"),
        ([{}], "tool 0 has no `name`"),
        ([{"name": 7}], "tool 0 has no `name`"),
        ([{"name": ""}], "tool 0 has the name ''"),
        ([{"name": " a"}], "tool 0 has the name ' a'"),
        ([{"name": "a" * 129}], "its name has 129 characters; the limit is 128"),
        ([{"name": "a", "description": 1}], "tool 'a': its description is int; expected a string"),
        ([{"name": "a", "inputSchema": []}], "tool 'a': its input schema is a list"),
        ([{"name": "a", "annotations": []}], "tool 'a': its annotations are a list"),
        (
            [{"name": "a", "annotations": {"readOnlyHint": "yes"}}],
            "tool 'a': readOnlyHint is a string; expected true or false",
        ),
        (
            [{"name": "a", "inputSchema": {}, "input_schema": {}}],
            "tool 'a' has inputSchema and input_schema; keep one of them",
        ),
        ([{"name": "a", "inputSchema": {"x": float("nan")}}], "at /x is nan, which is no JSON"),
        ([{"name": "a", "inputSchema": {"x": 2**70}}], "at /x is an integer of more than 64 bits"),
        ([{"name": "a", "inputSchema": {"x": "a" * 70_000}}], "the limit is 65,536"),
        ([{"name": "a", "inputSchema": {"x": [0] * 6_000}}], "has more than 5,000 values"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_place(raw: object, complaint: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        read_declarations(raw)
    assert complaint in str(raised.value)


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
KEYS: Final = st.sampled_from(
    (
        *("name", "title", "description", "inputSchema", "input_schema", "outputSchema"),
        *("annotations", "hints", "server", "$ref", "required", "properties", "x"),
    )
)
SCHEMAS: Final = st.recursive(
    st.sampled_from(["#", "#/", "#/properties/a", "#/$defs/a/0", "#/%", "a", "\ud800", 1, None]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$ref", "$defs", "a", "properties", "anyOf", "required"]), inner
        )
    ),
    max_leaves=15,
)
TOOLISH: Final = st.dictionaries(KEYS, JSON | SCHEMAS, max_size=7) | st.fixed_dictionaries(
    {"name": st.text(max_size=10), "inputSchema": SCHEMAS}
)


@given(JSON | st.lists(TOOLISH | JSON, max_size=5) | st.fixed_dictionaries({"tools": JSON}))
def test_arbitrary_json_raises_nothing_but_declaration_errors(raw: object) -> None:
    read: tuple[Declaration, ...] = ()
    message = ""
    try:
        read = read_declarations(raw)
    except DeclarationError as error:
        message = str(error)
    assert message.isprintable()
    check_declarations(read)
    assert all(isinstance(one.required, frozenset) for one in read)
