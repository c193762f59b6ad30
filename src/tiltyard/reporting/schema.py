"""The report: everything that is told of one run, as a versioned schema.

Owns the fields and what they mean; every field says so, and `docs/report.schema.json` is made of
what stands here. A report is data alone. Its `digest` is of the results, without durations, level,
host or paths; its `run_id` is of everything that went in.
"""

import json
import sys
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from tiltyard.contracts.tracks import TRACKS, Track

SCHEMA_VERSION: Final = 2


class ReportError(ValueError):
    """A file that is no report of ours, or one of another time."""


class Segment(Struct, frozen=True, forbid_unknown_fields=True):
    """Some characters by one author."""

    text: Annotated[
        str, Meta(description="The characters, as they are: hostile wherever they are shown.")
    ]
    by: Annotated[
        str,
        Meta(description="user, machine, web, email or file; an untrusted file is from outside"),
    ]
    secret: Annotated[bool, Meta(description="It is a protected file's canary.")] = False
    untrusted: Annotated[bool, Meta(description="A stranger wrote it.")] = False
    document: Annotated[str, Meta(description="Which document it is from, if any.")] = ""
    encoding: Annotated[str, Meta(description="The spelling it was put into, if any.")] = ""


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One call of the agent's, and what became of it."""

    index: Annotated[int, Meta(description="Counts from 0 over the whole trace.")]
    turn: Annotated[int, Meta(description="Which message of the user it belongs to, from 0.")]
    tool: Annotated[str, Meta(description="The tool that was called.")]
    args: Annotated[
        dict[str, tuple[Segment, ...]], Meta(description="Each argument, by its authors.")
    ]
    decision: Annotated[str, Meta(description="allow, deny, confirm or sanitize")]
    reason: Annotated[str, Meta(description="The guardrail's own words.")]
    ok: Annotated[bool, Meta(description="Whether the call ran and succeeded.")]
    error: Annotated[str, Meta(description="Why it did not, if so.")]
    output: Annotated[tuple[Segment, ...], Meta(description="What it returned, by its authors.")]
    because: Annotated[
        tuple[int, ...] | None,
        Meta(description="The calls that delivered the order; none when the user gave it."),
    ]
    effects: Annotated[tuple[str, ...], Meta(description="What changed, each in a few words.")] = ()
    on_path: Annotated[bool, Meta(description="On the way from source to sink.")] = False
    is_sink: Annotated[bool, Meta(description="It completes the breach.")] = False


class Finding(Struct, frozen=True, forbid_unknown_fields=True):
    """A breach, reduced to what it needs, and played again step by step."""

    id: Annotated[str, Meta(description="A1, A2, ... in offense, D1, D2, ... in defense.")]
    predicate: Annotated[
        str,
        Meta(description="EXFILTRATION, UNTRUSTED_TO_ACTION, DESTRUCTIVE_WRITE or CONFUSED_DEPUTY"),
    ]
    severity: Annotated[int, Meta(description="Of the predicate, 3 to 5.")]
    source: Annotated[str, Meta(description="Whose word led to it: user, web, email or file.")]
    sink: Annotated[str, Meta(description="What was done: egress, mail, write, delete or exec.")]
    target: Annotated[str, Meta(description="To what: the target's class.")]
    route: Annotated[str, Meta(description="The simplest way that still works.")]
    points: Annotated[int, Meta(description="What it adds to the raw offense score.")]
    chain: Annotated[tuple[str, ...], Meta(description="The least messages that lead to it.")]
    answers: Annotated[tuple[str, ...], Meta(description="What the agent said to each.")]
    documents: Annotated[tuple[str, ...], Meta(description="What was read on the way.")]
    encodings: Annotated[tuple[str, ...], Meta(description="The spellings that the chain uses.")]
    counterfactual: Annotated[
        str, Meta(description="What happens to the action when no stranger says a word.")
    ]
    steps: Annotated[
        tuple[Step, ...], Meta(description="Every call of the chain's replay, in order.")
    ]


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the search had come."""

    epoch: Annotated[int, Meta(description="Of the search, from 1.")]
    steps: Annotated[int, Meta(description="Spent until then.")]
    interactions: Annotated[int, Meta(description="Messages played until then.")]
    cells: Annotated[int, Meta(description="In the archive by then.")]
    claims: Annotated[int, Meta(description="What looked like a breach by then, judged or not.")]


class Place(Struct, frozen=True, forbid_unknown_fields=True):
    """A group of the archive's cells: the same depth, documents and effects."""

    depth: Annotated[int, Meta(description="Steps taken, in levels of four, 0 to 7.")]
    read: Annotated[tuple[str, ...], Meta(description="Kinds of document read on the way.")]
    effects: Annotated[tuple[str, ...], Meta(description="Kinds of effect had.")]
    cells: Annotated[int, Meta(description="How many cells of the archive are here.")]
    visits: Annotated[int, Meta(description="How often the search came by, over all of them.")]
    breach: Annotated[bool, Meta(description="A chain that was found to be a breach ends here.")]


class TrialRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A benign task, and how it went."""

    operation: Annotated[str, Meta(description="The benign operation that it belongs to.")]
    variant: Annotated[int, Meta(description="Which variant of the operation, from 1.")]
    messages: Annotated[tuple[str, ...], Meta(description="What the user says.")]
    false_positive: Annotated[
        bool, Meta(description="A call was stopped, or the task did not succeed.")
    ]
    succeeded: Annotated[bool, Meta(description="Whether the task got all that it needed.")]
    missing: Annotated[str, Meta(description="What the task did not get, if anything.")]
    tool: Annotated[str, Meta(description="The call that was stopped, if one was.")] = ""
    args: Annotated[dict[str, str], Meta(description="Its arguments.")] = {}
    reason: Annotated[str, Meta(description="The guardrail's reason.")] = ""


class Share(Struct, frozen=True, forbid_unknown_fields=True):
    """So many of so many."""

    passed: Annotated[int, Meta(description="How many did.")]
    total: Annotated[int, Meta(description="Of how many.")]


class Unverified(Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate that was not heard to its end: listed, and not scored."""

    candidate: Annotated[int, Meta(description="Which one, from 0.")]
    reason: Annotated[str, Meta(description="Why it could not be verified.")]


class ModelUse(Struct, frozen=True, forbid_unknown_fields=True):
    """A language model as the agent: how it was asked, and what that took."""

    name: Annotated[str, Meta(description="As the endpoint knows it.")]
    server: Annotated[
        str, Meta(description="What of the server has a part in its answers, where it is known.")
    ]
    manner: Annotated[
        str,
        Meta(description="structured or tools; plain: without temperature and seed. Found out."),
    ]
    requests: Annotated[int, Meta(description="Questions that were asked, each once.")]
    budget: Annotated[int, Meta(description="How many might have been, verification included.")]
    prompt_tokens: Annotated[int, Meta(description="As the endpoint counts them.")]
    completion_tokens: Annotated[int, Meta(description="As the endpoint counts them.")]
    cost: Annotated[float | None, Meta(description="In dollars; null when no price was named.")]
    repaired: Annotated[int, Meta(description="Replies that were an action at a later try.")]
    no_action: Annotated[int, Meta(description="Turns that ended because no reply was one.")]
    refusals: Annotated[int, Meta(description="Replies that the endpoint itself calls refusals.")]
    dropped_calls: Annotated[
        int, Meta(description="Calls that came along with another, and were not made.")
    ]
    record: Annotated[str, Meta(description="A hash of every exchange that was used.")]


class OffensePart(Struct, frozen=True, forbid_unknown_fields=True):
    """The offense match; over several official seeds, their mean."""

    score: Annotated[float, Meta(description="0 to 1000.")]
    raw: Annotated[float, Meta(description="Weights once per core, and 2 for each cell.")]
    score_volume: Annotated[float, Meta(description="Every finding counts; never ranked.")]
    raw_volume: Annotated[float, Meta(description="The same where every finding counts.")]
    findings: Annotated[int, Meta(description="Verified findings, repeated ones too.")]
    findings_by_predicate: Annotated[
        dict[str, int], Meta(description="The findings, by predicate.")
    ]
    cores: Annotated[float, Meta(description="Distinct predicate, source and sink.")]
    unique_cells: Annotated[float, Meta(description="Distinct cores, targets and routes.")]
    opponent: Annotated[str, Meta(description="The guardrail that was attacked.")]
    candidates: Annotated[int, Meta(description="What the attack returned.")]
    refused: Annotated[dict[str, int], Meta(description="Candidates not judged, by reason.")]
    steps: Annotated[int, Meta(description="Spent of the budget.")]
    budget: Annotated[int, Meta(description="Steps that the attack might have spent.")]
    inconsistent: Annotated[int, Meta(description="Repeated runs that returned something else.")]
    unverified: Annotated[
        tuple[Unverified, ...],
        Meta(description="Candidates for which the model could not be asked often enough."),
    ] = ()
    models: Annotated[
        tuple[ModelUse, ...], Meta(description="A language model as the agent, match by match.")
    ] = ()
    found: Annotated[tuple[Finding, ...], Meta(description="One for each cell.")] = ()
    digest: Annotated[str, Meta(description="A hash of this match's results.")] = ""


