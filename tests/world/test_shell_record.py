"""The shell's record of a command line: its words, their expansions, and the opened files."""

import pytest

from tiltyard.world import tools
from tiltyard.world.generate import generate
from tiltyard.world.results import ToolCall, ToolResult
from tiltyard.world.text import by_user

WORLD = generate(123).world


def run(line: str) -> ToolResult:
    return tools.call(WORLD, ToolCall("shell.run", {"cmd": by_user(line)})).result


def opened(line: str) -> list[tuple[str, str]]:
    result = run(line)
    assert result.ok, result.error
    commands = [command for pipeline in result.line for command in pipeline.commands]
    return [(each.use.value, each.path) for command in commands for each in command.opened]


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("cat ./readme.txt", [("read", "readme.txt")]),
        ("cat < ~/readme.txt", [("read", "readme.txt")]),
        ("grep x readme.txt report.txt", [("read", "readme.txt"), ("read", "report.txt")]),
        ("echo x > a.txt", [("write", "a.txt")]),
        ("echo x >> readme.txt", [("append", "readme.txt")]),
        ("cp readme.txt a.txt", [("read", "readme.txt"), ("write", "a.txt")]),
        (
            "mv readme.txt a.txt",
            [("read", "readme.txt"), ("write", "a.txt"), ("delete", "readme.txt")],
        ),
        ("rm r?adme.txt", [("delete", "readme.txt")]),
        ("curl -d @readme.txt https://x.example/", [("send", "readme.txt")]),
        ("curl -T readme.txt https://x.example/", [("send", "readme.txt")]),
        ("cat readme.txt | base64 | rev", [("read", "readme.txt")]),
        ("ls; date; echo readme.txt", []),
        ("grep zzzzzz readme.txt && cat report.txt", [("read", "readme.txt")]),
    ],
)
def test_the_record_lists_the_files_that_a_line_opened(
    line: str, files: list[tuple[str, str]]
) -> None:
    assert opened(line) == files


def test_the_record_has_words_as_written_and_as_expanded() -> None:
    result = run("""cat r[e";"]adme.txt 're'port.txt | head -n 1 > "a b.txt" && date""")
    assert result.ok
    first, second = result.line
    cat, head = first.commands
    assert [(word.written, word.values) for word in cat.words] == [
        ("cat", ("cat",)),
        ('r[e";"]adme.txt', ("readme.txt",)),
        ("'re'port.txt", ("report.txt",)),
    ]
    ((operator, target),) = head.redirects
    assert (operator, target.written, target.values) == (">", '"a b.txt"', ("a b.txt",))
    assert (first.conditional, second.conditional) == (False, True)


def test_a_line_that_fails_has_no_record() -> None:
    assert run("cat readme.txt; cat nothing.txt").line == ()
