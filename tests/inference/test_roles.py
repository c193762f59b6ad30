"""Roles of arguments: from names, schemas, descriptions and the effect of the tool."""

from typing import Any

import pytest

from tiltyard.contracts.declaration import Declaration
from tiltyard.inference import Inferred, Role, infer

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def inferred(tool: str, /, **args: Any) -> Inferred:
    return infer(Declaration(tool, input_schema={"type": "object", "properties": args}))


def described(text: str) -> dict[str, str]:
    return {"type": "string", "description": text}


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("send_message", "to text", "DESTINATION CONTENT"),
        ("sendMail", "recipientEmail subject body", "DESTINATION CONTENT CONTENT"),
        ("send_mail", "to cc bcc html", "DESTINATION DESTINATION DESTINATION CONTENT"),
        ("save_draft", "to subject", "DESTINATION CONTENT"),
        ("chat.post", "channel_id text", "DESTINATION CONTENT"),
        ("chat.history", "channel_id", "IDENTIFIER"),
        ("send_dm", "user text", "DESTINATION CONTENT"),
        ("kick_user", "user", "IDENTIFIER"),
        ("grant_access", "user", "DESTINATION"),
        ("get_user", "email", "IDENTIFIER"),
        ("transfer_money", "from_account to_account", "IDENTIFIER DESTINATION"),
        ("transfer_money", "fromAccountId toAccountId", "IDENTIFIER DESTINATION"),
        ("transfer_money", "account_number", "DESTINATION"),
        ("checkout", "shipping_address coupon", "DESTINATION OPTION"),
        ("read_page", "url", "DESTINATION"),
        ("move_file", "source destination", "PATH PATH"),
        ("get_route", "origin destination", "QUERY QUERY"),
        ("create_link", "from_node_id to_node_id", "IDENTIFIER IDENTIFIER"),
        ("share_file", "file_id share_with", "IDENTIFIER DESTINATION"),
        ("run_script", "script cwd", "COMMAND PATH"),
        ("set_password", "password", "CREDENTIAL"),
        ("list_items", "max_tokens page_token api_key", "OPTION OPTION CREDENTIAL"),
        ("list_items", "start_date sort_by limit", "OPTION OPTION OPTION"),
        ("rename_album", "album new_name", "IDENTIFIER CONTENT"),
        ("frob", "x", "UNKNOWN"),
    ],
)
def test_names_of_text_arguments(tool: str, args: str, expected: str) -> None:
    found = inferred(tool, **dict.fromkeys(args.split(), TEXT))
    assert [*found.roles.values()] == [Role(role) for role in expected.split()]


def test_schemas_say_more_than_names() -> None:
    found = inferred(
        "update_thing",
        recipient={"type": "boolean"},
        path={"enum": ["a", "b"]},
        number={"type": "integer"},
        count={"type": "integer"},
        moment={"type": "string", "format": "date-time"},
        place={"type": "string", "format": "uri"},
        amount={"anyOf": [{"type": "number"}, {"type": "null"}]},
    )
    assert [*found.roles.values()] == [
        Role.OPTION,
        Role.OPTION,
        Role.IDENTIFIER,
        Role.OPTION,
        Role.OPTION,
        Role.DESTINATION,
        Role.AMOUNT,
    ]


def test_descriptions_help() -> None:
    found = inferred(
        "send_thing",
        a=described("The recipient of the letter"),
        b=described("Email address of the buyer"),
        c=described("URL to call"),
        d=described("The file path"),
        e=described("ID of the thing"),
    )
    assert [*found.roles.values()] == [
        Role.DESTINATION,
        Role.DESTINATION,
        Role.DESTINATION,
        Role.PATH,
        Role.IDENTIFIER,
    ]


def test_a_description_of_a_date_hides_no_path_and_no_destination() -> None:
    found = inferred(
        "send_thing",
        filename=described("File to save it to, by default page-{timestamp}"),
        recipient=described("Who gets it, with an ISO country code"),
        opening=described("In the form YYYY-MM-DD"),
    )
    assert [*found.roles.values()] == [Role.PATH, Role.DESTINATION, Role.OPTION]


def test_nested_arguments_have_pointers() -> None:
    found = inferred(
        "send_letter",
        payee={"type": "object", "properties": {"name": TEXT, "iban": TEXT}},
        copies={"type": "array", "items": {"type": "object", "properties": {"email": TEXT}}},
        files={"type": "array", "items": TEXT},
        headers={"type": "object"},
    )
    assert found.roles == {
        "/payee/name": Role.DESTINATION,
        "/payee/iban": Role.DESTINATION,
        "/copies/*/email": Role.DESTINATION,
        "/files": Role.PATH,
        "/headers": Role.CONTENT,
    }
    assert found.arguments(Role.PATH, Role.CONTENT) == ("/files", "/headers")


def test_the_role_of_a_value_in_a_call() -> None:
    found = inferred(
        "send_letter",
        copies={"type": "array", "items": {"type": "object", "properties": {"email": TEXT}}},
        files={"type": "array", "items": TEXT},
        headers={"type": "object"},
    )
    assert found.role_of("/copies/17/email") is Role.DESTINATION
    assert found.role_of("/files/0") is Role.PATH
    assert found.role_of("/headers/Cookie/0") is Role.CONTENT
    assert found.role_of("/copies/0/phone") is Role.UNKNOWN
    assert found.role_of("/other") is Role.UNKNOWN
    assert found.role_of("") is Role.UNKNOWN


def test_references_and_alternatives_are_followed() -> None:
    schema = {
        "$defs": {"person": {"type": "object", "properties": {"email": TEXT}}},
        "properties": {
            "guest": {"$ref": "#/$defs/person"},
            "other": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
            "names/~": TEXT,
        },
    }
    found = infer(Declaration("invite", input_schema=schema))
    assert [*found.roles] == ["/guest/email", "/other/email", "/names~1~0"]


def test_a_schema_that_contains_itself_ends() -> None:
    schema: dict[str, Any] = {"properties": {}}
    schema["properties"] = {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "text": TEXT}
    found = infer(Declaration("send", input_schema=schema))
    assert 0 < len(found.roles) <= 500
