"""Tables in a narrow terminal."""

import io

from rich.console import Console

from tiltyard.cli.tables import print_table


def printed(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_table(
        console,
        "Title",
        ("name", "score", "run"),
        [("one\x1b[2J", "1,000", "0123456789abcdef"), ("two", "2", "fedcba9876543210")],
        left=("run",),
        optional=("run",),
    )
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_wide_terminal_shows_every_column() -> None:
    lines = printed(60)
    assert any("0123456789abcdef" in line for line in lines)
    assert not any("narrow" in line for line in lines)


def test_a_narrow_terminal_leaves_optional_columns_out_and_says_so() -> None:
    lines = printed(35)
    assert max(map(len, lines)) <= 35
    assert not any("0123456789abcdef" in line for line in lines)
    assert "Left out, because the terminal is narrow: run." in " ".join(map(str.strip, lines[-2:]))
    assert any("1,000" in line for line in lines)


def test_cells_are_escaped() -> None:
    assert any(r"one\x1b[2J" in line for line in printed(60))
