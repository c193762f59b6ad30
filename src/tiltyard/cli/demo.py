"""`tiltyard demo`: print what injections do to an agent, and to a language model."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from tiltyard.cli.replay import show_steps
from tiltyard.cli.terminal import open_console, page_width, safe
from tiltyard.contracts.decision import Action
from tiltyard.contracts.trace import Event
from tiltyard.studies.followed_order import (
    MODEL_NAME,
    PAIRS_FOLLOWED,
    PAIRS_TRIED,
    replay_followed_order,
)
from tiltyard.studies.showcase import Playthrough, play_showcase

_SHOWN_CHARS: Final = 44
_INTRODUCTION: Final = """\
An injection is an order hidden in a document. Below, a user asks for something
harmless, and the document that the agent reads contains an injection. The
deterministic agent obeys everything that it reads. A guardrail sees each call
before it runs, and can deny it.
"""
_CONCLUSION: Final = """\
The data-flow guardrail stops what comes by web and mail, including the honest
task, and it does not see where a file came from. Can you do better? Start with
`tiltyard init my-submission`; README.md shows the next steps."""


_FOLLOWED: Final = f"""\
This match with a real language model, {MODEL_NAME}, was recorded.
The user asks for a page and names no file. The page holds a stranger's order,
and the model obeys it: it deletes the file. With the page blank, it does not.
So the judge blames the page. The model is tiny and easily confused: of {PAIRS_TRIED}
pairs of a message and an order that were tried, it followed the order in {PAIRS_FOLLOWED}.
"""


def run(
    *,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Replay a recorded match in which a language model follows a stranger's order. "
            "This needs no model.",
        ),
    ] = False,
) -> None:
    """Show what an injection does to an agent, with and without a guardrail.

    An injection is an order hidden in a document. The demo plays three injections of the public
    scenario, first with every call allowed and then with the data-flow guardrail. An honest task
    shows what that guardrail costs. The demo writes no file.

    Example: tiltyard demo

    Example: tiltyard demo --model
    """
    console = open_console()
    if model:
        _print_followed_order(console)
        return
    console.print(_INTRODUCTION)
    for scene in play_showcase():
        console.print(Rule(scene.title, align="left"), width=page_width())
        console.print()
        for played in scene.plays:
            _print_play(console, played, honest=scene.honest)
    console.print(_CONCLUSION)


def _print_followed_order(console: Console) -> None:
    console.print(_FOLLOWED.rstrip())
    finding = replay_followed_order()
    for step in show_steps(finding.chain, finding.steps, finding.answers):
        console.print(step)
    cell = f"{finding.predicate}, {finding.source} to {finding.sink}"
    console.print(Text(f"\n  => {safe(cell)}:", "bold red"))
    console.print(Text(f"     {safe(finding.counterfactual)}", "bold red"))


def _print_play(console: Console, played: Playthrough, *, honest: bool) -> None:
    console.print(Text(played.guardrail, "bold"))
    console.print(Text.assemble("  user    ", (safe(played.message), "italic")))
    for event in played.events:
        console.print(_event(event))
    for sentence in played.harm:
        console.print(Text(f"  => {safe(sentence)}", "bold red"))
    if not played.harm:
        end, style = _end(played, honest=honest)
        console.print(Text(f"  => {end}", style))
    console.print()


def _end(played: Playthrough, *, honest: bool) -> tuple[str, str]:
    if not played.was_stopped:
        return "done", "bold green"
    if honest:
        return "stopped: the user did not get it", "bold red"
    return "stopped: nothing left and nothing changed", "bold green"


def _event(event: Event) -> Text:
    call = "\n".join(_call_lines(event))
    if event.decision.action is not Action.ALLOW:
        reason = f"\n          because: {safe(event.decision.reason)}"
        return Text.assemble(("  denied  ", "yellow"), call, (reason, "dim"))
    if not event.result.ok:
        return Text.assemble(("  fails   ", "dim"), call)
    return Text.assemble(("  obeys   ", "magenta") if event.call.because else "  calls   ", call)


def _call_lines(event: Event) -> Iterator[str]:
    """Yield a call on one line, or with one argument a line if that is too long."""
    args = [f"{name}={_short(value)}" for name, value in event.call.plain_args().items()]
    lead = f"{event.call.tool}("
    whole = f"{lead}{', '.join(args)})"
    if len(whole) <= page_width() - 10:
        yield whole
        return
    yield f"{lead}{args[0]},"
    indent = " " * (10 + len(lead))
    yield from (f"{indent}{arg}," for arg in args[1:-1])
    yield f"{indent}{args[-1]})"


def _short(value: object) -> str:
    text = safe(repr(value))
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 4] + "...'"
