"""Reduced arguments and results: parts may be missing or redacted, and nothing else may change."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tiltyard import Declaration, Passage, Result
from tiltyard.episode.redaction import NotARedactionError
from tiltyard.episode.reduction import flat_args, is_less, reduce_args, reduce_result

MAILS: Final = Result(
    ok=True,
    output="From ann: lunch? From eve: send me the keys.",
    error=None,
    source="mail",
    structured={
        "mails": [
            {"id": 1, "from": "ann", "body": "lunch?"},
            {"id": 2, "from": "eve", "body": "send me the keys"},
            {"id": 3, "from": "bob", "body": "ok"},
        ],
        "total": 3,
        "more": False,
    },
    passages=(
        Passage("/mails/0/body", "ann", "person"),
        Passage("/mails/1/body", "eve", "person"),
        Passage("/mails/2/body", "bob", "person", known=False),
        Passage("/total", "", "system"),
        Passage("", "", "unknown"),
    ),
)


def changed(**fields: Any) -> Result:
    return structs.replace(MAILS, **fields)


@pytest.mark.parametrize(
    "output",
    [
        MAILS.output,
        "",
        "From ann: lunch?",
        "From ann: lunch? [REDACTED]",
        "From ann: lunch? From eve: ***.",
        "From ann: lunch? From eve: ████ me the ****.",
        "[redacted]",
        "lunch the keys",
    ],
)
def test_output_may_lose_text(output: str) -> None:
    assert reduce_result(MAILS, changed(output=output)).output == output


@pytest.mark.parametrize(
    "output",
    [
        MAILS.output + " ",
        MAILS.output + " Ignore eve.",
        "From eve: lunch? From ann: send me the keys.",
        "From ann: LUNCH? From eve: send me the keys.",
        "[REDACTED] by the filter",
        "**",
    ],
)
def test_output_may_not_gain_text(output: str) -> None:
    with pytest.raises(NotARedactionError, match=r"output: only removal, \[REDACTED\]"):
        reduce_result(MAILS, changed(output=output))


def mails(*kept: Any, **fields: Any) -> dict[str, Any]:
    return {"mails": list(kept), "total": 3, "more": False, **fields}


ANN, EVE, BOB = MAILS.structured["mails"]


@pytest.mark.parametrize(
    "structured",
    [
        MAILS.structured,
        None,
        {},
        {"total": 3},
        mails(ANN, BOB),
        mails(),
        mails(ANN, {"id": 2, "from": "eve"}, BOB),
        mails(ANN, {**EVE, "body": "[REDACTED]"}, BOB),
        mails(ANN, {**EVE, "body": "send the ***"}, BOB),
        mails(ANN, {**EVE, "id": "[REDACTED]"}, BOB),
        mails(ANN, "[REDACTED]", BOB),
        mails(ANN, BOB, total="***", more="█"),
        "[REDACTED]",
    ],
)
def test_structured_content_may_lose_leaves(structured: Any) -> None:
    assert reduce_result(MAILS, changed(structured=structured)).structured == structured


@pytest.mark.parametrize(
    "structured",
    [
        {**MAILS.structured, "total": 2},
        {**MAILS.structured, "total": "3"},
        {**MAILS.structured, "total": 3.0},
        {**MAILS.structured, "total": None},
        {**MAILS.structured, "more": 0},
        {**MAILS.structured, "safe": True},
        mails(EVE, ANN),
        mails(ANN, ANN),
        mails(ANN, EVE, BOB, BOB),
        mails(ANN, {**EVE, "from": "ann"}),
        mails(ANN, {**EVE, "body": "keep the keys"}),
        [ANN],
        "a summary",
        0,
    ],
)
def test_structured_content_may_not_change(structured: Any) -> None:
    with pytest.raises(NotARedactionError, match="structured: changed"):
        reduce_result(MAILS, changed(structured=structured))


@pytest.mark.parametrize(
    ("field", "value"),
    [("ok", False), ("error", "not_found"), ("source", "user"), ("passages", ())],
)
def test_no_other_field_may_change(field: str, value: Any) -> None:
    with pytest.raises(NotARedactionError, match=f"{field}: changed"):
        reduce_result(MAILS, changed(**{field: value}))


def test_a_result_without_structured_content_cannot_gain_any() -> None:
    plain = Result(ok=True, output="a", error=None, source="mail")
    with pytest.raises(NotARedactionError, match="structured: changed"):
        reduce_result(plain, structs.replace(plain, structured={}))


@pytest.mark.parametrize("returned", ["text", True, {"output": ""}, 0, [], Result])
def test_only_a_result_can_be_a_reduced_result(returned: object) -> None:
    with pytest.raises(NotARedactionError, match=r"observe returned .*, not a Result or None"):
        reduce_result(MAILS, returned)


def test_passages_follow_their_parts() -> None:
    """Authors stay with their text when items before them are removed."""
    reduced = reduce_result(MAILS, changed(structured=mails(ANN, BOB)))
    assert reduced.passages == (
        Passage("/mails/0/body", "ann", "person"),
        Passage("/mails/1/body", "bob", "person", known=False),
        Passage("/total", "", "system"),
        Passage("", "", "unknown"),
    )
    nothing = reduce_result(MAILS, changed(structured=None))
    assert nothing.passages == (Passage("", "", "unknown"),)


def test_a_redaction_cannot_make_a_result_too_large() -> None:
    with pytest.raises(NotARedactionError, match="the limit is 500,000"):
        reduce_result(MAILS, changed(output="[REDACTED]" * 60_000))


def test_the_check_of_a_long_list_is_bounded() -> None:
    """A guardrail must not be able to keep the judge busy."""
    long = changed(structured=["ab"] * 90_000, passages=())
    with pytest.raises(NotARedactionError, match="take too long to check"):
        reduce_result(long, structs.replace(long, structured=["a" * 100_000]))


TEXTS: Final = st.text("ab* ", max_size=12)


@given(TEXTS, st.data())
def test_removing_and_marking_always_counts_as_less(text: str, data: st.DataObject) -> None:
    kept = [char for char in text if data.draw(st.booleans())]
    for _ in range(data.draw(st.integers(0, 3))):
        kept.insert(data.draw(st.integers(0, len(kept))), "[REDACTED]")
    assert is_less(text, "".join(kept))


@given(TEXTS, TEXTS)
def test_less_text_is_a_subsequence_without_its_marks(text: str, new: str) -> None:
    """Compare with an independent definition: a subsequence, after all marks are taken out."""
    rest = iter(text)
    expected = all(char in rest for char in "".join(_without_stars(new)))
    assert is_less(text, new) == (expected or new in text)


def _without_stars(text: str) -> list[str]:
    parts: list[str] = []
    stars = ""
    for char in text + "\0":
        if char == "*":
            stars += char
            continue
        parts += ["" if len(stars) >= 3 else stars, char]
        stars = ""
    return parts[:-1]


SEND: Final = Declaration(
    "send", input_schema={"type": "object", "required": ["to", "body"], "properties": {}}
)
ARGS: Final[dict[str, Any]] = {
    "to": ["ann@a.example", "eve@e.example"],
    "body": {"text": "the code is 1234", "html": False},
    "priority": 2,
    "weight": 0.5,
}


@pytest.mark.parametrize(
    "new",
    [
        ARGS,
        {**ARGS, "to": ["ann@a.example"]},
        {**ARGS, "to": []},
        {**ARGS, "body": {"text": "the code is [REDACTED]", "html": False}},
        {**ARGS, "body": {"text": "the code is ", "html": False}},
        {**ARGS, "body": {}},
        {"to": ARGS["to"], "body": ARGS["body"]},
    ],
)
def test_arguments_may_lose_text_items_and_optional_arguments(new: dict[str, Any]) -> None:
    assert reduce_args(ARGS, new, SEND, flat=False) == new


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        ({"to": []}, "body: missing"),
        ({**ARGS, "bcc": []}, "bcc: not asked for"),
        ({**ARGS, "priority": 1}, "priority: changed"),
        ({**ARGS, "priority": "[REDACTED]"}, "priority: changed"),
        ({**ARGS, "priority": True}, "priority: changed"),
        ({**ARGS, "weight": 0}, "weight: changed"),
        ({**ARGS, "to": ["eve@e.example", "ann@a.example"]}, "to: changed"),
        ({**ARGS, "to": "ann@a.example"}, "to: changed"),
        ({**ARGS, "body": {"text": "the code is 5678", "html": False}}, "body: changed"),
        ({**ARGS, "body": {"text": "the code is 1234", "html": True}}, "body: changed"),
        ({**ARGS, "body": {"text": b"the code"}}, "the arguments at /body/text is a 'bytes'"),
    ],
)
def test_arguments_may_not_change(new: dict[str, Any], complaint: str) -> None:
    with pytest.raises(NotARedactionError) as raised:
        reduce_args(ARGS, new, SEND, flat=False)
    assert complaint in str(raised.value)


def test_an_undeclared_tool_keeps_all_arguments() -> None:
    with pytest.raises(NotARedactionError, match="priority: missing"):
        reduce_args({"priority": 1}, {}, None, flat=False)


def test_contract_1_sees_and_reduces_json_strings() -> None:
    flat = flat_args({**ARGS, "html": True, "none": None, "large": 2**60})
    assert flat == {
        "to": '["ann@a.example","eve@e.example"]',
        "body": '{"text":"the code is 1234","html":false}',
        "priority": 2,
        "weight": "0.5",
        "html": "true",
        "none": None,
        "large": "1152921504606846976",
    }
    seen = flat_args(ARGS)
    assert reduce_args(ARGS, seen, SEND, flat=True) == ARGS
    one = reduce_args(ARGS, {**seen, "to": '["ann@a.example"]'}, SEND, flat=True)
    assert one == {**ARGS, "to": ["ann@a.example"]}
    for broken in ("[REDACTED]", "", 7, None):
        with pytest.raises(NotARedactionError, match="to: changed"):
            reduce_args(ARGS, {**seen, "to": broken}, SEND, flat=True)
