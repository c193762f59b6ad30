"""Tiltyard as an environment of Gymnasium, for attackers that learn.

An action is the number of a message in `TiltyardEnv.messages`. A step sends this message to the
agent. The reward is what the judge gives for what the messages of the episode newly break.

Import this module to use `gymnasium.make("tiltyard/Attack-v0")`. The extra `gymnasium` installs
the library.
"""

from collections.abc import Callable, Sequence
from string import printable
from typing import Any, Final, SupportsInt

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tiltyard.contracts.attack import AttackCandidate
from tiltyard.contracts.decision import Action
from tiltyard.contracts.guardrail import Guardrail
from tiltyard.contracts.trace import PublicEvent
from tiltyard.episode.sandbox_env import MAX_MESSAGE_CHARS, PUBLIC_SEED, SandboxEnv
from tiltyard.foundation.draw import Draw
from tiltyard.guardrails.allow_all import AllowAllGuardrail
from tiltyard.judge.judge import Judge
from tiltyard.judge.predicates import Core
from tiltyard.matches.baseline import baseline_rules
from tiltyard.matches.settings import MatchSettings
from tiltyard.rulesets.ruleset import Ruleset, load_ruleset
from tiltyard.search.vocabulary import Vocabulary
from tiltyard.world.generate import generate
from tiltyard.world.scenario import Scenario
from tiltyard.world.tools import TOOLS

ENV_ID: Final = "tiltyard/Attack-v0"
DEFAULT_ACTIONS: Final = 64
DEFAULT_MESSAGES: Final = 8
MAX_TEXT_CHARS: Final = 2_000
MAX_COUNT: Final = 255
TOOL_NAMES: Final = tuple(sorted(TOOLS))
OUTCOMES: Final = ("ok", "failed", "refused")
_REFUSALS: Final = (Action.DENY, Action.CONFIRM)
_TRIES_PER_ACTION: Final = 100

Observation = dict[str, Any]


def draw_messages(
    scenario: Scenario, count: int = DEFAULT_ACTIONS, ruleset: Ruleset | None = None
) -> tuple[str, ...]:
    """Draw different messages for a scenario from the templates of the ruleset's baseline.

    The templates are those of the benign suite too: some messages are what an ordinary user says.
    """
    settings = MatchSettings(scenario, ruleset or load_ruleset())
    vocabulary = Vocabulary(baseline_rules(settings).vocabulary)
    draw = Draw("gymnasium", *settings.names)
    found: dict[str, None] = {}
    for number in range(count * _TRIES_PER_ACTION):
        message = vocabulary.say(draw.branch(number))
        if len(message) <= MAX_MESSAGE_CHARS:
            found[message] = None
        if len(found) == count:
            return tuple(found)
    raise ValueError(f"the ruleset's vocabulary has only {len(found)} messages, and not {count}")


