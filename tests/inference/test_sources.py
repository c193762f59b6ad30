"""Sources: nothing is trusted without evidence."""

from typing import Any

import pytest

from tiltyard.contracts.declaration import Declaration, Hints
from tiltyard.inference import Source, infer


def source(name: str, description: str = "", *args: str, **fields: Any) -> Source:
    schema = {"type": "object", "properties": {arg: {"type": "string"} for arg in args}}
    return infer(Declaration(name, "", description, schema, **fields)).source


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("get_time", "", Source.SYSTEM),
        ("get_balance", "account_id", Source.SYSTEM),
        ("get_version", "", Source.SYSTEM),
        ("get_version", "doc_id", Source.UNKNOWN),
        ("get_time_entries", "", Source.STRANGERS),
        ("my_profile", "", Source.OWNER),
        ("get_user", "", Source.OWNER),
        ("get_user", "user_id", Source.UNKNOWN),
        ("get_users", "", Source.STRANGERS),
        ("list_users", "", Source.STRANGERS),
        ("get_user_messages", "", Source.STRANGERS),
        ("read_inbox", "", Source.STRANGERS),
        ("product_reviews", "sku", Source.STRANGERS),
        ("get_thing", "path", Source.STRANGERS),
        ("get_thing", "url", Source.STRANGERS),
        ("get_thing", "", Source.UNKNOWN),
        ("run_shell", "command", Source.STRANGERS),
        ("frob", "", Source.UNKNOWN),
    ],
)
def test_names(name: str, args: str, expected: Source) -> None:
    assert source(name, "", *args.split()) is expected


def test_a_description_takes_trust_away() -> None:
    assert source("get_time", "Returns the current time.") is Source.SYSTEM
    assert source("get_time", "Returns the time from a web page.") is Source.STRANGERS
    assert source("get_time", hints=Hints(open_world=True)) is Source.STRANGERS


def outputs(**types: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": one} for name, one in types.items()}}


def test_numbers_carry_no_instructions() -> None:
    numbers = outputs(temperature="number", raining="boolean")
    assert source("get_page_facts", output_schema=numbers) is Source.SYSTEM
    text = outputs(temperature="number", remark="string")
    assert source("get_page_facts", output_schema=text) is Source.STRANGERS


def test_a_confirmation_is_the_systems() -> None:
    done = outputs(success="boolean", message="string")
    assert source("delete_thing", output_schema=done) is Source.SYSTEM
    # Frameworks wrap any text as `result`.
    assert source("delete_thing", output_schema=outputs(result="string")) is Source.UNKNOWN
    assert source("delete_thing", output_schema=outputs(message="string")) is Source.UNKNOWN
    assert source("delete_thing") is Source.UNKNOWN
    assert source("run_thing", "", "command", output_schema=done) is Source.STRANGERS
