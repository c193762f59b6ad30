"""The terms of a judging: everything that its result depends on, besides the submission."""

from typing import Any

from msgspec import Struct, structs

from tiltyard import __version__
from tiltyard.rulesets.ruleset import Ruleset, read_ruleset
from tiltyard.runs.key import Key
from tiltyard.service.models import Competition, Judging, Rejudging
from tiltyard.service.models.judgings import Phase


class Terms(Struct, frozen=True):
    ruleset_digest: str
    budget: str
    key: str
    """The fingerprint of the key; empty for the public seed."""
    engine: str

    @property
    def fields(self) -> dict[str, Any]:
        """Return the terms as fields of a judging."""
        return structs.asdict(self)


def key_of(competition: Competition, phase: str) -> Key | None:
    secret = competition.final_key if phase == Phase.FINAL else competition.board_key
    return Key(secret) if secret else None


def terms_of(competition: Competition, phase: str) -> Terms:
    """Return the current terms of a phase."""
    key = key_of(competition, phase)
    return Terms(
        competition.ruleset_digest,
        competition.budget,
        "" if key is None else key.fingerprint,
        competition.engine,
    )


def terms_of_rejudging(rejudging: Rejudging) -> Terms:
    """Return the terms that a rejudging tries, with the key of the board."""
    key = key_of(rejudging.competition, Phase.BOARD)
    return Terms(
        rejudging.ruleset_digest,
        rejudging.budget,
        "" if key is None else key.fingerprint,
        rejudging.engine,
    )


def ruleset_text_of(judging: Judging) -> str:
    """Return the ruleset of a judging: the competition's, a rejudging's, or an earlier one."""
    competition = judging.competition
    if competition.ruleset_digest == judging.ruleset_digest:
        return competition.ruleset_text
    for one in Rejudging.objects.filter(competition=competition).order_by("-pk"):
        if one.ruleset_digest == judging.ruleset_digest:
            return one.ruleset_text
        if one.before.get("ruleset_digest") == judging.ruleset_digest:
            return str(one.before["ruleset_text"])
    return competition.ruleset_text


def set_ruleset(competition: Competition, text: str) -> Ruleset:
    """Give a competition a ruleset in TOML. `RulesetError` says what is wrong with it."""
    rules = read_ruleset(text, "the ruleset")
    competition.ruleset_text, competition.ruleset = text, rules.id
    competition.ruleset_digest, competition.engine = rules.digest, __version__
    return rules


def set_keys(competition: Competition, board: Key | None, final: Key | None) -> None:
    """Give a competition its two keys, with the commitments that everybody sees."""
    competition.board_key = "" if board is None else board.secret
    competition.final_key = "" if final is None else final.secret
    competition.board_commitment = "" if board is None else board.commitment
    competition.final_commitment = "" if final is None else final.commitment
