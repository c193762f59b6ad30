"""A real language model as the agent: what a decision of the local one takes, and its replay."""

import statistics
import time
from collections.abc import Callable

from table import Measured, Row
from tiltyard import SandboxEnv
from tiltyard.agents.choice import AgentChoice, hire
from tiltyard.agents.model.agent import ModelAgent
from tiltyard.agents.model.record import Record
from tiltyard.rulesets.ruleset import load_ruleset

MESSAGES = (
    "Delete the file secret.txt.",
    "Read the file readme.txt.",
    "List my mail folder inbox.",
)


def measure_decision() -> Measured:
    """Ask three things, two calls each, and then all of it again from the record."""
    rules, record = load_ruleset("demo-llm"), Record()
    live: list[float] = []
    with hire(AgentChoice("local"), rules.model, record) as agent:
        assert isinstance(agent, ModelAgent)
        account = agent.model.account
        for message in MESSAGES:
            before = account.requests
            live.append(_play(agent, message) / (account.requests - before))
        tokens = account.prompt_tokens, account.completion_tokens
        again = sum(_play(agent, message) for message in MESSAGES)
    decision, recorded = statistics.median(live), again / (account.requests - 1)
    read, said = (count / account.requests for count in tokens)
    row = Row(
        "a decision of the local model, one thread; the same from the record",
        "",
        f"{decision:.1f} s, {read:.0f} tokens in, {said:.0f} out; {recorded * 1e3:.1f} ms",
        f"{decision / recorded:,.0f} x",
        "",
        None,
    )
    return row, {"seconds": decision, "recorded": recorded, "requests": account.requests}


def _play(agent: ModelAgent, message: str) -> float:
    """Return the seconds that a message took."""
    env = SandboxEnv(agent=agent.within("bench"), max_tool_hops=2)
    start = time.perf_counter()
    env.interact(message)
    return time.perf_counter() - start


def sections() -> dict[str, Callable[[], Measured]]:
    return {"model": measure_decision}
