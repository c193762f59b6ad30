"""The baseline attack of a defense match: Go-Explore with the ruleset's vocabulary."""

from collections.abc import Sequence

from msgspec.structs import replace

from tiltyard.contracts.guardrail import Guardrail
from tiltyard.episode.guardrail_runner import failure_of
from tiltyard.episode.kept_state import StateError
from tiltyard.foundation.draw import Draw
from tiltyard.foundation.log import Log
from tiltyard.matches.settings import MatchError, MatchSettings
from tiltyard.matches.vocabulary import speak
from tiltyard.rulesets.ruleset import SearchRules
from tiltyard.search import Exploration, Played, Player, Workers, explore
from tiltyard.search.moves import Move
from tiltyard.search.player import Players
from tiltyard.search.status import OnStatus, ignore_status
from tiltyard.search.workers import WorkerError


def run_baseline(
    settings: MatchSettings,
    guardrail: Guardrail,
    *,
    on_status: OnStatus = ignore_status,
    log: Log[list[Played]] | None = None,
) -> Exploration:
    """Search for breaches of a guardrail. With a `log`, continue after its last epoch."""
    env, rules = settings.open_env(guardrail), baseline_rules(settings)

    def search_with(players: Players) -> Exploration:
        if log is not None:
            players = _LoggedPlayers(players, log)
        return explore(
            env, rules, settings.names, steps=settings.steps, players=players, on_status=on_status
        )

    try:
        if settings.workers == 1:
            return search_with(Player(env, rules))
        with Workers(env, rules, settings.workers) as players:
            return search_with(players)
    except (StateError, WorkerError) as error:
        # A worker process reports only one line. A guest's own error says more, and says which
        # part of it a competitor may see.
        raise failure_of(guardrail) or MatchError(f"the search failed: {error}") from error


def baseline_rules(settings: MatchSettings) -> SearchRules:
    """Return the ruleset's search, with its vocabulary in the words of this world."""
    rules = settings.ruleset.search
    draw = Draw("vocabulary", *settings.names)
    return replace(rules, vocabulary=speak(rules.vocabulary, settings.scenario, draw))


class _LoggedPlayers:
    """Return the epochs in the log first, then play and log the rest."""

    def __init__(self, players: Players, log: Log[list[Played]]) -> None:
        self._players = players
        self._log = log

    def play(self, moves: Sequence[Move]) -> list[Played]:
        played = self._log.replay()
        if played is None:
            played = list(self._players.play(moves))
            self._log.add(played)
            self._log.flush()
        return played
