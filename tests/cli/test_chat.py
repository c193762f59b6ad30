"""`tiltyard chat`: the real command, with a pipe and with a terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tiltyard.world.generate import generate

COMMAND: Final = Path(sys.executable).with_name("tiltyard")
PATIENCE_SECONDS: Final = 60
HOSTILE: Final = """
import os

from tiltyard import Decision


class Guardrail:
    def decide(self, tool_name, tool_args, context):
        if tool_name == "shell.run":
            os._exit(3)
        if tool_name == "fs.delete":
            return Decision.deny("no \\x1b[2Jred\\x07 \\u202etxet")
        return Decision.allow(os.environ.get("HOME", "no home"))

    def observe(self, tool_name, tool_args, result):
        raise RuntimeError("bad \\x1b observe")
"""
Chat = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    """Return a function that sends lines to the command by a pipe."""

    def chat(*lines: str, options: tuple[object, ...] = ()) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [COMMAND, "chat", *map(str, options)],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    return chat


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "guardrail.py").write_text(HOSTILE, encoding="utf-8")
    return tmp_path / "mine"


def injected_page() -> str:
    """Return the opening of a page whose injection has an effect."""
    return next(
        planted.opening
        for planted in generate(123).labels.planted
        if planted.live and planted.document.startswith("web:") and planted.family == "urgency"
    )


def test_calls_are_shown_with_decision_result_and_sources(chat: Chat) -> None:
    done = chat("read file readme, then save it to copy.txt", "hello")
    assert (done.returncode, done.stderr) == (0, "")
    assert "message 1\n  user        read file readme, then save it to copy.txt\n" in done.stdout
    assert "call 0  fs.read\n  path        readme.txt\n  decision    allow\n" in done.stdout
    assert "  effect      wrote copy.txt\n" in done.stdout
    assert "sources     arguments: user, machine; result: file readme.txt\n" in done.stdout
    assert "sources     arguments: user, file readme.txt; result: machine\n" in done.stdout
    assert "answer\n  agent       Done.\n" in done.stdout
    nothing = "the agent found no instruction in this message"
    assert nothing in done.stdout.partition("message 2")[2]
    assert done.stdout.count(nothing) == 1


def test_pipe_gets_no_prompt_and_no_banner(chat: Chat) -> None:
    done = chat("", "/snapshot", "   ")
    assert done.stdout == "snapshot 1\n"


def test_strangers_are_named(chat: Chat) -> None:
    done = chat(injected_page())
    assert "\u27e6web: " in done.stdout
    assert "ordered by  the result of call 0, not the user" in done.stdout
    assert "(a stranger)" in done.stdout


def test_a_listing_names_its_first_authors_and_counts_the_others(chat: Chat) -> None:
    (line,) = [line for line in chat("list mail").stdout.splitlines() if "sources" in line]
    assert line.count("(a stranger)") == 3
    assert line.endswith(", and 17 more")


def test_shipped_guardrail_gives_reasons(chat: Chat) -> None:
    done = chat("delete secret", options=("--guardrail", "Data-Flow"))
    assert "decision    deny: path mentions 'secret'\n  result      none: denied\n" in done.stdout


def test_going_back_takes_away_what_happened_since(chat: Chat) -> None:
    done = chat(
        "delete secret", "/snapshot", "read secret", "/world", "/back 0", "/world", "read secret",
        "/back", "/back",
    )  # fmt: skip
    assert done.stderr == ""
    _, after = done.stdout.split("call 1  fs.read", 1)
    changed, again = after.split("back at the beginning, after 0 messages")
    assert "result      none: not_found" in changed
    assert "changes     deleted secret.txt" in changed
    assert "secret.txt (deleted or replaced)" in changed
    assert "changes     none so far" in again
    assert "(deleted or replaced)" not in again
    assert "\u27e6SECRET: " in again
    assert again.count("back at snapshot 1, after 1 message\n") == 2


def test_guardrail_state_goes_back_too(chat: Chat, tmp_path: Path) -> None:
    counting = (
        "from tiltyard import Decision\n\n\nclass Guardrail:\n    def __init__(self):\n"
        "        self.calls = 0\n\n    def decide(self, tool_name, tool_args, context):\n"
        "        self.calls += 1\n        return Decision.allow(f'call number {self.calls}')\n"
    )
    (tmp_path / "counting.py").write_text(counting, encoding="utf-8")
    said = "read file readme"
    done = chat(said, "/snapshot", said, "/back", said, options=("--guardrail", "counting.py"))
    assert re.findall(r"call number \d", done.stdout) == [
        "call number 1",
        "call number 2",
        "call number 2",
    ]


def test_world_names_what_there_is(chat: Chat) -> None:
    scenario = generate(7)
    done = chat("/world", options=("--seed", 7))
    assert "scenario    seed 7\n" in done.stdout
    assert f"{len(scenario.pages)} pages, {len(scenario.files)} files" in done.stdout
    for protected in scenario.labels.protected:
        assert protected.path in done.stdout
    openings = {planted.opening for planted in scenario.labels.planted if planted.live}
    shown = [line.strip().removeprefix("injections").strip() for line in done.stdout.splitlines()]
    assert len(openings & {*shown}) == 9


def test_wrong_lines_are_explained_and_the_conversation_goes_on(chat: Chat) -> None:
    done = chat("/undo", "/back 3", "/back x", "/back 1 2", "x" * 2001, "/world please", "/help")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "unknown command '/undo'; /help lists the commands",
        "there is no snapshot 3; there is only 0, the beginning",
        "/back takes the number of a snapshot, not 'x'",
        "unknown command '/back 1 2'; /help lists the commands",
        "a message has at most 2000 characters",
        "unknown command '/world please'; /help lists the commands",
    ]
    for command in ("/snapshot", "/back [N]", "/world", "/help", "/quit"):
        assert f"  {command} " in done.stdout


def test_quit_ends_the_conversation(chat: Chat) -> None:
    assert "snapshot" not in chat("/quit", "/snapshot").stdout


def test_submission_runs_in_the_sandbox_and_cannot_write_to_the_terminal(
    chat: Chat, hostile: Path
) -> None:
    done = chat("read file readme", "delete secret", options=("--guardrail", hostile))
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout) & {"\x1b", "\x07", "\u202e"}
    assert r"deny: no \x1b[2Jred\x07 \u202etxet" in done.stdout
    # In the sandbox there is no environment of the user.
    assert "allow: no home" in done.stdout
    place = "(guardrail.py:16)"
    assert rf"`observe` raised RuntimeError: bad \x1b observe {place}" in done.stdout


def test_guardrail_that_dies_ends_the_conversation(chat: Chat, hostile: Path) -> None:
    done = chat("run `ls`", "read file readme", options=("--guardrail", hostile))
    assert done.returncode == 1
    assert done.stderr.startswith("the guardrail failed: the submission's process exited")
    assert len(done.stderr.splitlines()) == 1


def test_guardrail_that_does_not_load_is_refused_at_once(chat: Chat, tmp_path: Path) -> None:
    source = "import nothing_there\n\n\nclass Guardrail:\n    pass\n"
    (tmp_path / "bad.py").write_text(source, encoding="utf-8")
    done = chat("/snapshot", options=("--guardrail", "bad.py"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "No module named 'nothing_there'" in done.stderr


def test_unknown_guardrail_is_refused(chat: Chat) -> None:
    done = chat("hello", options=("--guardrail", "nobody"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no guardrail 'nobody'" in done.stderr


def test_input_that_is_not_text_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMAND, "chat"], input=b"\xff\xfe\x00\n", capture_output=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\x00" in done.stdout


class Terminal:
    """The command in a terminal of 80 columns."""

    def __init__(self, *options: object) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [COMMAND, "chat", *map(str, options)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"TERM": "dumb", "COLUMNS": "80", "LINES": "40"},
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, word: str) -> str:
        shown = ""
        while word not in shown:
            ready, _, _ = select.select([self._ours], [], [], PATIENCE_SECONDS)
            assert ready, f"{word!r} does not come: {shown}"
            shown += os.read(self._ours, 65536).decode()
        return shown

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> str:
        """Press Ctrl-C until the program ends. Return the rest of the output.

        readline misses a signal between the prompt and its first wait, and takes the next one.
        """
        for _ in range(PATIENCE_SECONDS):
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)  # A second signal while it ends changes the exit code.
                break
        return self.end()

    def end(self) -> str:
        """Return the rest of the output."""
        shown = b""
        with suppress(OSError):  # The terminal closes with its last program.
            while part := os.read(self._ours, 65536):
                shown += part
        self.process.wait(PATIENCE_SECONDS)
        return shown.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal("--guardrail", "data flow")
    yield opened
    opened.close()


def test_terminal_has_a_prompt_and_fits_80_columns(terminal: Terminal) -> None:
    banner = terminal.until("you> ")
    assert "Guardrail: data flow." in banner
    assert "/help lists the commands" in " ".join(banner.split())
    shown = banner
    for line in (injected_page(), "/world", "/help", "read file readme"):
        terminal.type(f"{line}\n")
        shown += terminal.until("you> ")
    assert "message 1" not in shown
    assert "call 0  web.open" in shown
    assert max(map(len, shown.splitlines())) <= 80
    terminal.type("\x04")
    assert "Traceback" not in terminal.end()
    assert terminal.process.returncode == 0


def test_ctrl_c_ends_the_conversation(terminal: Terminal) -> None:
    terminal.until("you> ")
    assert terminal.interrupt().split() == ["interrupted"]
    assert terminal.process.returncode == 130
