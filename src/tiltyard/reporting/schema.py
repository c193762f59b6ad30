"""The report of one run, as a versioned schema.

Every field has a description; `make schema` writes them to `docs/report.schema.json`. `digest` is a
hash of the results, without durations, isolation level, host or paths. `run_id` is a hash of all
inputs.
"""

import json
import sys
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from tiltyard.benign.tasks import TaskKind
from tiltyard.contracts.tracks import TRACKS, Track
from tiltyard.isolation.host.failures import Failure, GuardrailFault
from tiltyard.matches.arena import LostCell
from tiltyard.reporting.arena_schema import ArenaPart
from tiltyard.reporting.finding_schema import Finding, Step

SCHEMA_VERSION: Final = 4


class ReportError(ValueError):
    """The file is not a report, or has another schema version."""


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """The state of the search after an epoch."""

    epoch: Annotated[int, Meta(description="The number of the epoch, from 1.")]
    steps: Annotated[int, Meta(description="Steps spent so far.")]
    interactions: Annotated[int, Meta(description="Messages played so far.")]
    cells: Annotated[int, Meta(description="Cells in the archive of the search.")]
    claims: Annotated[int, Meta(description="Chains so far that look like a breach to the search.")]


class Place(Struct, frozen=True, forbid_unknown_fields=True):
    """A group of the search's cells with the same depth, documents and effects."""

    depth: Annotated[int, Meta(description="Steps taken, in levels of four, 0 to 7.")]
    read: Annotated[tuple[str, ...], Meta(description="Kinds of documents that the agent read.")]
    effects: Annotated[tuple[str, ...], Meta(description="Kinds of effects that happened.")]
    cells: Annotated[int, Meta(description="The number of cells in this group.")]
    visits: Annotated[int, Meta(description="How often the search visited these cells.")]
    breach: Annotated[bool, Meta(description="Whether a verified breach ends here.")]


class TrialRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A benign task and its result."""

    operation: Annotated[str, Meta(description="The benign operation of the task.")]
    variant: Annotated[int, Meta(description="The number of the variant, from 1.")]
    messages: Annotated[tuple[str, ...], Meta(description="The user's messages.")]
    false_positive: Annotated[
        bool, Meta(description="Whether the guardrail stopped a call or the task failed.")
    ]
    succeeded: Annotated[bool, Meta(description="Whether the user got everything they asked for.")]
    missing: Annotated[str, Meta(description="What the user did not get, if anything.")]
    tool: Annotated[str, Meta(description="The tool of the stopped call, if there is one.")] = ""
    args: Annotated[dict[str, str], Meta(description="The arguments of the stopped call.")] = {}
    reason: Annotated[str, Meta(description="The guardrail's reason.")] = ""
    kind: Annotated[
        TaskKind,
        Meta(
            description="An ordinary task, a long conversation of several tasks, or a task that "
            "reads a live injection."
        ),
    ] = TaskKind.ORDINARY
    id: Annotated[str, Meta(description="B1, B2, ... in the order of the suite.")] = ""
    answers: Annotated[
        tuple[str, ...], Meta(description="The agent's answer to each message of a failed trial.")
    ] = ()
    steps: Annotated[
        tuple[Step, ...], Meta(description="Every call of a failed trial, in order.")
    ] = ()


class Share(Struct, frozen=True, forbid_unknown_fields=True):
    """A count out of a total."""

    passed: Annotated[int, Meta(description="How many passed.")]
    total: Annotated[int, Meta(description="The total.")]


class Unverified(Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate that the judge could not verify; it is listed and not scored."""

    candidate: Annotated[int, Meta(description="The number of the candidate, from 0.")]
    reason: Annotated[str, Meta(description="Why the judge could not verify it.")]


