"""Options that name an agent, and what may be spent on it: the same wherever there are any."""

from typing import Annotated, Final

import typer

from tiltyard.agents.choice import AgentChoice, AgentChoiceError
from tiltyard.agents.model.account import Price
from tiltyard.contracts.purse import MICRO
from tiltyard.rulesets.ruleset import Ruleset, find_ruleset

AgentOption = Annotated[
    str,
    typer.Option(
        help="Whom the attack speaks to: deterministic, openai:MODEL (key in OPENAI_API_KEY) or "
        "local.",
        show_default="the ruleset's",
    ),
]
BaseUrlOption = Annotated[
    str,
    typer.Option(
        help="Another endpoint that speaks like OpenAI (vLLM, Ollama, llama.cpp, ...), such as "
        "http://127.0.0.1:8000/v1."
    ),
]
MaxRequestsOption = Annotated[
    int | None, typer.Option(min=1, help="Ask a model no more often than this, in all.")
]
MaxCostOption = Annotated[
    float | None, typer.Option(min=0.0, help="Spend no more dollars on a model; needs --price.")
]
PriceOption = Annotated[
    str,
    typer.Option(help="Dollars for a million tokens, in and out, as in 0.4,1.6.", metavar="IN,OUT"),
]
_MOST_DOLLARS: Final = 1_000_000


def choose_agent(
    name: str, base_url: str, max_requests: int | None, max_cost: float | None, price: str
) -> AgentChoice:
    """Return the agent that the options name; the deterministic one if none is named."""
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
    """Refuse what cannot be had together, before anything is begun."""
    choice.check()
    if choice.traits.metered and rules.model is None:
        raise AgentChoiceError(
            f"the ruleset {rules.id} has no [model] table, which says what a model may be asked; "
            "design-openai has one"
        )


def find_deterministic_ruleset(wanted: str) -> Ruleset:
    """Return a ruleset for a command that plays with the deterministic agent alone."""
    rules = find_ruleset(wanted)
    if not AgentChoice(rules.play.agent).is_default:
        raise AgentChoiceError(
            f"the ruleset {rules.id} has {rules.play.agent} as its agent, and this is played with "
            "the deterministic one alone"
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
            f"--price is two numbers, dollars for a million tokens in and out, as in 0.4,1.6; "
            f"this is {given!r}"
        )
    return Price(*(round(one * MICRO) for one in dollars))