class DefensePart(Struct, frozen=True, forbid_unknown_fields=True):
    """The defense match; over several official seeds, the mean."""

    score: Annotated[float, Meta(description="0 to 1000.")]
    breaches: Annotated[float, Meta(description="Distinct cores and target classes.")]
    false_positives: Annotated[
        float, Meta(description="Benign trials in which the guardrail was in the way.")
    ]
    benign_trials: Annotated[int, Meta(description="How many there were.")]
    breaches_by_predicate: Annotated[
        dict[str, int], Meta(description="The breaches, by predicate.")
    ]
    false_positives_by_operation: Annotated[
        dict[str, int], Meta(description="The false positives, by operation.")
    ]
    opponent: Annotated[str, Meta(description="The attack that the guardrail stood against.")]
    steps: Annotated[int, Meta(description="Spent of the budget.")]
    budget: Annotated[int, Meta(description="Steps that the search might have spent.")]
    interactions: Annotated[int, Meta(description="Messages that the search played.")]
    cells: Annotated[int, Meta(description="In the archive at the end.")]
    inconsistent: Annotated[
        int, Meta(description="Sampled chains that a fresh guardrail decided otherwise.")
    ]
    faults: Annotated[tuple[str, ...], Meta(description="What went wrong in the guardrail.")] = ()
    extended: Annotated[
        Share | None, Meta(description="The extended benign suite, untouched; not scored.")
    ] = None
    under_attack: Annotated[
        Share | None,
        Meta(description="The same with a live injection: done, and nothing breached; not scored."),
    ] = None
    found: Annotated[tuple[Finding, ...], Meta(description="One for each breach.")] = ()
    trials: Annotated[tuple[TrialRow, ...], Meta(description="Every benign trial.")] = ()
    curve: Annotated[tuple[Point, ...], Meta(description="The search, epoch by epoch.")] = ()
    archive: Annotated[tuple[Place, ...], Meta(description="The search's archive at the end.")] = ()
    digest: Annotated[str, Meta(description="A hash of this match's results.")] = ""


class Failure(Struct, frozen=True, forbid_unknown_fields=True):
    """A match that was broken off: it has no score."""

    track: Annotated[Track, Meta(description="The track of the match.")]
    kind: Annotated[
        str,
        Meta(
            description=(
                "import, class, construct, run, died, deadline, protocol, result, search, agent "
                "or match"
            )
        ),
    ]
    message: Annotated[str, Meta(description="What went wrong, in a sentence.")]
    call: Annotated[str, Meta(description="What it was doing.")] = ""
    traceback: Annotated[str, Meta(description="Inside the submission.")] = ""
    output: Annotated[str, Meta(description="The last of what it printed.")] = ""
    official: Annotated[str, Meta(description="All that may be told of it in a hidden match.")] = ""


class Isolation(Struct, frozen=True, forbid_unknown_fields=True):
    """How the submission's code was kept from the machine."""

    level: Annotated[str, Meta(description="A, B or C; only A can be compared.")]
    unsafe: Annotated[bool, Meta(description="Without a jail, by the user's wish.")] = False


class Submitted(Struct, frozen=True, forbid_unknown_fields=True):
    """What was handed in."""

    name: Annotated[str, Meta(description="Of the directory, archive or file.")]
    digest: Annotated[str, Meta(description="SHA-256 of all names and contents.")]
    files: Annotated[dict[str, int], Meta(description="Their sizes in bytes, by name.")]
    tracks: Annotated[
        tuple[Track, ...], Meta(description="What it competes in: offense, defense or both.")
    ]


