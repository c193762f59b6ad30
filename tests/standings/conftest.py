"""Make reports with chosen scores, as an evaluation would write them."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from msgspec import structs

from tiltyard.reporting.builder import build_formula
from tiltyard.reporting.schema import (
    Battery,
    DefensePart,
    Isolation,
    OffensePart,
    Report,
    Setting,
    Submitted,
)
from tiltyard.rulesets.ruleset import load_ruleset

MakeReport = Callable[..., Report]


def _hash(*words: object) -> str:
    return sha256(repr(words).encode()).hexdigest()


@pytest.fixture(scope="session")
def make_report() -> MakeReport:
    """Return a function that makes a comparable report.

    It takes a name, (score, raw) for offense, and (score, breaches, false positives) for defense.
    """
    rules = load_ruleset()

    def make(  # noqa: PLR0913 - a report has that many sides
        name: str,
        offense: tuple[float, float] | None = None,
        defense: tuple[float, float, float] | None = None,
        *,
        key: str = "",
        engine: str = "0.1.0",
        content: str = "",
        **changes: Any,
    ) -> Report:
        scores = [part[0] for part in (offense, defense) if part is not None]
        submission = _hash("submission", content or name)
        report = Report(
            run_id=_hash(submission, key, engine, offense is None, defense is None)[:16],
            digest=_hash("results", offense, defense),
            final_score=sum(scores),
            offense=None if offense is None else _offense(*offense),
            defense=None if defense is None else _defense(*defense),
            isolation=Isolation("A"),
            comparable=True,
            not_comparable_because=(),
            ruleset=rules.id,
            setting=Setting(
                rules.id,
                rules.digest,
                "official",
                (123,),
                (),
                "deterministic",
                "data flow",
                "baseline",
                key=key,
            ),
            submission=Submitted(name, submission, {"attack.py": 1}, ("offense", "defense")),
            engine=engine,
            formula=build_formula(rules),
        )
        return structs.replace(report, **changes)

    return make


def _offense(score: float, raw: float) -> OffensePart:
    return OffensePart(score, raw, 0, 0, 1, {}, {}, 1, 1, "data flow", 1, {}, 1, 60_000, 0)


def _defense(score: float, breaches: float, failed: float) -> DefensePart:
    return DefensePart(
        score,
        breaches,
        failed,
        70,
        {},
        {},
        "baseline",
        60_000,
        60_000,
        40_000,
        900,
        Battery(107, 360_000),
        0,
    )
