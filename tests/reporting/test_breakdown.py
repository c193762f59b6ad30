"""A breakdown uses the figures of the report, and its lines add up to the score."""

from msgspec import structs

from tiltyard.reporting.breakdown import defense_sum, final_sum, offense_sum
from tiltyard.reporting.numbers import number
from tiltyard.reporting.schema import Report


def test_the_offense_breakdown_lists_cores_by_predicate(real: Report) -> None:
    assert real.offense is not None
    shown = offense_sum(real.offense, real.formula, 0)
    cores = {(found.predicate, found.source, found.sink) for found in real.offense.found}
    exfiltrations = sum(predicate == "EXFILTRATION" for predicate, _, _ in cores)
    assert shown.lines[0] == ("exfiltration", f"{exfiltrations} core × 16", f"{16 * exfiltrations}")
    *parts, raw = (float(points) for _, _, points in shown.lines)
    assert sum(parts) == raw == real.offense.raw
    assert shown.result[2] == number(real.offense.score)


def test_without_findings_the_breakdown_has_one_line_for_all_cores(official: Report) -> None:
    assert official.offense is not None
    shown = offense_sum(official.offense, official.formula, 3)
    assert [what for what, _, _ in shown.lines] == [
        "weights, once per core",
        "distinct cells",
        "raw points",
    ]
    assert "can differ from the score of the mean counts" in shown.note


def test_the_defense_breakdown_follows_the_formula(real: Report) -> None:
    assert real.defense is not None
    part = structs.replace(
        real.defense, breaches=4, false_positives=7, benign_trials=35, score=465.0
    )
    shown = defense_sum(part, real.formula, 0)
    assert shown.formula == "max(0, 1000 / (1 + 0.15 × breaches) − 800 × false positives / trials)"
    assert shown.lines == (
        ("left after breaches", "1000 / (1 + 0.15 × 4)", "625"),
        ("false positives", "800 × 7 / 35", "−160"),
    )
    assert shown.result == ("defense score", "625 − 160", "465")


def test_the_final_score_is_the_sum_of_what_was_played(real: Report) -> None:
    alone = structs.replace(real, offense=None, final_score=12.5)
    assert final_sum(alone).lines[0] == ("offense score", "", "not played")
    assert final_sum(alone).result == ("final score", "", "12.5")


def test_numbers_have_at_most_two_decimals() -> None:
    assert [number(value) for value in (0, 1000, 428.5714, 0.1, 123_456.0, None)] == [
        "0",
        "1000",
        "428.57",
        "0.1",
        "123,456",
        "none",
    ]
