"""Options that choose an agent and limit what a language model may cost."""

from typing import Annotated, Final

import typer

from tiltyard.agents.choice import AgentChoice, AgentChoiceError
from tiltyard.agents.model.account import Price
from tiltyard.contracts.purse import MICRO
from tiltyard.rulesets.ruleset import Ruleset, find_ruleset

AGENT_HELP: Final = (
    "deterministic, local (a small model on this machine), or openai:MODEL (set OPENAI_API_KEY)."
)
AgentOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"The agent of the match: {AGENT_HELP}", show_default="the ruleset's"
    ),
]
BaseUrlOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible endpoint (vLLM, Ollama, llama.cpp), such as "
        "http://127.0.0.1:8000/v1",
    ),
]
MaxRequestsOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Send at most this many requests to a model.")
]
MaxCostOption = Annotated[
    float | None,
    typer.Option(
        metavar="DOLLARS", min=0.0, help="Spend at most this much on a model. Needs --price."
    ),
]
PriceOption = Annotated[
    str,
    typer.Option(
        metavar="IN,OUT",
        help="What a model costs: dollars for a million input and output tokens, such as 0.4,1.6",
    ),
]
_MOST_DOLLARS: Final = 1_000_000


def choose_agent(
    name: str, base_url: str, max_requests: int | None, max_cost: float | None, price: str
) -> AgentChoice:
    """Return the agent that the options name, or the deterministic agent if they name none."""
    if max_cost is not None and not max_cost <= _MOST_DOLLARS:
        raise AgentChoiceError(f"--max-cost is at most {_MOST_DOLLARS:,} dollars")
    cost = None if max_cost is None else round(max_cost * MICRO)
    choice = AgentChoice(
        name or AgentChoice().name, base_url, max_requests, cost, _read_price(price)
    )
    if name:
        choice.check()
    return choice


def check_agent(choice: AgentChoice, rules: Ruleset) -> None:
    """Raise if the agent cannot play under the ruleset."""
    choice.check()
    if choice.traits.metered and rules.model is None:
        raise AgentChoiceError(
            f"the ruleset {rules.id} has no [model] table, so a language model cannot play under "
            "it; use --ruleset design-openai"
        )


def find_deterministic_ruleset(wanted: str) -> Ruleset:
    """Return a ruleset for a command that supports the deterministic agent only."""
    rules = find_ruleset(wanted)
    if not AgentChoice(rules.play.agent).is_default:
        raise AgentChoiceError(
            f"the ruleset {rules.id} uses the agent {rules.play.agent}, and this command supports "
            "the deterministic agent only; choose another --ruleset"
        )
    return rules


def _read_price(given: str) -> Price | None:
    if not given:
        return None
    try:
        dollars = [float(part) for part in given.split(",")]
    except ValueError:
        dollars = []
    if len(dollars) != 2 or not all(0 <= one <= _MOST_DOLLARS for one in dollars):
        raise AgentChoiceError(
            "--price is two numbers, dollars for a million input and output tokens, such as "
            f"0.4,1.6; got {given!r}"
        )
    return Price(*(round(one * MICRO) for one in dollars))
