"""Overlays: what an operator says replaces what the words say."""

import pytest

from tiltyard.contracts.declaration import Declaration
from tiltyard.inference import Effect, OverlayError, Role, Source, infer, read_overlay

TEXT = {"type": "string"}
FROB = Declaration(
    "frob", input_schema={"properties": {"x": TEXT, "to": TEXT}}, server="fs", description="Frobs."
)
OVERLAY = """
[tool.frob]
effect = "SEND"
source = "strangers"
local = false

[server.fs.tool.frob]
effect = "read"
reversible = true
args = { x = "path", "edits/*/text" = "CONTENT" }

[server.other.tool.frob]
effect = "PAY"
"""


def test_the_server_s_entry_wins_over_the_general_one() -> None:
    found = infer(FROB, read_overlay(OVERLAY))
    assert found.effect is Effect.READ
    assert found.source is Source.STRANGERS
    assert (found.reversible, found.local) == (True, False)
    assert found.roles["/x"] is Role.PATH
    assert found.role_of("/edits/3/text") is Role.CONTENT
    assert found.roles["/to"] is infer(FROB).roles["/to"]
    assert found.because.startswith("overlay for this server; overlay for any server; ")


def test_other_tools_stay_as_inferred() -> None:
    other = Declaration("send_mail", server="fs")
    assert infer(other, read_overlay(OVERLAY)) == infer(other)


def test_names_with_dots_stand_in_quotes() -> None:
    overlay = read_overlay('[server."a.b".tool."light.set"]\neffect = "WRITE"')
    assert infer(Declaration("light.set", server="a.b"), overlay).effect is Effect.WRITE


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            '[tool.a]\neffect = "READ"\nsource = "untrusted"\n',
            (
                "t.toml, line 3: source is 'untrusted'; "
                "expected one of OWNER, SYSTEM, STRANGERS, UNKNOWN"
            ),
        ),
        (
            '[tool.a]\neffect = "READ"\n\n[server.s.tool.b]\n\neffect = 3\n',
            (
                "t.toml, line 6: effect is 3; expected one of "
                "READ, WRITE, DELETE, SEND, PAY, EXECUTE, ACCESS, UNKNOWN"
            ),
        ),
        (
            '[tool.a]\nargs = { x = "READ" }\n',
            (
                "t.toml, line 2: x is 'READ'; expected one of DESTINATION, PATH, CONTENT, AMOUNT, "
                "IDENTIFIER, COMMAND, CREDENTIAL, QUERY, OPTION, UNKNOWN"
            ),
        ),
        (
            '\n[tool.a.args]\nb = "path"\nx = 1\n',
            (
                "t.toml, line 4: x is 1; expected one of DESTINATION, PATH, CONTENT, AMOUNT, "
                "IDENTIFIER, COMMAND, CREDENTIAL, QUERY, OPTION, UNKNOWN"
            ),
        ),
        (
            '[tool.light.set]\neffect = "READ"\n',
            (
                "t.toml, line 1: unknown key 'set'; write the name in quotes if it contains dots; "
                "keys are effect, source, args, reversible, local"
            ),
        ),
        (
            '[tool.a]\nefect = "READ"\n',
            "t.toml, line 2: unknown key 'efect'; keys are effect, source, args, reversible, local",
        ),
        (
            '[tool.a]\nreversible = "yes"\n',
            "t.toml, line 2: reversible is 'yes'; expected true or false",
        ),
        (
            '# a comment\neffect = "READ"\n',
            "t.toml, line 2: unknown table 'effect'; expected [tool.NAME] or [server.S.tool.NAME]",
        ),
        (
            '[server.s.read]\neffect = "READ"\n',
            "t.toml, line 1: unknown key 'read'; expected [server.s.tool.NAME]",
        ),
        ("tool = 3\n", "t.toml, line 1: tool is not a table; write [tool.NAME]"),
        (
            '[tool]\na = "READ"\n',
            "t.toml, line 2: tool.a is not a table; write [tool.a]",
        ),
        (
            "[tool.a\n",
            (
                "t.toml is not TOML: Expected ']' at the end of a table declaration "
                "(at line 1, column 8)"
            ),
        ),
    ],
)
def test_errors_name_file_line_and_remedy(text: str, error: str) -> None:
    with pytest.raises(OverlayError) as caught:
        read_overlay(text, "t.toml")
    assert str(caught.value) == error


def test_entries_without_a_tool_are_reported() -> None:
    overlay = read_overlay(OVERLAY + "\n[tool.frib]\neffect = 'READ'\n")
    assert [*overlay.unused([FROB])] == [
        "the overlay corrects 'frib', which no declaration has",
        "the overlay corrects /edits/*/text of 'frob' of server 'fs', which the tool lacks",
        "the overlay corrects 'frob' of server 'other', which no declaration has",
    ]
