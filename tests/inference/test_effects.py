"""Effects: from names, descriptions, arguments and hints."""

from typing import Any

import pytest

from tiltyard.contracts.declaration import Declaration, Hints
from tiltyard.inference import Effect, infer
from tiltyard.inference.vocabulary import NOUNS_AT_THE_START, VERBS


def effect(name: str, description: str = "", hints: Hints | None = None, **args: Any) -> Effect:
    schema = {"type": "object", "properties": args}
    return infer(Declaration(name, "", description, schema, None, hints or Hints())).effect


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("list_invoices", Effect.READ),
        ("invoices.list", Effect.READ),
        ("getInvoice", Effect.READ),
        ("InvoiceLookup", Effect.READ),
        ("order_history", Effect.READ),
        ("message_list", Effect.READ),
        ("email_search", Effect.READ),
        ("channel-members", Effect.READ),
        ("rename_album", Effect.WRITE),
        ("update_user_info", Effect.WRITE),
        ("set_status", Effect.WRITE),
        ("change_order_details", Effect.WRITE),
        ("post_status", Effect.SEND),
        ("email_user_details", Effect.SEND),
        ("email_summary", Effect.SEND),
        ("call_log", Effect.READ),
        ("meal_log", Effect.UNKNOWN),
        ("transfer_files", Effect.UNKNOWN),
        ("ring_people", Effect.SEND),
        ("restart_scan", Effect.EXECUTE),
        ("run_query", Effect.EXECUTE),
        ("acme_post_search", Effect.SEND),
        ("mark_message_read", Effect.WRITE),
        ("search_replace", Effect.WRITE),
        ("getOrCreateCustomer", Effect.WRITE),
        ("wishlist.clear", Effect.DELETE),
        ("stop_payment", Effect.WRITE),
        ("compose-and-send", Effect.SEND),
        ("schedule_email", Effect.SEND),
        ("acme_post_message", Effect.SEND),
        ("send_money", Effect.PAY),
        ("bank_transfer", Effect.PAY),
        ("lookup_and_charge", Effect.PAY),
        ("place_order", Effect.PAY),
        ("pay", Effect.PAY),
        ("kubectl_exec", Effect.EXECUTE),
        ("run_tests", Effect.EXECUTE),
        ("run_search", Effect.READ),
        ("change_password", Effect.ACCESS),
        ("create_api_key", Effect.ACCESS),
        ("list_api_keys", Effect.READ),
        ("log_in", Effect.ACCESS),
        ("open_document", Effect.READ),
        ("open_garage", Effect.UNKNOWN),
        ("frobnicate", Effect.UNKNOWN),
        ("report_user", Effect.UNKNOWN),
        ("x", Effect.UNKNOWN),
    ],
)
def test_a_name_says_what_a_tool_does(name: str, expected: Effect) -> None:
    assert effect(name) is expected


NOUNS = (
    *("history", "info", "details", "status", "list", "results", "users", "messages", "balance"),
    *("schedule", "report", "file", "album"),
)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if VERBS[verb] is not Effect.READ])
def test_no_noun_hides_a_verb_that_acts(verb: str) -> None:
    names = [f"{verb}_user_{noun}" for noun in NOUNS]
    if verb not in NOUNS_AT_THE_START:
        names += [f"{verb}_{noun}" for noun in NOUNS]
        names += [f"acme_{verb}_{noun}" for noun in NOUNS]
    harmless = {"run_user_report", "run_report", "acme_run_report"}
    assert not [name for name in names if effect(name) is Effect.READ and name not in harmless]


@pytest.mark.parametrize(
    ("name", "description", "expected"),
    [
        ("branch", "Lists the branches.", Effect.READ),
        ("frob", "Deletes every record.", Effect.DELETE),
        ("frob", "Shows the record and deletes it.", Effect.DELETE),
        ("get_report", "Gets the report and posts it to the given address.", Effect.SEND),
        ("get_report", "Gets the report. It also charges the stored card.", Effect.PAY),
        ("get_report", "Gets the report. Charges are listed by day.", Effect.READ),
        ("file_version_history", "Lists the versions of a file.", Effect.READ),
        ("checkout", "", Effect.PAY),
        ("checkout", "Switches branches.", Effect.WRITE),
        ("checkout", "Orders and pays what is in the cart.", Effect.PAY),
        ("helper", "Deletes nothing, sends nothing.", Effect.UNKNOWN),
        ("note", "Keeps a draft, which is not sent.", Effect.WRITE),
        ("show", "Shows comments, orders and transfers.", Effect.READ),
    ],
)
def test_a_description_adds_to_the_name(name: str, description: str, expected: Effect) -> None:
    assert effect(name, description) is expected


