"""The simulated shell: a command line as a pure function of the world.

This module combines commands with pipes, redirects and patterns. `syntax` parses a line; `commands`
and `curl` implement the commands. Every character keeps its label through pipes, files and
requests.

A line is one transaction: if any command fails, the result is a named error and nothing changes.
So `&&` differs from `;` only after a `grep` that selects no line. That is not a failure, but the
commands after `&&` do not run, as in any shell.

A redirect writes its file after its command has run, so `cat f > f` leaves `f` unchanged. A count
of characters, never the clock, limits the work of a line.
"""

from typing import Final

from tiltyard.world import files
from tiltyard.world.files import Directory, File
from tiltyard.world.results import (
    Outcome,
    ParsedCommand,
    ParsedPipeline,
    ParsedWord,
    ToolError,
    ToolResult,
    Use,
    failure,
)
from tiltyard.world.shell.commands import COMMANDS
from tiltyard.world.shell.curl import curl
from tiltyard.world.shell.glob import match
from tiltyard.world.shell.session import (
    MAX_STREAM_CHARS,
    Session,
    ShellError,
    join_stream,
)
from tiltyard.world.shell.syntax import Command, Pipeline, Redirect, Refusal, Word, bind, read_line
from tiltyard.world.state import World
from tiltyard.world.text import EMPTY, SourceKind, Text, by_machine, join


def run_command(world: World, command: Text) -> Outcome:
    """Run a command line. No input makes this function raise; a failure changes nothing."""
    if len(command.string) > MAX_STREAM_CHARS:
        return Outcome(world, failure(SourceKind.TOOL, ToolError.TOO_LARGE, "cmd"))
    line = read_line(command.string)
    if isinstance(line, Refusal):
        return Outcome(world, failure(SourceKind.TOOL, line.error, line.detail))
    session = Session(world, command)
    output = EMPTY
    parsed: list[ParsedPipeline] = []
    try:
        for pipeline in line:
            if session.succeeded or not pipeline.conditional:
                stream = _run_pipeline(session, pipeline, parsed)
                output = join_stream([output, stream], "cmd") if output.string else stream
    except ShellError as error:
        failed = failure(SourceKind.TOOL, error.error, error.detail, session.work)
        return Outcome(world, failed)
    result = ToolResult(
        ok=True,
        output=output,
        source=SourceKind.TOOL,
        touched=session.touched,
        line=tuple(parsed),
        work=session.work,
    )
    return Outcome(session.world, result, tuple(session.effects))


def _run_pipeline(session: Session, pipeline: Pipeline, parsed: list[ParsedPipeline]) -> Text:
    stream = EMPTY
    commands: list[ParsedCommand] = []
    for command in pipeline.commands:
        session.matched.clear()
        session.opened = []
        stream = _run_simple(session, command, stream)
        commands.append(_describe(session, command))
    parsed.append(ParsedPipeline(tuple(commands), pipeline.conditional))
    return stream


def _describe(session: Session, command: Command) -> ParsedCommand:
    """Return how a command that has just run was parsed, and which files it opened."""
    words = tuple([_parsed(session, word) for word in command.words])
    redirects = tuple(
        [(each.operator, _parsed(session, each.target)) for each in command.redirects]
    )
    return ParsedCommand(words, redirects, tuple(session.opened))


def _parsed(session: Session, word: Word) -> ParsedWord:
    if word.pattern is None:
        return word.parsed
    return ParsedWord(word.parsed.written, session.matched[word.string])


def _run_simple(session: Session, command: Command, stdin: Text) -> Text:
    session.succeeded = True
    arguments = bind(session.line, command.words)
    if command.has_patterns:
        arguments = _expand(session, command.words, arguments)
    for redirect in command.redirects:
        if redirect.operator == "<":
            stdin = session.read(_read_target(session, redirect.target))
    output = EMPTY
    if arguments:
        name = arguments.pop(0).string
        run = _COMMANDS.get(name)
        if run is None:
            raise ShellError(ToolError.UNKNOWN_COMMAND, name)
        output = run(session, arguments, stdin)
        if len(output.string) > MAX_STREAM_CHARS:
            raise ShellError(ToolError.TOO_LARGE, name)
    return _redirect(session, command.redirects, output) if command.redirects else output


def _redirect(session: Session, redirects: tuple[Redirect, ...], output: Text) -> Text:
    """Write to the last file. All other files become empty or keep their content, as in shells."""
    outward = [redirect for redirect in redirects if redirect.operator != "<"]
    for position, redirect in enumerate(outward, 1):
        word = _read_target(session, redirect.target)
        content = output if position == len(outward) else EMPTY
        before = session.find(word)
        use = Use.APPEND if redirect.operator == ">>" else Use.WRITE
        if use is Use.APPEND and isinstance(before, File):
            session.spend(len(before.content.string), word)
            content = join((before.content, content))
        session.write(word, content, use)
    return EMPTY if outward else output


def _read_target(session: Session, word: Word) -> str:
    paths = (word.string,) if word.pattern is None else _match_paths(session, word)
    if len(paths) > 1:
        raise ShellError(ToolError.BAD_SYNTAX, word.string)
    return paths[0]


def _expand(session: Session, words: tuple[Word, ...], texts: list[Text]) -> list[Text]:
    expanded: list[Text] = []
    for word, text in zip(words, texts, strict=True):
        if word.pattern is None:
            expanded.append(text)
        else:
            expanded += map(by_machine, _match_paths(session, word))
    return expanded


def _match_paths(session: Session, word: Word) -> tuple[str, ...]:
    """Return the sorted paths that match a pattern, spelled like the pattern.

    The search lists only the directories on the way.
    """
    assert word.pattern is not None
    known = session.matched.get(word.string)
    if known is not None:
        session.spend(sum(map(len, known)), word.string)
        return known
    spellings = [""]
    last = len(word.pattern) - 1
    for depth, component in enumerate(word.pattern):
        slash = "/" if depth < last else ""
        session.spend(sum(map(len, spellings)), word.string)
        if isinstance(component, str):
            spellings = [spelling + component + slash for spelling in spellings]
            continue
        longer: list[str] = []
        for spelling in spellings:
            node = session.find(spelling, word.string)
            for name in files.names(node) if isinstance(node, Directory) else ():
                fits, work = match(component, name)
                session.spend(work + 1 + fits * len(spelling), word.string)
                if fits:
                    longer.append(spelling + name + slash)
        spellings = longer
    paths = tuple(sorted(path for path in spellings if _exists(session, path, word.string)))
    if not paths:
        raise ShellError(ToolError.NO_MATCH, word.string)
    session.matched[word.string] = paths
    return paths


def _exists(session: Session, spelling: str, word: str) -> bool:
    node = session.find(spelling, word)
    return isinstance(node, Directory) if spelling.endswith("/") else node is not None


_COMMANDS: Final = {**COMMANDS, "curl": curl}
