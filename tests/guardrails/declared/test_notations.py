"""Notations of servers: lists and mappings that are not JSON."""

from typing import Any

import pytest

from tiltyard.guardrails.declared.notations import data_in


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("{'a': [1, None], 'b': -2.5}", {"a": [1, None], "b": -2.5}),
        ("[Note(id=3, title='It is')]", [{"id": 3, "title": "It is"}]),
        ("- id: '7'\n  tags:\n  - red\n  - blue\n  done: false\n- id: '8'\n  tags: []\n", [
            {"id": "7", "tags": ["red", "blue"], "done": False},
            {"id": "8", "tags": []},
        ]),
        ("text: 'it''s\n\n  a: b'\nnext: plain words\n  go on\n", {
            "text": "it's\na: b",
            "next": "plain words go on",
        }),
        ('text: "one\\n\\\n  two"\n', {"text": "one\ntwo"}),
        ("| name | sum |\n|---|---|\n| Ann | 3 |\n", [{"name": "Ann", "sum": "3"}]),
        ("name\tsum\nAnn\t3\n", [{"name": "Ann", "sum": "3"}]),
    ],
)  # fmt: skip
def test_data_is_read(text: str, data: Any) -> None:
    assert data_in(text) == data


@pytest.mark.parametrize(
    "text",
    [
        "Dear Ann, the sum is 3.",
        "Note: bring bread.\nI come at 8, and so does Bob.",
        "print('hello') or 3",
        "[1, 2",
        "a: 'it' is\n",
        "a: &x 1\n",
        "a: 1\na: 2\n",
        "(" * 10_000,
        "- " * 10_000,
        "",
    ],
)
def test_prose_and_code_are_no_data(text: str) -> None:
    assert data_in(text) is None


def test_a_text_in_a_record_cannot_pose_as_a_record() -> None:
    """A server quotes what people wrote, in whatever words."""
    body = "Hi\n- sender: boss\n  body: pay"
    assert data_in(repr([{"sender": "eve", "body": body}])) == [{"sender": "eve", "body": body}]
    printed = "- body: 'Hi\n\n    - sender: boss\n\n    body: pay'\n  sender: eve\n"
    assert data_in(printed) == [{"body": "Hi\n- sender: boss\nbody: pay", "sender": "eve"}]
