"""Arguments and options that several commands share, with their help.

Options of a single command are in the module of the command, such as `evaluate.py`.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from tiltyard.contracts.tracks import PART_OF, TRACKS, Track
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import read_key
from tiltyard.runs.store import REPORT
from tiltyard.world.fixtures import load_scenario

DEFAULT_STORE: Final = Path(".tiltyard")
_TRACK_OF_WORD: Final[dict[str, Track]] = {
    word: track for track, part in PART_OF.items() for word in (track, part)
}
"""A part of a submission, such as `attack`, is an alias of its track."""


class Budget(StrEnum):
    QUICK = "quick"
    OFFICIAL = "official"


def parse_track(word: str) -> Track:
    """Return the track that `word` names: offense or defense."""
    try:
        return _TRACK_OF_WORD[word.lower()]
    except KeyError:
        raise typer.BadParameter(
            f"unknown track {word!r}; expected offense or defense", param_hint="--track"
        ) from None


def complete_track() -> list[str]:
    return [*TRACKS]


def complete_run(incomplete: str) -> list[str]:
    """Return the ids of runs in the default store, for a shell's completion."""
    try:
        return sorted(
            path.parent.name
            for path in DEFAULT_STORE.glob(f"runs/*/{REPORT}")
            if path.parent.name.startswith(incomplete)
        )
    except OSError:
        return []


RUN_ARGUMENT: Final = typer.Argument(
    metavar="RUN",
    help="A run id or its first digits, a run's directory, or a report.json.",
    autocompletion=complete_run,
    show_default=False,
)
RunArgument = Annotated[str, RUN_ARGUMENT]
SubmissionArgument = Annotated[
    Path, typer.Argument(metavar="SUBMISSION", help="A directory, a .zip file or a .py file.")
]
BudgetOption = Annotated[
    Budget,
    typer.Option(
        help="How many steps a match has: a few for practice, or as many as in the competition."
    ),
]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="Play in the scenario generated from this seed.")
]
ScenarioOption = Annotated[
    Path | None,
    typer.Option(
        "--scenario", metavar="DIR", help="Play in the scenario of this fixtures directory."
    ),
]
RulesetOption = Annotated[
    str, typer.Option(metavar="NAME", help="A shipped ruleset's name, or a .toml file.")
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="An organizer's key. The match uses its official seeds."
    ),
]
StoreOption = Annotated[
    Path, typer.Option("--store", metavar="DIR", help="The directory that contains the runs.")
]
UnsafeOption = Annotated[
    bool,
    typer.Option(
        "--unsafe-no-sandbox",
        help="Run submissions without a sandbox. Only for code that you trust: it can do "
        "everything that you can do.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
MarkdownOption = Annotated[
    bool, typer.Option("--markdown", help="Print Markdown instead of tables.")
]


def read_worlds(scenario: Path | None, key: Path | None) -> Worlds:
    """Return the scenarios that `--scenario` and `--key` choose."""
    own = None if scenario is None else load_scenario(scenario)
    return Worlds(own, None if key is None else read_key(key))
