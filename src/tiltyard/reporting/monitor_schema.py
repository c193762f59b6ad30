"""The state of a competition as data: spread of the scores, strategies, and advice."""

from typing import Final

from msgspec import Struct

from tiltyard.reporting.calibration_schema import Advice
from tiltyard.reporting.leaderboard_schema import Entry, League

UNCLASSIFIED: Final = "unclassified"
BINS: Final = 10

Range = tuple[float, float]


class Spread(Struct, frozen=True):
    """The distribution of one kind of score."""

    count: int
    lowest: float | None
    median: float | None
    p75: float | None
    p90: float | None
    highest: float | None
    mean: float | None
    bins: tuple[int, ...]
    """How many scores lie in each tenth of the range; the last one includes full marks."""


class StrategyResult(Struct, frozen=True):
    """The runs of one strategy, and what the design expects of it."""

    strategy: str
    count: int
    median: float | None
    """Of the final scores."""
    expected: Range | None
    """The expected final score; None for runs without a strategy."""
    top: int
    """How many of its runs are in the top quartile of the final score."""
    success: float | None
    """The share of its runs in the top quartile; None without runs."""
    expected_offense: Range | None = None
    expected_defense: Range | None = None


class ClassifiedRun(Struct, frozen=True):
    run: Entry
    strategy: str
    top: bool
    """Whether the run is in the top quartile of the final score."""


class Monitoring(Struct, frozen=True):
    """The state of one league."""

    league: League
    offense: Spread
    defense: Spread
    final: Spread
    correlation: float | None
    """Pearson's correlation of offense and defense scores."""
    correlated: int
    """How many runs played both matches."""
    strategies: tuple[StrategyResult, ...]
    advice: tuple[Advice, ...]
    runs: tuple[ClassifiedRun, ...]
