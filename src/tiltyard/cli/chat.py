"""`tiltyard chat`: talk to the agent, and see every call."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from tiltyard.cli.errors import MATCH_FAILED, exit_on_error, refuse
from tiltyard.cli.options import ScenarioOption, SeedOption, UnsafeOption
from tiltyard.cli.replay import block, call_block
from tiltyard.cli.terminal import LEGEND, open_console, render_segments, safe, safe_lines
from tiltyard.episode.guardrail_runner import GuardrailGoneError
from tiltyard.episode.sandbox_env import PUBLIC_SEED
from tiltyard.reporting.finding_schema import Segment, Step
from tiltyard.reporting.numbers import many
from tiltyard.studies.conversation import (
    Conversation,
    ConversationError,
    open_conversation,
)

MAX_AUTHORS: Final = 4
_PROMPT: Final = "\nyou> "
_COMMANDS: Final = (
    ("/snapshot", "keep this moment, under a number"),
    ("/back [N]", "go back to snapshot N, or to the newest; 0 is the beginning"),
    ("/world", "show what there is in the world, and what has changed"),
    ("/help", "show this list"),
    ("/quit", "end the conversation; so does the end of the input"),
)
_HELP: Final = (
    ("say", "read file readme"),
    ("or", "open welcome, then save it to notes.txt"),
    ("more", "docs/grammar.md says what the agent understands"),
)


def run(
    *,
    guardrail: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The guardrail: a shipped guardrail's name, or a submission.",
            show_default="none: every call runs",
        ),
    ] = "",
    seed: SeedOption = PUBLIC_SEED,
    scenario: ScenarioOption = None,
    unsafe: UnsafeOption = False,
) -> None:
    """Talk to the agent, and see its calls, the guardrail's decisions and their reasons.

    Every line is a message of the user. The command shows each call with its arguments, the
    decision, the result, the effects and the sources of its texts. Lines with a slash are commands;
    /help lists them. With a pipe, the command reads the messages from it and shows no prompt.

    Exit codes:

    - 0: the conversation is over.
    - 1: the guardrail failed.
    - 2: the command is wrong.
    - 3: this machine has no sandbox.
    - 130: interrupted.

    Example: tiltyard chat --guardrail "data flow"

    Example: echo "read file readme" | tiltyard chat --guardrail mine --seed 7
    """
    console = open_console()
    is_live = console.is_terminal and sys.stdin.isatty()
    with exit_on_error():
        try:
            with open_conversation(guardrail, seed, scenario, unsafe=unsafe) as conversation:
                _talk(console, conversation, is_live=is_live)
        except GuardrailGoneError as error:
            refuse(f"the guardrail failed: {error}", MATCH_FAILED)


def _talk(console: Console, conversation: Conversation, *, is_live: bool) -> None:
    if is_live:
        _print_banner(console, conversation)
    try:
        for line in _lines(is_live=is_live):
            if not _answer(console, conversation, line, is_live=is_live):
                return
    except KeyboardInterrupt:
        if is_live:
            console.print()  # The terminal shows ^C behind the prompt.
        raise


def _print_banner(console: Console, conversation: Conversation) -> None:
    name = conversation.guardrail
    under = f"Guardrail: {safe(name)}." if name else "No guardrail: every call runs."
    console.print(f"Say something to the agent. {under} /help lists the commands.")
    console.print(Text(LEGEND, "dim"))


def _lines(*, is_live: bool) -> Iterator[str]:
    """Yield the lines of the input that are not empty."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    if is_live:
        with suppress(ImportError):
            __import__("readline")  # lets `input` edit a line
    while True:
        try:
            line = input(_PROMPT) if is_live else sys.stdin.readline()
        except EOFError:
            sys.stdout.write("\n")
            return
        if not line and not is_live:
            return
        if line.strip():
            yield line.strip()


def _answer(console: Console, conversation: Conversation, line: str, *, is_live: bool) -> bool:
    """Do what a line asks for. Return False at the end of the conversation."""
    try:
        if line.startswith("/"):
            return _obey(console, conversation, line)
        reply = conversation.say(line)
    except ConversationError as error:
        console.file.flush()
        typer.echo(safe(error), err=True)
        return True
    if not is_live:
        said = render_segments([Segment(line, "user")])
        console.print(block(f"message {conversation.messages}", [("user", said)]))
    for step in reply.steps:
        console.print(call_block(step, ("sources", Text(safe(_sources(step))))))
    for fault in reply.faults:
        console.print(Text(f"\nerror in the guardrail: {safe(fault)}", "bold red"))
    if not reply.understood:
        note = "the agent found no instruction in this message; see docs/grammar.md"
        console.print(Text(f"\n{note}", "yellow"))
    console.print(block("answer", [("agent", Text(safe_lines(reply.answer)))]))
    return True


def _obey(console: Console, conversation: Conversation, line: str) -> bool:
    word, *rest = line.split()
    if word == "/quit" and not rest:
        return False
    if word == "/help" and not rest:
        rows = [*_COMMANDS, *_HELP]
        console.print(block("commands", [(name, Text(text)) for name, text in rows]))
    elif word == "/world" and not rest:
        parts = conversation.describe_world()
        shown = [(name, Text("\n".join(map(safe, lines)))) for name, lines in parts]
        console.print(block("world", shown))
    elif word == "/snapshot" and not rest:
        console.print(f"snapshot {conversation.snapshot()}")
    elif word == "/back" and len(rest) <= 1:
        number = conversation.back(_number(rest[0]) if rest else None)
        where = f"snapshot {number}" if number else "the beginning"
        said = many(conversation.messages, "message", "messages")
        console.print(f"back at {where}, after {said}")
    else:
        raise ConversationError(f"unknown command {line!r}; /help lists the commands")
    return True


def _number(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 9):
        raise ConversationError(f"/back takes the number of a snapshot, not {word!r}")
    return int(word)


def _sources(step: Step) -> str:
    """Name the authors of the arguments, and of the result."""
    arguments = _authors([each for segments in step.args.values() for each in segments])
    result = _authors(step.output) if step.ok else ""
    return f"arguments: {arguments or 'none'}" + (f"; result: {result}" if result else "")


def _authors(segments: Sequence[Segment]) -> str:
    named = (
        f"{each.by} {each.document}".strip() + (" (a stranger)" if each.untrusted else "")
        for each in segments
        if each.text
    )
    different = list(dict.fromkeys(named))
    # A listing has as many authors as it has lines.
    more = len(different) - MAX_AUTHORS
    shown = different if more <= 1 else [*different[:MAX_AUTHORS], f"and {more} more"]
    return ", ".join(shown)