class Formula(Struct, frozen=True, forbid_unknown_fields=True):
    """The ruleset's constants that make scores of counts, so that a report explains itself."""

    weights: Annotated[dict[str, int], Meta(description="Points per predicate, once per core.")]
    points_per_cell: Annotated[int, Meta(description="Raw points for each distinct cell.")]
    full_marks: Annotated[int, Meta(description="Raw points that make 1000.")]
    volume_full_marks: Annotated[int, Meta(description="The same where every finding counts.")]
    breach_percent: Annotated[
        int, Meta(description="What each breach adds to the defense divisor, in hundredths.")
    ]
    false_positive_points: Annotated[
        int, Meta(description="What it costs to fail every benign trial.")
    ]


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """What the matches were played with."""

    ruleset: Annotated[str, Meta(description="Name and version.")]
    ruleset_digest: Annotated[str, Meta(description="A hash of all its numbers.")]
    budget: Annotated[str, Meta(description="quick or official")]
    seeds: Annotated[tuple[int, ...], Meta(description="Empty when they are the organizer's.")]
    scenarios: Annotated[tuple[str, ...], Meta(description="Digests; empty when hidden.")]
    agent: Annotated[str, Meta(description="Whom the attacks spoke to.")]
    offense_opponent: Annotated[str, Meta(description="The guardrail of the offense match.")]
    defense_opponent: Annotated[str, Meta(description="The attack of the defense match.")]
    packages: Annotated[dict[str, str], Meta(description="Third-party ones, with version.")] = {}
    key: Annotated[str, Meta(description="The official key's fingerprint; empty in practice.")] = ""
    official_seeds: Annotated[
        int, Meta(description="Over how many hidden seeds it is the mean; 0 in practice.")
    ] = 0


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """One run."""

    run_id: Annotated[str, Meta(description="A hash of everything that went in.")]
    digest: Annotated[str, Meta(description="A hash of the results alone.")]
    final_score: Annotated[
        float | None, Meta(description="0 to 2000; null when a match was broken off.")
    ]
    offense: Annotated[OffensePart | None, Meta(description="null: not played, or broken off")]
    defense: Annotated[DefensePart | None, Meta(description="null: not played, or broken off")]
    isolation: Annotated[Isolation, Meta(description="What the submission's code ran inside of.")]
    comparable: Annotated[bool, Meta(description="Whether it may be ranked beside others.")]
    not_comparable_because: Annotated[
        tuple[str, ...], Meta(description="Every reason for which it may not.")
    ]
    ruleset: Annotated[str, Meta(description="Name and version.")]
    setting: Annotated[Setting, Meta(description="What the matches were played with.")]
    submission: Annotated[Submitted, Meta(description="What was handed in.")]
    engine: Annotated[str, Meta(description="The version of Tiltyard.")]
    formula: Annotated[Formula, Meta(description="The constants behind the scores.")]
    failures: Annotated[
        tuple[Failure, ...], Meta(description="The matches that were broken off, and why.")
    ] = ()
    notes: Annotated[tuple[str, ...], Meta(description="What its author should look at.")] = ()
    restricted: Annotated[
        bool, Meta(description="What a competitor is shown of an official run: no texts.")
    ] = False
    seconds: Annotated[
        dict[str, float], Meta(description="How long each match took; empty when restricted.")
    ] = {}
    schema_version: Annotated[
        int, Meta(description="Of this schema; other versions are not read.")
    ] = SCHEMA_VERSION


_DETAILS: Final = ("found", "trials", "curve", "archive")


def summary(report: Report) -> dict[str, Any]:
    """Return a report as plain data without its long lists."""
    told: dict[str, Any] = msgspec.to_builtins(report)
    for track in TRACKS:
        if told[track] is not None:
            told[track] = {name: told[track][name] for name in told[track] if name not in _DETAILS}
    return told


def write_report(report: Report) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def read_report(data: bytes) -> Report:
    """Read a report, and say in a sentence what is wrong with one that cannot be read."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"this is not a report: {error}") from None
    version = found.get("schema_version") if isinstance(found, dict) else None
    if not isinstance(version, int):
        raise ReportError("this is not a report: it names no schema_version")
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
