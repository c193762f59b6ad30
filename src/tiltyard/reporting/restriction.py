"""What a competitor may see of an official report: scores and counts, no texts, no times."""

from msgspec import structs

from tiltyard.reporting.schema import BrokenMatch, DefensePart, OffensePart, Report


def restricted(report: Report) -> Report:
    """Return the competitor's version of an official report."""
    return structs.replace(
        report,
        offense=_restrict_offense(report.offense),
        defense=_restrict_defense(report.defense),
        failures=tuple(map(_restrict_failure, report.failures)),
        notes=(),
        setting=structs.replace(report.setting, seeds=(), scenarios=()),
        seconds={},
        restricted=True,
    )


def _restrict_offense(part: OffensePart | None) -> OffensePart | None:
    if part is None:
        return None
    # The attack chooses how many steps it spends and how many candidates it returns, so these
    # numbers could carry a message about the hidden world.
    return structs.replace(
        part,
        found=(),
        refused={},
        candidates=0,
        steps=0,
        unverified=(),
        models=(),
        digest="",
    )


def _restrict_defense(part: DefensePart | None) -> DefensePart | None:
    if part is None:
        return None
    # The figures of the search describe the hidden world.
    return structs.replace(
        part,
        found=(),
        trials=(),
        curve=(),
        archive=(),
        faults=(),
        interactions=0,
        cells=0,
        digest="",
    )


def _restrict_failure(failure: BrokenMatch) -> BrokenMatch:
    """Keep only the kind and the official text."""
    text = failure.official
    return BrokenMatch(failure.kind, text, track=failure.track, official=text)
