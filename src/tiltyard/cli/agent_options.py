"""Options that choose an agent and limit what a language model may cost."""

from typing import Annotated, Final

import typer
from msgspec import structs

from tiltyard.agents.choice import AgentChoice, AgentChoiceError
from tiltyard.agents.model.account import Price
from tiltyard.contracts.purse import MICRO
from tiltyard.rulesets.ruleset import Ruleset, find_ruleset

AGENT_HELP: Final = (
    "deterministic, local (a small model on this machine), openai:MODEL (set OPENAI_API_KEY), or "
    "package.module:Class for your own code, which runs outside the sandbox."
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
AgentRulesetOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A shipped ruleset's name, or a .toml file.",
        show_default="design, or design-openai for a language model",
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
    choice.check_own()


def settle_agent(choice: AgentChoice, ruleset: str, *, named: bool) -> tuple[AgentChoice, Ruleset]:
    """Return the agent and the ruleset to play with.

    The agent chooses the default ruleset, and the ruleset chooses the default agent.
    """
    rules = find_ruleset(ruleset or ("design-openai" if choice.traits.metered else "design"))
    if not named:
        choice = structs.replace(choice, name=rules.play.agent)
        if choice.is_own:
            raise AgentChoiceError(
                f"the ruleset {rules.id} names the agent {choice.name}, whose code runs outside "
                f"the sandbox; if it is your own, name it: --agent {choice.name}"
            )
    check_agent(choice, rules)
    return choice, rules


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
