"""Arguments and options that several commands share, with their help.

Options of a single command are in the module of the command, such as `evaluate.py`.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from tiltyard.arena.check import check_sealed
from tiltyard.contracts.tracks import PART_OF, PARTS, TRACKS, Track
from tiltyard.matches.opponents import BASELINE, ladder
from tiltyard.packs.load import PackError
from tiltyard.packs.sealed import Sealed, read_sealed
from tiltyard.reporting.schema import ReportError, replayable
from tiltyard.runs.job import Worlds
from tiltyard.runs.key import read_key
from tiltyard.runs.store import REPORT, Store, StoreError, find_report, load_report
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


def complete_opponent(incomplete: str) -> list[tuple[str, str]]:
    """Return the shipped attacks and guardrails whose names begin so, without spaces."""
    rungs = [(BASELINE, "attack"), *((rung.name, part) for part in PARTS for rung in ladder(part))]
    names = [(name.lower().replace(" ", "-"), part) for name, part in rungs]
    return [(name, part) for name, part in names if name.startswith(incomplete.lower())]


def complete_finding(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of findings and failed trials in the run of `--run`, or in the newest run."""
    store = Store(ctx.params.get("store") or DEFAULT_STORE)
    wanted = ctx.params.get("run_wanted")
    try:
        path = find_report(wanted, store) if wanted else store.newest(1)[0]
        report = load_report(path)
    except (OSError, StoreError, ReportError):
        return []
    # A shell offers only what begins with the typed letters, in their case.
    ids = [one.id.lower() if incomplete.islower() else one.id for one in replayable(report)]
    return [name for name in ids if name.startswith(incomplete)]


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
SealedOption = Annotated[
    Path | None,
    typer.Option(
        "--sealed",
        metavar="DIR",
        help="With --ruleset arena and --key: the organizer's tasks, as PACK/tasks.toml.",
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


def read_worlds(scenario: Path | None, key: Path | None, sealed: Path | None = None) -> Worlds:
    """Return the worlds that `--scenario`, `--key` and `--sealed` choose."""
    own = None if scenario is None else load_scenario(scenario)
    tasks = None if sealed is None else _read_tasks(sealed)
    return Worlds(own, None if key is None else read_key(key), tasks)


def _read_tasks(directory: Path) -> Sealed:
    """Read sealed tasks, and refuse those that do not work or that no guardrail can judge."""
    sealed = read_sealed(directory)
    for pack in sealed.packs.values():
        problems = check_sealed(pack, sealed.packs)
        if problems:
            raise PackError(
                f"{directory / pack.name}: {problems[0]}. `tiltyard pack check "
                f"{directory / pack.name}` names all problems."
            )
    return sealed
