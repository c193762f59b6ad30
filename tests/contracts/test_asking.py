"""Questions to a model: what may be asked, and which answers are valid."""

from typing import Any

import pytest

from tiltyard import AskError, Decision, LocalConversation, SandboxEnv
from tiltyard.contracts.asking import (
    MAX_QUESTION_CHARS,
    MAX_QUESTIONS,
    checked_answer,
    checked_question,
)
from tiltyard.contracts.decision import Action, Fault
from tiltyard.contracts.guardrail import Context


def an_object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], "needs a type"),
        ({}, "needs a type"),
        ({"type": ["string", "null"]}, "needs a type"),
        ({"type": "string", "pattern": "a+"}, "has 'pattern', which no string may have"),
        ({"type": "string", "enum": []}, "enum that is not valid"),
        ({"type": "string", "enum": [1]}, "enum that is not valid"),
        ({"type": "integer", "minimum": "0"}, "a bound"),
        ({"type": "array"}, "/items needs a type"),
        ({"type": "array", "items": TEXT, "maxItems": -1}, "maxItems"),
        ({"type": "object", "properties": {}}, "`required`"),
        (an_object(a=TEXT) | {"required": []}, "`required`"),
        (an_object(a=TEXT) | {"additionalProperties": True}, "`additionalProperties` false"),
        (an_object(a={"type": "object"}), "at /properties/a has no properties"),
        ({"type": "string", "description": object()}, "no JSON value"),
        ({"type": "string", "description": "x" * 30_000}, "more than 20,000 bytes"),
    ],
)
def test_a_schema_that_cannot_be_checked_completely_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(AskError, match=why):
        checked_question("Well?", schema)


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema = an_object(a=TEXT)
    schema["properties"]["a"] = schema
    with pytest.raises(AskError, match="nested"):
        checked_question("Well?", schema)


@pytest.mark.parametrize("question", ["", "  ", None, b"Well?", "x" * (MAX_QUESTION_CHARS + 1)])
def test_a_question_is_a_text_of_bounded_length(question: Any) -> None:
    with pytest.raises(AskError, match="the question"):
        checked_question(question, TEXT)


SCHEMA = an_object(
    verdict={"type": "string", "enum": ["yes", "no"]},
    names={"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
    share={"type": "number", "minimum": 0, "maximum": 1},
    count={"type": "integer"},
    sure={"type": "boolean"},
    rest={"type": "null"},
)
GOOD = {"verdict": "yes", "names": ["Ann"], "share": 0.5, "count": 3, "sure": True, "rest": None}


def test_an_answer_that_follows_its_schema_is_returned() -> None:
    assert checked_answer(GOOD, SCHEMA) == GOOD
    assert checked_answer(GOOD | {"share": 1}, SCHEMA)["share"] == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("yes", "is not of the type object"),
        ({"verdict": "yes"}, "has other properties"),
        (GOOD | {"more": 1}, "has other properties"),
        (GOOD | {"verdict": "maybe"}, "at /verdict is not among"),
        (GOOD | {"verdict": None}, "at /verdict is not of the type string"),
        (GOOD | {"names": ["Ann", "Bob", "Eve"]}, "at /names has more than 2 items"),
        (GOOD | {"names": ["Augustine"]}, "at /names/0 has more than 5 characters"),
        (GOOD | {"share": 1.5}, "at /share is outside its bounds"),
        (GOOD | {"share": float("nan")}, "no JSON number"),
        (GOOD | {"count": True}, "at /count is not of the type integer"),
        (GOOD | {"count": 3.0}, "at /count is not of the type integer"),
        (GOOD | {"sure": 1}, "at /sure is not of the type boolean"),
        (GOOD | {"rest": ""}, "at /rest is not of the type null"),
    ],
)
def test_any_other_answer_is_an_error(answer: Any, why: str) -> None:
    with pytest.raises(AskError, match=why):
        checked_answer(answer, SCHEMA)


class Asking:
    """Asks as often as the argument `times` says, and catches errors if `catch` is set."""

    contract = 2

    def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
        self.context = context
        answers = []
        for _ in range(tool_args.get("times", 1)):
            try:
                answers.append(context.ask(f"May {tool_name} run?", TEXT))
            except AskError as error:
                if not tool_args.get("catch"):
                    raise
                answers.append(f"({error})")
        return Decision.deny(" ".join(answers))


def test_a_decision_may_ask_a_few_questions() -> None:
    asked = []

    def ask(question: str, schema: dict[str, Any]) -> str:
        asked.append((question, schema))
        return "yes"

    talk = LocalConversation(Asking(), ask=ask)
    few = talk.decide("pay", {"times": MAX_QUESTIONS})
    assert few.reason == " ".join(["yes"] * MAX_QUESTIONS)
    assert asked == [("May pay run?", TEXT)] * MAX_QUESTIONS
    many = talk.decide("pay", {"times": MAX_QUESTIONS + 1})
    assert many.fault is Fault.RAISED
    assert "AskError: one decision may ask 3 questions" in many.reason


def test_nothing_is_asked_after_the_decision() -> None:
    guardrail = Asking()
    talk = LocalConversation(guardrail, ask=lambda *_: "yes")
    talk.decide("pay", {})
    with pytest.raises(AskError, match="until `decide` returns"):
        guardrail.context.ask("And now?", TEXT)


def test_without_a_model_the_call_is_denied_or_the_error_caught() -> None:
    talk = LocalConversation(Asking())
    denied = talk.decide("pay", {})
    assert (denied.action, denied.fault) == (Action.DENY, Fault.RAISED)
    assert "AskError: there is no model to ask: matches have none" in denied.reason
    assert talk.decide("pay", {"catch": True}).reason.startswith("(there is no model to ask")


def test_a_ranked_match_asks_no_model() -> None:
    """On the machine of `design`, an uncaught question denies the call."""

    class Curious:
        def decide(self, tool_name: str, tool_args: dict[str, Any], context: Context) -> Decision:
            context.ask(f"May {tool_name} run with {tool_args}?", TEXT)
            return Decision.allow()

    env = SandboxEnv(guardrail=Curious())
    env.interact("read email")
    (event,) = env.trace.public_events()
    assert (event.ok, event.error) == (False, "guardrail_error")
    assert event.reason.startswith("AskError: there is no model to ask: matches have none")