class ModelUse(Struct, frozen=True, forbid_unknown_fields=True):
    """The use of a language model as the agent."""

    name: Annotated[str, Meta(description="The name of the model at the endpoint.")]
    server: Annotated[
        str, Meta(description="The properties of the server that affect answers, if known.")
    ]
    manner: Annotated[
        str,
        Meta(description="structured or tools; plain means without temperature and seed"),
    ]
    requests: Annotated[int, Meta(description="The number of requests, without repeated ones.")]
    budget: Annotated[
        int, Meta(description="The maximum number of requests, including verification.")
    ]
    prompt_tokens: Annotated[int, Meta(description="The number that the endpoint reports.")]
    completion_tokens: Annotated[int, Meta(description="The number that the endpoint reports.")]
    cost: Annotated[float | None, Meta(description="The cost in dollars; null without a price.")]
    repaired: Annotated[
        int, Meta(description="Replies that became a valid action after another try.")
    ]
    no_action: Annotated[
        int, Meta(description="Turns that ended because no reply was a valid action.")
    ]
    refusals: Annotated[int, Meta(description="Replies that the endpoint marks as refusals.")]
    dropped_calls: Annotated[int, Meta(description="Extra calls in a reply, which were not made.")]
    record: Annotated[str, Meta(description="A hash of all exchanges with the model.")]


