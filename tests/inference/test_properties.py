"""What holds for every declaration, hostile ones too."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.contracts.declaration import Declaration, Hints
from tiltyard.inference import (
    Correction,
    Effect,
    Inferred,
    Overlay,
    OverlayError,
    Role,
    Source,
    infer,
    read_overlay,
)

SPOKEN = "get send delete list pay money file to url and or not run user message order status"
WORDS = st.sampled_from(SPOKEN.split(" "))
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=8).map(" ".join))
NAMES = st.one_of(st.text(max_size=20), st.lists(WORDS, min_size=1, max_size=4).map("_".join))
KEYS = st.sampled_from(
    ["properties", "items", "type", "enum", "description", "format", "anyOf", "allOf", "$ref", "to"]
)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        TEXTS,
        st.sampled_from(["#", "#/properties/to", "#/$defs/a", "string", "object", "array"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(KEYS, NAMES), inner, max_size=4)
    ),
    max_leaves=20,
)
SCHEMAS = st.dictionaries(st.one_of(KEYS, NAMES), JSON, max_size=4)
FIELDS = st.dictionaries(NAMES, st.one_of(SCHEMAS, st.just({"type": "string"})), max_size=5)
OBJECTS = st.one_of(SCHEMAS, FIELDS.map(lambda fields: {"properties": fields}))
SWITCH = st.sampled_from([None, True, False])
HINTS = st.builds(Hints, SWITCH, SWITCH, SWITCH, SWITCH)
DECLARATIONS = st.builds(
    Declaration, NAMES, TEXTS, TEXTS, OBJECTS, st.one_of(st.none(), OBJECTS), HINTS, NAMES
)


@settings(max_examples=400)
@given(DECLARATIONS)
def test_inference_never_fails(declared: Declaration) -> None:
    found = infer(declared)
    assert isinstance(found, Inferred)
    assert all(pointer.startswith("/") for pointer in found.roles)
    assert all(found.role_of(pointer) is role for pointer, role in found.roles.items())


@given(DECLARATIONS)
def test_hints_of_a_stranger_never_make_a_tool_harmless(declared: Declaration) -> None:
    plain = Declaration(
        declared.name, "", declared.description, declared.input_schema, server=declared.server
    )
    hinted = Declaration(
        declared.name,
        "",
        declared.description,
        declared.input_schema,
        None,
        declared.hints,
        declared.server,
    )
    if infer(plain).effect is not Effect.READ:
        assert infer(hinted).effect is infer(plain).effect
    if infer(plain).source not in (Source.OWNER, Source.SYSTEM):
        assert infer(hinted).source not in (Source.OWNER, Source.SYSTEM)


@given(
    DECLARATIONS,
    st.builds(
        Correction,
        st.sampled_from(Effect),
        st.sampled_from(Source),
        st.dictionaries(NAMES.map(lambda name: f"/{name}"), st.sampled_from(Role), max_size=3),
        st.booleans(),
        st.booleans(),
    ),
)
def test_the_overlay_has_the_last_word(declared: Declaration, correction: Correction) -> None:
    found = infer(declared, Overlay({declared.name: correction}))
    assert (found.effect, found.source) == (correction.effect, correction.source)
    assert (found.reversible, found.local) == (correction.reversible, correction.local)
    assert found.roles == infer(declared).roles | correction.args


@given(st.lists(st.from_regex(re.compile("[a-z]{2,8}"), fullmatch=True), min_size=1, max_size=4))
def test_the_style_of_a_name_does_not_matter(words: list[str]) -> None:
    styles = [
        "_".join(words),
        "-".join(words),
        words[0] + "".join(word.title() for word in words[1:]),
        "".join(word.title() for word in words),
        "_".join(words).upper(),
    ]
    assert len({infer(Declaration(name)).effect for name in styles}) == 1


@given(st.one_of(st.text(), JSON.map(str), st.lists(WORDS).map("\n[tool.a]\n".join)))
def test_any_text_is_an_overlay_or_an_error(text: str) -> None:
    problem = ""
    try:
        read_overlay(text, "t.toml")
    except OverlayError as error:
        problem = str(error)
    assert problem.isprintable()
    assert not problem or problem.startswith("t.toml")
