"""`tiltyard tools`: what declarations say, as a table and as JSON."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]
Refusal = Callable[..., str]
DECLARATIONS = Path(__file__).parents[1] / "inference" / "data" / "declarations"
TOOLS = [
    {
        "name": "send_note",
        "inputSchema": {
            "type": "object",
            "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
        },
    },
    {"name": "frob"},
]


@pytest.fixture
def declarations(tmp_path: Path) -> Path:
    path = tmp_path / "declarations.json"
    path.write_text(json.dumps({"tools": TOOLS}))
    return path


def rows(done: Result) -> list[list[str]]:
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_a_table_shows_each_tool(tiltyard: Command, declarations: Path) -> None:
    done = tiltyard("tools", declarations, "--why")
    assert rows(done) == [
        ["send_note", "send", "to destination, text content", "unknown"],
        ["frob", "unknown", "-", "unknown"],
    ]
    assert "unknown: 1 effects, 0 roles, 2 sources." in done.stdout
    assert "frob: no word says what it does" in done.stdout


@pytest.mark.parametrize("path", sorted(DECLARATIONS.glob("*.json")), ids=lambda path: path.stem)
def test_tables_fit_80_columns(
    tiltyard: Command, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = tiltyard("tools", path)
    assert rows(done)
    assert max(len(line) for line in done.stdout.splitlines() if line.startswith("│")) <= 80


def test_an_overlay_corrects_and_is_marked(
    tiltyard: Command, declarations: Path, tmp_path: Path
) -> None:
    overlay = tmp_path / "tools.toml"
    overlay.write_text('[server.s.tool.frob]\neffect = "PAY"\n[tool.gone]\neffect = "READ"\n')
    done = tiltyard("tools", declarations, "--overlay", overlay, "--server", "s")
    assert rows(done)[1] == ["frob *", "pay", "-", "unknown"]
    assert "* The overlay changes what the declaration says." in done.stdout
    assert "warning: the overlay corrects 'gone', which no declaration has" in done.stdout
    other = tiltyard("tools", declarations, "--overlay", overlay)
    assert rows(other)[1] == ["frob", "unknown", "-", "unknown"]


def test_json_has_everything(tiltyard: Command, declarations: Path) -> None:
    found = json.loads(tiltyard("tools", declarations, "--json").stdout)
    assert found["unused"] == []
    assert found["tools"][0] == {
        "server": "",
        "name": "send_note",
        "inferred": {
            "effect": "SEND",
            "roles": {"/to": "DESTINATION", "/text": "CONTENT"},
            "source": "UNKNOWN",
            "reversible": False,
            "local": False,
            "because": "its name says 'send'",
        },
        "corrected": False,
    }


def test_the_message_of_a_server_is_read_as_it_came(tiltyard: Command, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"tools": TOOLS}}))
    assert len(rows(tiltyard("tools", path))) == 2


def test_errors_are_one_sentence(refusal: Refusal, declarations: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"[tool.a]\nsource = 'us'\n")
    assert refusal("tools", declarations, "--overlay", bad) == (
        f"{bad}, line 2: source is 'us'; expected one of OWNER, SYSTEM, STRANGERS, UNKNOWN"
    )
    assert "is not JSON" in refusal("tools", bad)
    bad.write_bytes(b"\xff")
    assert refusal("tools", declarations, "--overlay", bad) == (
        f"{bad} is not UTF-8 text; save it as UTF-8"
    )
    bad.write_text('[{"name": "a"}, {"name": "a"}]')
    assert "declared twice" in refusal("tools", bad)
    assert "No such file" in refusal("tools", tmp_path / "none")


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ([{"name": "a", "description": "x" * 20_000}], "the limit is 16,384"),
        (
            [{"name": "a", "inputSchema": {"properties": {"a": {"$ref": "#"}}}}],
            "refers to a part that contains it",
        ),
        ([{"name": "a\x1b[2J"}], "U+001B"),
        ([{"name": "send_note"}, {"name": "Send-Note"}], "looks like 'send_note'"),
    ],
    ids=["huge", "recursive", "control character", "imitation"],
)
def test_a_hostile_declaration_is_refused(
    refusal: Refusal, tmp_path: Path, tools: list[object], why: str
) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(tools))
    assert why in refusal("tools", path)


def test_a_huge_answer_is_refused(refusal: Refusal, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{"name": "a", "description": "x" * 10_000_000}]))
    assert "the limit is 10,000,000" in refusal("tools", path)