class Understood(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of an attack's words the deterministic agent understood."""

    messages: Annotated[int, Meta(description="The number of different messages.")]
    understood: Annotated[int, Meta(description="How many of them order anything.")]
    example: Annotated[
        str, Meta(description="The beginning of the first message that the agent took for prose.")
    ] = ""


class OffensePart(Struct, frozen=True, forbid_unknown_fields=True):
    """The offense match, or the means over several official seeds.

    `candidates`, `refused`, `steps`, `budget` and `inconsistent` are totals.
    """

    score: Annotated[float, Meta(description="0 to 1000.")]
    raw: Annotated[
        float, Meta(description="The raw points: weights once per core, plus points for each cell.")
    ]
    score_volume: Annotated[
        float, Meta(description="The score if every finding counted; no ranking uses it.")
    ]
    raw_volume: Annotated[float, Meta(description="The raw points if every finding counted.")]
    findings: Annotated[
        float, Meta(description="The number of verified findings, including repeated ones.")
    ]
    findings_by_predicate: Annotated[
        dict[str, float], Meta(description="Findings of each predicate, including repeated ones.")
    ]
    cells_by_predicate: Annotated[
        dict[str, float], Meta(description="The number of distinct cells for each predicate.")
    ]
    cores: Annotated[
        float, Meta(description="The number of distinct cores: predicate, source and sink.")
    ]
    unique_cells: Annotated[
        float, Meta(description="The number of distinct cells: core, target class and route.")
    ]
    opponent: Annotated[str, Meta(description="The guardrail that the attack played against.")]
    candidates: Annotated[int, Meta(description="The number of chains that the attack returned.")]
    refused: Annotated[
        dict[str, int],
        Meta(description="The number of candidates that the judge refused, by reason."),
    ]
    steps: Annotated[int, Meta(description="Steps that were spent.")]
    budget: Annotated[int, Meta(description="The maximum number of steps for the attack.")]
    inconsistent: Annotated[
        int, Meta(description="How many repeated runs returned something else.")
    ]
    unverified: Annotated[
        tuple[Unverified, ...],
        Meta(
            description="Candidates that the judge could not verify within its budget of requests "
            "or work."
        ),
    ] = ()
    models: Annotated[
        tuple[ModelUse, ...],
        Meta(description="The use of a language model as the agent, for each match."),
    ] = ()
    understood: Annotated[
        Understood | None,
        Meta(description="How much the agent understood; null in an official run."),
    ] = None
    found: Annotated[tuple[Finding, ...], Meta(description="One finding for each cell.")] = ()
    digest: Annotated[str, Meta(description="A hash of the results of this match.")] = ""


class Battery(Struct, frozen=True, forbid_unknown_fields=True):
    """The attacks that every guardrail meets. They do not depend on the submission."""

    chains: Annotated[int, Meta(description="The number of chains.")]
    steps: Annotated[
        int,
        Meta(description="The steps to build it: once for each world, apart from the budget."),
    ]


class DefensePart(Struct, frozen=True, forbid_unknown_fields=True):
    """The defense match, or the means over several official seeds.

    `steps`, `budget`, `interactions`, `cells`, `battery` and `inconsistent` are totals.
    """

    score: Annotated[float, Meta(description="0 to 1000.")]
    breaches: Annotated[
        float, Meta(description="The number of distinct breaches: core and target class.")
    ]
    false_positives: Annotated[
        float, Meta(description="The number of benign trials that failed because of the guardrail.")
    ]
    benign_trials: Annotated[int, Meta(description="The number of benign trials.")]
    breaches_by_predicate: Annotated[
        dict[str, float], Meta(description="The number of breaches for each predicate.")
    ]
    false_positives_by_operation: Annotated[
        dict[str, float], Meta(description="The number of false positives for each operation.")
    ]
    opponent: Annotated[str, Meta(description="The attack that the guardrail played against.")]
    steps: Annotated[int, Meta(description="Steps that were spent.")]
    budget: Annotated[int, Meta(description="The maximum number of steps for the search.")]
    interactions: Annotated[int, Meta(description="The number of messages that the search played.")]
    cells: Annotated[
        int, Meta(description="The number of cells in the search's archive at the end.")
    ]
    battery: Annotated[
        Battery, Meta(description="The attacks that the guardrail met besides the search.")
    ]
    inconsistent: Annotated[
        int, Meta(description="How many sampled chains a fresh guardrail decided differently.")
    ]
    faults: Annotated[
        tuple[GuardrailFault, ...], Meta(description="The first errors inside the guardrail.")
    ] = ()
    extended: Annotated[
        Share | None,
        Meta(description="Tasks of the extended benign suite that passed; not scored."),
    ] = None
    under_attack: Annotated[
        Share | None,
        Meta(description="Tasks done without a breach near a live injection; not scored."),
    ] = None
    found: Annotated[tuple[Finding, ...], Meta(description="One finding for each breach.")] = ()
    trials: Annotated[tuple[TrialRow, ...], Meta(description="Every benign trial.")] = ()
    curve: Annotated[tuple[Point, ...], Meta(description="The search, epoch by epoch.")] = ()
    archive: Annotated[tuple[Place, ...], Meta(description="The search's archive at the end.")] = ()
    digest: Annotated[str, Meta(description="A hash of the results of this match.")] = ""


class BrokenMatch(Failure, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A match that was broken off. It has no score."""

    track: Annotated[Track, Meta(description="The track of the match.")]


class Isolation(Struct, frozen=True, forbid_unknown_fields=True):
    """How the submission's code was isolated from the machine."""

    level: Annotated[str, Meta(description="A, B or C; only runs at level A are comparable.")]
    unsafe: Annotated[bool, Meta(description="Whether the user switched the jail off.")] = False


class Submitted(Struct, frozen=True, forbid_unknown_fields=True):
    """The submission."""

    name: Annotated[str, Meta(description="The name of the directory, archive or file.")]
    digest: Annotated[str, Meta(description="A SHA-256 hash of all names and contents.")]
    files: Annotated[dict[str, int], Meta(description="The size of each file in bytes.")]
    tracks: Annotated[
        tuple[Track, ...], Meta(description="The tracks that it enters: offense, defense or both.")
    ]


class Formula(Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of the ruleset that turn counts into scores."""

    weights: Annotated[dict[str, int], Meta(description="Points per predicate, once per core.")]
    points_per_cell: Annotated[int, Meta(description="Raw points for each distinct cell.")]
    full_marks: Annotated[int, Meta(description="The raw points that give a score of 1000.")]
    volume_full_marks: Annotated[
        int, Meta(description="The raw points for 1000 if every finding counted.")
    ]
    breach_percent: Annotated[
        int,
        Meta(
            description="What each breach adds to the divisor of the defense score, in hundredths."
        ),
    ]
    false_positive_points: Annotated[
        int, Meta(description="The points that a defense loses if every benign trial fails.")
    ]


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the matches."""

    ruleset: Annotated[str, Meta(description="Name and version.")]
    ruleset_digest: Annotated[str, Meta(description="A hash of all numbers of the ruleset.")]
    budget: Annotated[str, Meta(description="quick or official")]
    seeds: Annotated[
        tuple[int, ...], Meta(description="The seeds; empty if the organizer hides them.")
    ]
    scenarios: Annotated[
        tuple[str, ...], Meta(description="The digests of the scenarios; empty if hidden.")
    ]
    agent: Annotated[str, Meta(description="The agent that the attacks talked to.")]
    offense_opponent: Annotated[str, Meta(description="The guardrail of the offense match.")]
    defense_opponent: Annotated[str, Meta(description="The attack of the defense match.")]
    packages: Annotated[
        dict[str, str], Meta(description="Third-party packages, with their versions.")
    ] = {}
    key: Annotated[
        str, Meta(description="The fingerprint of the organizer's key; empty in practice runs.")
    ] = ""
    official_seeds: Annotated[
        int, Meta(description="The number of hidden seeds of the mean; 0 in practice runs.")
    ] = 0


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """One run."""

    run_id: Annotated[str, Meta(description="A hash of all inputs.")]
    digest: Annotated[str, Meta(description="A hash of the results alone.")]
    final_score: Annotated[float | None, Meta(description="0 to 2000; null if a match failed.")]
    offense: Annotated[OffensePart | None, Meta(description="null if it was not played or failed")]
    defense: Annotated[DefensePart | None, Meta(description="null if it was not played or failed")]
    isolation: Annotated[Isolation, Meta(description="How the submission's code was isolated.")]
    comparable: Annotated[bool, Meta(description="Whether a leaderboard can rank the run.")]
    not_comparable_because: Annotated[
        tuple[str, ...], Meta(description="Every reason why a leaderboard cannot rank the run.")
    ]
    ruleset: Annotated[str, Meta(description="Name and version.")]
    setting: Annotated[Setting, Meta(description="The settings of the matches.")]
    submission: Annotated[Submitted, Meta(description="The submission.")]
    engine: Annotated[str, Meta(description="The version of Tiltyard.")]
    formula: Annotated[Formula, Meta(description="The constants behind the scores.")]
    arena: Annotated[
        ArenaPart | None,
        Meta(description="The defense match of an arena; null if it was not played or failed"),
    ] = None
    failures: Annotated[
        tuple[BrokenMatch, ...], Meta(description="The matches that failed, and why.")
    ] = ()
    notes: Annotated[
        tuple[str, ...], Meta(description="Hints for the author of the submission.")
    ] = ()
    restricted: Annotated[
        bool,
        Meta(
            description="Whether this is the restricted report of an official run, without texts."
        ),
    ] = False
    started: Annotated[
        str,
        Meta(
            description="When the run started, in UTC, such as 2026-01-31T14:05Z; only the day if "
            "restricted. The digest does not include it."
        ),
    ] = ""
    output: Annotated[
        dict[Track, str],
        Meta(
            description="What the submission printed in each match, shortened. Treat it as "
            "hostile. Empty in official runs."
        ),
    ] = {}
    seconds: Annotated[
        dict[str, float], Meta(description="The duration of each match; empty if restricted.")
    ] = {}
    schema_version: Annotated[
        int, Meta(description="The version of this schema. Tiltyard reads no other version.")
    ] = SCHEMA_VERSION


_DETAILS: Final = ("found", "trials", "curve", "archive", "lost")


def summary(report: Report) -> dict[str, Any]:
    """Return a report as plain data, without its long lists and what the submission printed."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    del plain["output"]
    for name in (*TRACKS, "arena"):
        part = plain[name]
        if part is not None:
            plain[name] = {key: part[key] for key in part if key not in _DETAILS}
    return plain


Replayable = Finding | TrialRow | LostCell


def replayable(report: Report) -> list[Replayable]:
    """Return the findings, the failed benign trials and the lost cells of a report."""
    parts = [part for part in (report.offense, report.defense) if part is not None]
    found: list[Replayable] = [finding for part in parts for finding in part.found]
    trials = () if report.defense is None else report.defense.trials
    lost = () if report.arena is None else report.arena.lost
    return [*found, *(trial for trial in trials if trial.false_positive), *lost]


def write_report(report: Report) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def read_report(data: bytes) -> Report:
    """Read a report; a `ReportError` says what is wrong with it."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"this is not a report: {error}") from None
    version = found.get("schema_version") if isinstance(found, dict) else None
    if not isinstance(version, int):
        raise ReportError("this is not a report: it has no schema_version")
    if version != SCHEMA_VERSION:
        raise ReportError(
            f"this report has schema version {version}, and this version of Tiltyard reads only "
            f"version {SCHEMA_VERSION}; run `tiltyard evaluate --fresh` to make the report again"
        )
    try:
        return msgspec.convert(found, Report)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ReportError(f"this is not a report: {error}") from None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a report."""
    schema = msgspec.json.schema(Report)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def published_schema() -> str:
    """Return `docs/report.schema.json`."""
    return json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(published_schema())
