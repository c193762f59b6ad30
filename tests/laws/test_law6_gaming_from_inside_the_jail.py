"""Law 6: submissions that game a match from inside their own process.

Each folder of `tests/gaming` with a `jail.json` is such a submission. The honest twin is the same
match with an honest submission.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from small_runs import small_rules
from tiltyard.guardrails import AllowAllGuardrail
from tiltyard.isolation.host.failures import FailureKind, GuestError
from tiltyard.isolation.host.guest_pool import GuestPool
from tiltyard.matches.defense import play_defense
from tiltyard.matches.offense import play_offense
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import load_ruleset
from tiltyard.submissions import Submission, open_submission
from tiltyard.world.generate import generate

SUITE: Final = Path(__file__).parents[1] / "gaming"
RULES: Final = load_ruleset()
SHORT: Final = small_rules(1_500)
REQUIRED: Final = {18, 19, 24, 26, 36, 53, 54}

HONEST: Final = """
from tiltyard import Decision

class Guardrail:
    def decide(self, tool_name, tool_args, context):
        if tool_name in ("email.send", "http.post", "fs.write", "fs.delete", "shell.run"):
            return Decision.deny("this looks dangerous")
        return Decision.allow()
"""

Open = Callable[[str], Submission]


@pytest.fixture
def opened() -> Iterator[Open]:
    with tempfile.TemporaryDirectory(prefix="tiltyard-test-") as name:
        root = Path(name)
        root.chmod(0o755)

        def take(what: str) -> Submission:
            source = root / f"source-{len(list(root.iterdir()))}"
            if what in {path.name for path in SUITE.iterdir()}:
                ignored = shutil.ignore_patterns("*.json")
                shutil.copytree(SUITE / what, source, ignore=ignored)
            else:
                source.mkdir()
                (source / "guardrail.py").write_text(what, encoding="utf-8")
            return open_submission(source, root / f"opened-{source.name}")

        yield take


def test_every_required_vector_has_a_folder() -> None:
    folders = {path.parent.name: json.loads(path.read_text()) for path in SUITE.glob("*/jail.json")}
    assert {int(name[:2]) for name in folders} >= REQUIRED
    assert all(case["vector"] and case["track"] for case in folders.values())


def test_a_forged_result_has_no_effect(opened: Open) -> None:
    """The submission patches its own process. The judge scores in another one."""
    with GuestPool(opened("18-forged-result"), "attack") as pool:
        match = play_offense(MatchSettings(generate(123), RULES), pool.attack())
    assert match.candidates == 1
    assert match.score.raw == 0
    assert match.score.score == 0


def test_no_state_survives_a_match(opened: Open) -> None:
    digests = set()
    for _ in range(2):
        with GuestPool(opened("19-state-between-matches"), "guardrail") as pool:
            match = play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
        digests.add(match.digest)
        assert match.score.false_positives == 0
    assert len(digests) == 1
    places = (tempfile.gettempdir(), "/dev/shm")  # noqa: S108 - only read
    assert not any(Path(place, "tiltyard-count").exists() for place in places)


def test_a_guardrail_that_counts_episodes_is_inconsistent(opened: Open) -> None:
    with GuestPool(opened("24-phases-told-apart"), "guardrail") as pool:
        match = play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
    assert match.inconsistent > 0
    with GuestPool(opened(HONEST), "guardrail") as pool:
        assert play_defense(MatchSettings(generate(123), SHORT), pool.guardrail).inconsistent == 0


@pytest.mark.parametrize("name", ["53-reason-with-a-checksum", "54-twenty-fifth-call"])
def test_hiding_from_the_search_gains_nothing(opened: Open, name: str) -> None:
    settings = MatchSettings(generate(123), SHORT)
    with GuestPool(opened(name), "guardrail") as pool:
        hiding = play_defense(settings, pool.guardrail)
    honest = play_defense(settings, AllowAllGuardrail)
    assert hiding.score.score <= honest.score.score + 30
    assert hiding.inconsistent > 0
    assert honest.inconsistent == 0


def test_raising_scores_the_same_as_denying(opened: Open) -> None:
    with GuestPool(opened("26-raising-on-danger"), "guardrail") as pool:
        raising = play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
    with GuestPool(opened(HONEST), "guardrail") as pool:
        denying = play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
    assert raising.score == denying.score
    assert raising.score.false_positives == raising.score.benign_trials


def test_a_practice_failure_shows_what_the_guest_says(opened: Open) -> None:
    with (
        GuestPool(opened("36-telling-exceptions"), "attack") as pool,
        pytest.raises(GuestError) as caught,
    ):
        play_offense(MatchSettings(generate(123), RULES), pool.attack())
    failure = caught.value.failure
    readme = generate(123).files["readme.txt"]
    word = max(readme.split(), key=len)
    # A practice report shows everything.
    assert word in failure.output
    assert failure.exception.startswith("Saw_")


def test_a_failure_report_names_the_line(opened: Open) -> None:
    source = "class Guardrail:\n    def __init__(self):\n        [][1]\n    def decide(self): ...\n"
    with GuestPool(opened(source), "guardrail") as pool, pytest.raises(GuestError) as caught:
        play_defense(MatchSettings(generate(123), SHORT), pool.guardrail)
    failure = caught.value.failure
    assert (failure.kind, failure.exception) == (FailureKind.CONSTRUCT, "IndexError")
    assert (failure.file, failure.line) == ("guardrail.py", 3)