def test_a_read_that_can_store_its_result_writes() -> None:
    path = {"type": "string", "description": "File name to save the picture to."}
    assert effect("get_picture", "Returns the picture.", filename=path) is Effect.WRITE
    load = {"type": "string", "description": "The file to read."}
    assert effect("get_picture", "Returns the picture.", filename=load) is Effect.READ


def test_a_tool_can_do_the_worst_of_its_actions() -> None:
    action = {"type": "string", "enum": ["list", "add", "delete"]}
    assert effect("tabs", "List tabs.", action=action) is Effect.DELETE
    method = {"type": "string", "enum": ["GET", "POST"]}
    assert effect("fetch", "Fetches a page.", url=TEXT, method=method) is Effect.SEND


def test_a_fetch_with_a_body_sends() -> None:
    assert effect("fetch", "Fetches a page.", url=TEXT) is Effect.READ
    assert effect("fetch", "Fetches a page.", url=TEXT, body=TEXT) is Effect.SEND


def test_a_read_needs_no_payload() -> None:
    assert effect("get_thing", payload=TEXT) is Effect.UNKNOWN


def test_a_command_is_executed_whatever_the_name_says() -> None:
    assert effect("get_rows", sql=TEXT) is Effect.EXECUTE


def test_an_amount_for_a_destination_is_a_payment() -> None:
    amount = {"type": "number"}
    assert effect("create_thing", recipient=TEXT, amount=amount) is Effect.PAY
    assert effect("get_thing", account=TEXT, amount=amount) is Effect.READ


def test_guests_of_an_entry_receive_it() -> None:
    guests = {"type": "array", "items": TEXT}
    assert effect("create_event", title=TEXT) is Effect.WRITE
    assert effect("create_event", title=TEXT, participants=guests) is Effect.SEND
    assert effect("frob", participants=guests, text=TEXT) is Effect.SEND


def test_only_a_vouched_hint_makes_a_tool_harmless() -> None:
    assert effect("frob", hints=Hints(read_only=True)) is Effect.UNKNOWN
    assert effect("frob", hints=Hints(read_only=True, trusted=True)) is Effect.READ
    assert effect("delete_all", hints=Hints(read_only=True, trusted=True)) is Effect.DELETE


def test_any_hint_can_make_a_tool_worse() -> None:
    assert effect("get_thing") is Effect.READ
    assert effect("get_thing", hints=Hints(destructive=True)) is Effect.WRITE
    assert effect("get_thing", hints=Hints(read_only=False)) is Effect.WRITE


def test_what_can_be_undone() -> None:
    assert infer(Declaration("list_files")).reversible is True
    assert infer(Declaration("rename_file")).reversible is True
    assert infer(Declaration("rename_file", hints=Hints(destructive=True))).reversible is False
    assert infer(Declaration("delete_file")).reversible is False
    assert infer(Declaration("delete_file", "", "Moves a file to the bin.")).reversible is None
    assert infer(Declaration("send_mail")).reversible is False
    assert infer(Declaration("frob")).reversible is None


def test_what_stays_on_the_machine() -> None:
    closed = Hints(open_world=False)
    vouched = Hints(open_world=False, trusted=True)
    assert infer(Declaration("list_files", hints=closed)).local is None
    assert infer(Declaration("list_files", hints=vouched)).local is True
    assert infer(Declaration("send_mail", hints=vouched)).local is False
    assert infer(Declaration("list_files", hints=Hints(open_world=True))).local is False
    page = {"properties": {"url": TEXT}}
    assert infer(Declaration("read_page", input_schema=page, hints=vouched)).local is False


def test_the_evidence_is_named() -> None:
    found = infer(Declaration("get_report", "", "Gets the report and posts it to the address."))
    assert found.because == ("its name says 'get'; its description says 'posts': SEND")
