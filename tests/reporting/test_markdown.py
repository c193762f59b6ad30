"""Markdown: tables, lists, templates, and hostile text."""

from tiltyard.reporting.markdown import bullets, escape, fill, table


def test_a_table_has_a_head_and_rows() -> None:
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n|---|---|\n| 1 | 2 |"
    assert table(["a"], []) == "| a |\n|---|"


def test_a_list_is_wrapped_at_100_characters() -> None:
    lines = bullets(["word " * 30, "short"]).splitlines()
    assert max(map(len, lines)) <= 100
    assert [line[:2] for line in lines] == ["- ", "  ", "- "]
    assert bullets([]) == ""


def test_an_empty_part_of_a_template_leaves_no_gap() -> None:
    text = fill("leaderboard.md", leagues="one", not_comparable="", remarks="three")
    assert text == "# Leaderboard\n\none\n\nthree\n"


def test_a_part_is_not_a_template() -> None:
    text = fill("leaderboard.md", leagues="$remarks", not_comparable="", remarks="")
    assert "$remarks" in text


def test_hostile_text_is_escaped() -> None:
    assert escape("a|b <i>*c*\x1b\u202e") == "a\\|b \\<i\\>\\*c\\*\\\\x1b\\\\u202e"