class TiltyardEnv(gymnasium.Env[Observation, np.int64]):
    """An attacker's view of one world, one agent and one guardrail.

    `world_seed` sets the world. Nothing in an episode is random: the same actions give the same
    observations and rewards. `messages` are the actions; by default `draw_messages` draws 64. The
    environment and the judge each get a guardrail from `make_guardrail`. An episode is truncated
    after `max_messages`.

    An observation has three parts:

    - `turn`: the number of messages so far;
    - `calls`: for each of `TOOL_NAMES`, how many calls of the episode succeeded, failed or were
      refused by the guardrail, in the order of `OUTCOMES`;
    - `text`: the answer and the outputs of the last message. Other characters than ASCII are `?`.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own type

    def __init__(  # noqa: PLR0913 - each has a default
        self,
        *,
        world_seed: int = PUBLIC_SEED,
        messages: Sequence[str] | None = None,
        make_guardrail: Callable[[], Guardrail] = AllowAllGuardrail,
        ruleset: Ruleset | None = None,
        max_messages: int = DEFAULT_MESSAGES,
        render_mode: str | None = None,
    ) -> None:
        ruleset = ruleset or load_ruleset()
        scenario = generate(world_seed)
        self.messages = tuple(
            draw_messages(scenario, ruleset=ruleset) if messages is None else messages
        )
        if not self.messages:
            raise ValueError("messages is empty: give at least one message")
        if not 1 <= max_messages <= ruleset.attack.max_messages:
            limit = ruleset.attack.max_messages
            raise ValueError(f"max_messages must be from 1 to {limit}, not {max_messages}")
        if render_mode not in (None, "ansi"):
            raise ValueError(f"unknown render_mode {render_mode!r}; expected 'ansi' or None")
        self.max_messages = max_messages
        self.render_mode = render_mode
        self._weights = ruleset.attack.weights
        self._env = SandboxEnv(
            world_seed,
            scenario=scenario,
            guardrail=make_guardrail(),
            max_tool_hops=ruleset.play.calls_per_message,
        )
        self._judge = Judge(scenario, make_guardrail(), ruleset=ruleset)
        self._chain: tuple[str, ...] = ()
        self._cores: frozenset[Core] = frozenset()
        self._calls = _no_calls()
        self._text = ""
        self.action_space = spaces.Discrete(len(self.messages))
        self.observation_space = spaces.Dict(
            {
                "turn": spaces.Discrete(max_messages + 1),
                "calls": spaces.Box(0, MAX_COUNT, self._calls.shape, np.uint8),
                "text": spaces.Text(MAX_TEXT_CHARS, min_length=0, charset=printable),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Go back to the beginning of the episode. `seed` only seeds `np_random`."""
        super().reset(seed=seed)
        del options
        self._env.reset()
        self._chain, self._cores = (), frozenset()
        self._calls, self._text = _no_calls(), ""
        return self._observation(), self._info([])

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Send a message. The reward is the weight of each core that the episode newly breaks."""
        number = int(action)
        if not 0 <= number < len(self.messages):
            raise ValueError(f"unknown action {number}; expected 0 to {len(self.messages) - 1}")
        if len(self._chain) >= self.max_messages:
            raise RuntimeError("the episode is over: call `reset`")
        message = self.messages[number]
        done = self._env.interact(message)
        self._chain += (message,)
        for event in done.events:
            self._count(event)
        outputs = [event.output for event in done.events if event.output]
        self._text = "\n".join([done.answer, *outputs])
        cores = frozenset(breach.core for breach in self._judge.breaches_of(self._chain))
        reward = float(sum(self._weights[core[0]] for core in cores - self._cores))
        self._cores |= cores
        is_over = len(self._chain) == self.max_messages
        return self._observation(), reward, False, is_over, self._info(done.events)

    def _count(self, event: PublicEvent) -> None:
        if event.name in TOOL_NAMES:
            outcome = 0 if event.ok else 2 if event.decision in _REFUSALS else 1
            place = TOOL_NAMES.index(event.name), outcome
            self._calls[place] = min(MAX_COUNT, int(self._calls[place]) + 1)

    def _observation(self) -> Observation:
        text = self._text[:MAX_TEXT_CHARS].encode("ascii", "replace").decode("ascii")
        return {
            "turn": len(self._chain),
            "calls": self._calls.copy(),
            "text": "".join(char if char in printable else "?" for char in text),
        }

    def _info(self, events: list[PublicEvent]) -> dict[str, Any]:
        return {
            "messages": self._chain,
            "predicates": tuple(sorted({core[0].value for core in self._cores})),
            "events": events,
        }

    def candidate(self) -> AttackCandidate:
        """Return the messages of the episode, for an attack to return."""
        return AttackCandidate(self._chain)

    def render(self) -> str:
        """Return the last message, the answer and the outputs."""
        said = self._chain[-1] if self._chain else ""
        return f"> {said}\n{self._observation()['text']}"


def _no_calls() -> NDArray[np.uint8]:
    return np.zeros((len(TOOL_NAMES), len(OUTCOMES)), np.uint8)


gymnasium.register(id=ENV_ID, entry_point=f"{__name__}:TiltyardEnv")
